// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "op/kernel.hpp"
#include "program/code.hpp"
#include "program/loops.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace weir::program {

/// A program at one CPU level. Of a packet of P bytes, nb = (P - f) / b units are folded: b bytes
/// of wire, f bytes of flags. Blocks: all codes, then the scales. What is left is zero, and the
/// flags come last.
class FoldProgram {
 public:
  FoldProgram(Code code, op::CpuLevel level)
      : code_(std::move(code)), loops_(find_loops(level)), is_direct_(is_direct(code_)),
        is_direct_to_end_(is_direct_to_end(code_)) {}

  /// As op::ReduceKernel, for one packet. The thread's MXCSR must be the default one.
  void reduce(std::byte* out, const std::byte* const* inputs, unsigned count, std::size_t bytes,
              op::Copies copies) const;

  /// Makes units of numbers, as finish does of sums. Only where code().accumulator is set. The
  /// packet has `bytes` bytes; lanes without a number are 0.
  void pack(std::byte* packet, std::size_t bytes, std::span<const float> numbers) const;

  /// The numbers of a packet's units, as start reads them.
  void unpack(std::span<float> numbers, const std::byte* packet, std::size_t bytes) const;

  const Code& code() const { return code_; }

 private:
  void place_fields(std::array<FieldPlace, kMaxFields>& places, std::byte* packet,
                    std::size_t units, std::size_t first) const;
  void begin_tile(Tile& tile, std::size_t units, std::size_t first) const;
  void fill_constants(Tile& tile, std::size_t units) const;

  std::size_t tile_units() const { return code_.tile_lanes / code_.unit_lanes(); }

  void run(const std::vector<Step>& steps, Tile& tile) const {
    loops_.run(steps.data(), steps.size(), tile);
  }

  void fold_tile(Tile& tile, const std::byte* const* inputs, unsigned count, std::size_t units,
                 std::size_t first) const;

  std::uint64_t fold_units(std::byte* out, const std::byte* const* inputs, unsigned count,
                           std::size_t units) const;

  void end_packet(std::byte* packet, std::size_t bytes, std::uint64_t flags) const;

  Code code_;
  Loops loops_;
  bool is_direct_;
  bool is_direct_to_end_;
};

} // namespace weir::program
