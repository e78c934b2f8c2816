// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "op/kernel.hpp"
#include "program/code.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace weir::program {

/// Where a field of a tile lies in a payload.
struct FieldPlace {
  std::byte* at = nullptr;
  unsigned stride = 0; // bytes from one to the next, where they are structs
};

/// What the steps of a tile work on.
struct Tile {
  std::byte* registers = nullptr; // kTileBytes each, aligned to 64 bytes
  std::array<FieldPlace, kMaxFields> in;
  std::array<FieldPlace, kMaxFields> out;
  unsigned lanes = 0;
  unsigned blocks = 0;
  unsigned block = 0; // lanes of one
  std::uint64_t flags = 0;
};

/// Runs steps one after the other. All levels give the same bits.
using RunSteps = void (*)(const Step* steps, std::size_t count, Tile& tile);

/// Start and fold of a program whose fold is one step with the payload as it lies there: over so
/// many bytes of all inputs from this one on, with the sums in registers of the CPU. NaN is
/// canonical in `sums`.
using FoldDirectly = void (*)(const Step& step, std::byte* sums, const std::byte* const* inputs,
                              unsigned count, std::size_t offset, std::size_t bytes);

struct Loops {
  RunSteps run = nullptr;
  FoldDirectly fold_directly = nullptr;
};

Loops find_loops(op::CpuLevel level);

/// Whether start takes the payload's only field as it is, and fold joins it by a step that
/// fold_directly knows.
bool is_direct(const Code& code);

/// Whether finish of such a code writes the sums as they are.
bool is_direct_to_end(const Code& code);

extern const Loops kBaselineLoops;
#if defined(__x86_64__)
extern const Loops kAvx2Loops;
extern const Loops kAvx512Loops;
#endif

} // namespace weir::program
