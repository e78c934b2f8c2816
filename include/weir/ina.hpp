// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Wire constants of the INA header (docs/protocol.md §2), shared by hosts and switch.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace weir {

inline constexpr std::uint32_t kInaMagic = 0x57454952; // "WEIR"
inline constexpr std::uint8_t kInaVersion = 2;
// Of all messages of a run whose hellos have a table of operators (docs/protocol.md §12).
inline constexpr std::uint8_t kInaVersionWithOperators = 3;

constexpr bool is_known_version(std::uint8_t version) {
  return version == kInaVersion || version == kInaVersionWithOperators;
}

inline constexpr std::size_t kInaHeaderBytes = 40;
inline constexpr std::uint8_t kInaFlagResult = 0x01; // set only by the switch
// Set only by a switch: the result of some ranks.
inline constexpr std::uint8_t kInaFlagPartial = 0x02;
inline constexpr std::uint16_t kMinWorld = 2;
inline constexpr std::uint16_t kMaxWorld = 256;

/// The rows of operations and data types. A row's place is its number on the wire (docs/protocol.md
/// §2). From a row follow the enumerator, its name, what may be reduced with what, and the
/// operator's identity (op/operators.hpp). A test compares the lists of other languages and of the
/// pages with the rows (tests/docs.py).

// clang-format off
// Name, elements, whether the order of inputs matters, identity: an element e with e op x = x.
#define WEIR_OPERATIONS(X)                                               \
  X(sum,         "sum",     any_type, matters_for_floats, zero)          \
  X(min,         "min",     any_type, matters_for_floats, highest)       \
  X(max,         "max",     any_type, matters_for_floats, lowest)        \
  X(product,     "product", any_type, matters_for_floats, one)           \
  X(bitwise_and, "and",     integers, never_matters,      all_bits)      \
  X(bitwise_or,  "or",      integers, never_matters,      no_bits)       \
  X(bitwise_xor, "xor",     integers, never_matters,      no_bits)

// Bytes of an element, its kind, then the bits of zero, one, the highest and the lowest. The zero of floats is -0,
// because +0 would turn -0 into +0. The highest is infinity, or in f8e4m3, which has none, the largest number.
#define WEIR_DATA_TYPES(X)                                                                                          \
  X(f32,    4, floating, 0x80000000,         0x3f800000,         0x7f800000,         0xff800000)                    \
  X(i32,    4, integer,  0,                  1,                  0x7fffffff,         0x80000000)                    \
  X(f16,    2, floating, 0x8000,             0x3c00,             0x7c00,             0xfc00)                        \
  X(bf16,   2, floating, 0x8000,             0x3f80,             0x7f80,             0xff80)                        \
  X(f64,    8, floating, 0x8000000000000000, 0x3ff0000000000000, 0x7ff0000000000000, 0xfff0000000000000)            \
  X(i8,     1, integer,  0,                  1,                  0x7f,               0x80)                          \
  X(u8,     1, integer,  0,                  1,                  0xff,               0)                             \
  X(i16,    2, integer,  0,                  1,                  0x7fff,             0x8000)                        \
  X(u16,    2, integer,  0,                  1,                  0xffff,             0)                             \
  X(u32,    4, integer,  0,                  1,                  0xffffffff,         0)                             \
  X(i64,    8, integer,  0,                  1,                  0x7fffffffffffffff, 0x8000000000000000)            \
  X(u64,    8, integer,  0,                  1,                  0xffffffffffffffff, 0)                             \
  X(f8e4m3, 1, floating, 0x80,               0x38,               0x7e,               0xfe)                          \
  X(f8e5m2, 1, floating, 0x80,               0x3c,               0x7c,               0xfc)

enum class Operation : std::uint8_t {
#define X(operation, ...) operation,
  WEIR_OPERATIONS(X)
#undef X
};

enum class DataType : std::uint8_t {
#define X(type, ...) type,
  WEIR_DATA_TYPES(X)
#undef X
};

#define X(operation, ...) Operation::operation,
inline constexpr std::size_t kOperations = std::initializer_list<Operation>{WEIR_OPERATIONS(X)}.size();
#undef X
#define X(type, ...) DataType::type,
inline constexpr std::size_t kDataTypes = std::initializer_list<DataType>{WEIR_DATA_TYPES(X)}.size();
#undef X
// clang-format on

/// Type and first operation of messages that operators of the users' own fold (docs/protocol.md
/// §12).
inline constexpr DataType kAsOperator{255};
inline constexpr std::uint8_t kFirstOperator = 128;
inline constexpr std::size_t kMostOperators = 4; // of a run
inline constexpr std::size_t kOperatorUnit =
    8; // bytes: what such a message's data are a multiple of

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
