// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "program/format.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::program {

inline constexpr std::size_t kMaxTextBytes = 4096;
inline constexpr unsigned kMaxNamed = 8;      // registers that a text names
inline constexpr unsigned kMaxRegisters = 16; // those, and the ones between steps
inline constexpr unsigned kMaxSteps = 64;     // of a phase
inline constexpr unsigned kMaxFields = 4;     // of a struct
inline constexpr unsigned kFlagBytes = 8;
inline constexpr unsigned kTileBytes = 4096; // of a register

/// One loop over the lanes of a tile, or over its blocks.
enum class Op : std::uint8_t {
  load, // field `a`, as it lies in the payload
  copy,
  fill, // `bits` in each lane
  add,
  sub,
  mul,
  div,
  min,
  max,
  neg,
  abs,
  finite_abs, // 0 where the value is NaN or infinite
  fma,        // a * b + c, rounded once
  add_sat,
  sub_sat,
  bit_and,
  bit_or,
  bit_xor,
  bit_not,
  shl,
  shr,
  less,
  less_equal,
  equal,
  not_equal,
  select, // c ? a : b
  is_nan,
  floor_log2,
  pow2,
  sqrt,
  convert, // of lane `from`
  block_max,
  block_sum,
  spread,    // a block's value into its lanes
  mul_block, // fused: a lane's value and its block's
  div_block,
  mul_add_block,  // fused: c + a * b, rounded twice; b is its block's
  load_mul_block, // fused: a field's number for `a`
  load_mul_add_block,
  finite_block_max, // fused: block_max of finite_abs
  div_block_store,  // fused: the quotient into field `to`
  quantise,         // the value of the nearest code of `format`
  clip,             // an integer, to the range of `format`
  store,            // `a` into field `to`, rounded or cut
  flag,             // `bits`, if a lane of the condition `a` is set
};

/// An operand: a register, or from kDirect on a field that needs no conversion.
using Operand = std::uint8_t;
inline constexpr Operand kDirect = 64;

struct Step {
  Op op{};
  Lane lane{}; // of the result; of a comparison's operands
  Lane from{};
  bool per_block = false; // once for each block, and not for each lane
  Operand to = 0;
  Operand a = 0;
  Operand b = 0;
  Operand c = 0;
  Format format{}; // of what is loaded or stored
  std::uint64_t bits = 0;

  bool operator==(const Step&) const = default;
};

struct Field {
  std::string name;
  Format format{};
  unsigned offset = 0; // bytes, in its struct
};

/// A checked program. It touches its payload and its registers, and ends after a number of steps
/// that the payload's length tells.
struct Code {
  std::string name;
  std::string text;          // canonical: no comments, one blank between words
  unsigned block = 0;        // lanes of a block; 0: structs
  std::vector<Field> fields; // of a block: codes, then the scale
  unsigned unit_bytes = 0;   // of a struct, or of a block with its scale
  unsigned code_bytes = 0;   // of a block's codes
  bool has_flags = false;
  bool order_never_matters = false;
  std::optional<std::vector<std::uint8_t>> identity; // of a unit: block's codes, then its scale
  unsigned tile_lanes = 0;
  bool is_fused = false;
  // The only register that start leaves for fold, if it has a number of f32 for each lane.
  std::optional<Operand> accumulator;
  std::vector<Step> constants;
  std::vector<Step> start;
  std::vector<Step> fold;
  std::vector<Step> finish;

  bool is_block() const { return block != 0; }

  unsigned unit_lanes() const { return is_block() ? block : 1; }

  unsigned flag_bytes() const { return has_flags ? kFlagBytes : 0; }

  /// Whole units in a packet of so many bytes.
  std::size_t units(std::size_t bytes) const {
    return bytes < flag_bytes() ? 0 : (bytes - flag_bytes()) / unit_bytes;
  }

  /// Bytes of a packet for so many units, a multiple of 8.
  std::size_t bytes_for(std::size_t units) const {
    return (units * unit_bytes + flag_bytes() + 7) / 8 * 8;
  }
};

} // namespace weir::program
