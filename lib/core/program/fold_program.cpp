// SPDX-License-Identifier: BSD-3-Clause
#include "program/fold_program.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace weir::program {
namespace {

// Three more, for operands that lie in a payload.
constexpr std::size_t kRegisters = kMaxRegisters + 3;

/// Of this thread.
std::byte* registers() {
  alignas(64) static thread_local std::array<std::byte, kRegisters * kTileBytes> memory;
  return memory.data();
}

} // namespace

/// Nothing is written through the places of inputs.
void FoldProgram::place_fields(std::array<FieldPlace, kMaxFields>& places, std::byte* packet,
                               std::size_t units, std::size_t first) const {
  if (code_.is_block()) {
    const unsigned scale_bytes = code_.unit_bytes - code_.code_bytes;
    const unsigned code_bytes = row_of(code_.fields[0].format).bits / 8; // 0: packed
    places[0] = {packet + first * code_.code_bytes, code_bytes};
    places[1] = {packet + units * code_.code_bytes + first * scale_bytes, scale_bytes};
    return;
  }
  for (std::size_t field = 0; field < code_.fields.size(); ++field) {
    places[field] = {packet + first * code_.unit_bytes + code_.fields[field].offset,
                     code_.unit_bytes};
  }
}

void FoldProgram::begin_tile(Tile& tile, std::size_t units, std::size_t first) const {
  const auto in_tile = static_cast<unsigned>(std::min(units - first, tile_units()));
  tile.lanes = in_tile * code_.unit_lanes();
  tile.blocks = in_tile;
  tile.block = code_.unit_lanes();
}

/// As many as the largest tile has.
void FoldProgram::fill_constants(Tile& tile, std::size_t units) const {
  begin_tile(tile, units, 0);
  run(code_.constants, tile);
}

void FoldProgram::end_packet(std::byte* packet, std::size_t bytes, std::uint64_t flags) const {
  const std::size_t used = code_.units(bytes) * code_.unit_bytes;
  std::memset(packet + used, 0, bytes - used);
  if (code_.has_flags && bytes >= kFlagBytes) {
    std::memcpy(packet + bytes - kFlagBytes, &flags, kFlagBytes);
  }
}

void FoldProgram::fold_tile(Tile& tile, const std::byte* const* inputs, unsigned count,
                            std::size_t units, std::size_t first) const {
  if (is_direct_) {
    const Step& fold = code_.fold.front();
    return loops_.fold_directly(fold, tile.registers + std::size_t{fold.to} * kTileBytes, inputs,
                                count, first * code_.unit_bytes,
                                std::size_t{tile.lanes} * code_.unit_bytes);
  }
  for (unsigned i = 0; i < count; ++i) {
    place_fields(tile.in, const_cast<std::byte*>(inputs[i]), units, first);
    run(i == 0 ? code_.start : code_.fold, tile);
  }
}

/// Returns the flags of the fold.
std::uint64_t FoldProgram::fold_units(std::byte* out, const std::byte* const* inputs,
                                      unsigned count, std::size_t units) const {
  if (is_direct_to_end_) {
    loops_.fold_directly(code_.fold.front(), out, inputs, count, 0, units * code_.unit_bytes);
    return 0;
  }
  Tile tile{.registers = registers(), .in = {}, .out = {}};
  fill_constants(tile, units);
  for (std::size_t first = 0; first < units; first += tile_units()) {
    begin_tile(tile, units, first);
    fold_tile(tile, inputs, count, units, first);
    place_fields(tile.out, out, units, first);
    run(code_.finish, tile);
  }
  return tile.flags;
}

void FoldProgram::reduce(std::byte* out, const std::byte* const* inputs, unsigned count,
                         std::size_t bytes, op::Copies copies) const {
  if (bytes == 0) {
    return; // the pointers may be null
  }
  std::uint64_t flags = fold_units(out, inputs, count, code_.units(bytes));
  for (unsigned i = 0; code_.has_flags && bytes >= kFlagBytes && i < count; ++i) {
    std::uint64_t theirs = 0;
    std::memcpy(&theirs, inputs[i] + bytes - kFlagBytes, kFlagBytes);
    flags |= theirs;
  }
  end_packet(out, bytes, flags);
  for (unsigned i = 0; i < copies.count; ++i) {
    std::memcpy(copies.to[i], out, bytes);
  }
}

void FoldProgram::pack(std::byte* packet, std::size_t bytes, std::span<const float> numbers) const {
  const std::size_t units = code_.units(bytes);
  Tile tile{.registers = registers(), .in = {}, .out = {}};
  fill_constants(tile, units);
  std::byte* const sums = tile.registers + std::size_t{*code_.accumulator} * kTileBytes;
  for (std::size_t first = 0; first < units; first += tile_units()) {
    begin_tile(tile, units, first);
    const auto rest = numbers.subspan(std::min(first * code_.unit_lanes(), numbers.size()));
    const std::size_t known = std::min<std::size_t>(rest.size(), tile.lanes) * sizeof(float);
    std::memset(sums, 0, kTileBytes);
    std::memcpy(sums, rest.data(), known);
    place_fields(tile.out, packet, units, first);
    run(code_.finish, tile);
  }
  end_packet(packet, bytes, tile.flags);
}

void FoldProgram::unpack(std::span<float> numbers, const std::byte* packet,
                         std::size_t bytes) const {
  const std::size_t units = code_.units(bytes);
  Tile tile{.registers = registers(), .in = {}, .out = {}};
  fill_constants(tile, units);
  const std::byte* const sums = tile.registers + std::size_t{*code_.accumulator} * kTileBytes;
  for (std::size_t first = 0; first < units; first += tile_units()) {
    begin_tile(tile, units, first);
    place_fields(tile.in, const_cast<std::byte*>(packet), units, first);
    run(code_.start, tile);
    const auto rest = numbers.subspan(std::min(first * code_.unit_lanes(), numbers.size()));
    const std::size_t wanted = std::min<std::size_t>(rest.size(), tile.lanes) * sizeof(float);
    std::memcpy(rest.data(), sums, wanted);
  }
}

} // namespace weir::program
