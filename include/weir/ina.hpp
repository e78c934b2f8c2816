// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Wire constants of the INA header (docs/protocol.md §2), shared by hosts and switch.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weir {

inline constexpr std::uint32_t kInaMagic = 0x57454952; // "WEIR"
inline constexpr std::uint8_t kInaVersion = 2;
inline constexpr std::size_t kInaHeaderBytes = 40;
inline constexpr std::uint8_t kInaFlagResult = 0x01; // set only by the switch
// Set only by a switch: the result of some ranks.
inline constexpr std::uint8_t kInaFlagPartial = 0x02;
inline constexpr std::uint16_t kMinWorld = 2;
inline constexpr std::uint16_t kMaxWorld = 256;

enum class Operation : std::uint8_t {
  sum = 0,
  min = 1,
  max = 2,
  product = 3,
  bitwise_and = 4,
  bitwise_or = 5,
  bitwise_xor = 6,
};
inline constexpr std::size_t kOperations = 7;

enum class DataType : std::uint8_t {
  f32 = 0,
  i32 = 1,
  f16 = 2,
  bf16 = 3,
  f64 = 4,
  i8 = 5,
  u8 = 6,
  i16 = 7,
  u16 = 8,
  u32 = 9,
  i64 = 10,
  u64 = 11,
  f8e4m3 = 12,
  f8e5m2 = 13,
};
inline constexpr std::size_t kDataTypes = 14;

enum class Collective : std::uint8_t {
  all_reduce = 0,
  hello = 1,
  broadcast = 2, // the result is the root's data
  barrier = 3,   // no data
};

inline constexpr std::uint8_t kCollectives = 4;

/// Bytes of one element; 0 for a number outside the table.
std::size_t element_size(DataType type);
std::string_view name_of(DataType type);
std::string_view name_of(Operation operation);
std::optional<DataType> data_type_named(std::string_view name);
std::optional<Operation> operation_named(std::string_view name);

/// False for pairs without a meaning: bitwise operations on floats.
bool is_reducible(DataType type, Operation operation);

} // namespace weir
