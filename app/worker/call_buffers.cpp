// SPDX-License-Identifier: BSD-3-Clause
#include "worker/call_buffers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <stdexcept>

namespace weir::app {
namespace {

std::vector<std::byte> allocate(std::uint64_t bytes) {
  try {
    return std::vector<std::byte>(bytes);
  } catch (const std::exception&) { // std::bad_alloc, std::length_error
    throw std::runtime_error(fmt::format("no memory for a tensor of {} bytes", bytes));
  }
}

/// Bytes of the shorter buffer.
std::uint64_t part_of(const host::Call& call, std::uint16_t world) {
  return bytes_of(call, world) / call.shares(world);
}

/// Bytes of the buffer that is used out of place alone.
std::uint64_t other_part_of(const host::Call& call, std::uint16_t world) {
  return can_be_out_of_place(call) ? part_of(call, world) : 0;
}

std::uint64_t most_of(std::span<const host::Call> calls, std::uint16_t world,
                      std::uint64_t (*bytes)(const host::Call&, std::uint16_t)) {
  std::uint64_t most = 0;
  for (const host::Call& call : calls) {
    most = std::max(most, bytes(call, world));
  }
  return most;
}

} // namespace

std::string_view name_of(Placement placement) {
  return placement == Placement::in_place ? "in-place" : "out-of-place";
}

bool can_be_out_of_place(const host::Call& call) {
  return call.row().contributes == op::Who::everybody;
}

std::uint64_t bytes_of(const host::Call& call, std::uint16_t world) {
  return call.has_data() ? call.count * element_size(call.type) * call.shares(world) : 0;
}

TensorMemory::TensorMemory(std::span<const host::Call> calls, std::span<const Placement> placements,
                           const host::Place& place)
    : place_(place), whole_(allocate(most_of(calls, place.world, bytes_of))) {
  if (std::ranges::find(placements, Placement::out_of_place) != placements.end()) {
    other_ = allocate(most_of(calls, place.world, other_part_of));
  }
}

CallBuffers TensorMemory::buffers_of(const host::Call& call, Placement placement) {
  const std::span<std::byte> whole = std::span(whole_).first(bytes_of(call, place_.world));
  const std::size_t part = part_of(call, place_.world);
  std::span<std::byte> ours =
      part == whole.size() ? whole : whole.subspan(place_.rank * part, part);
  if (placement == Placement::out_of_place && can_be_out_of_place(call)) {
    ours = std::span(other_).first(part);
  }
  const bool gathers = call.row().gets == host::Amount::share_of_each;
  const bool gets_nothing = call.row().receives == op::Who::root && place_.rank != call.root;
  const std::span<std::byte> result = gathers ? whole : ours;
  return {gathers ? ours : whole, gets_nothing ? std::span<std::byte>() : result};
}

} // namespace weir::app
