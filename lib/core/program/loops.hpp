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

RunSteps find_loops(op::CpuLevel level);

void run_baseline(const Step* steps, std::size_t count, Tile& tile);
void run_avx2(const Step* steps, std::size_t count, Tile& tile);
void run_avx512(const Step* steps, std::size_t count, Tile& tile);

} // namespace weir::program
