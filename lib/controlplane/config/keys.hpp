// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What may stand for a key of the configuration, and all keys for a person: what errors call
/// allowed, `weir --keys` and the manual page weir.yaml(5). They come from the table in fields.cpp.

#include "yaml/reader.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weir::config {

/// DPDK on Debian has no more (RTE_MAX_ETHPORTS).
inline constexpr std::uint64_t kMostPorts = 32;

// Indexed by Role, Idle, ring::KeepAlive, RxSteering and YesNo.
inline constexpr std::array<std::string_view, 4> kRoleNames{"control", "rx", "worker", "tx"};
inline constexpr std::string_view kLcoresByTheSwitch = "auto";
inline constexpr std::array<std::string_view, 3> kIdleNames{"spin", "yield", "sleep"};
inline constexpr std::array<std::string_view, 3> kKeepAliveNames{"ack", "rnr", "off"};
inline constexpr std::array<std::string_view, 2> kRxSteeringNames{"rss", "flow"};
inline constexpr std::array<std::string_view, 2> kOuterTagNames{"802.1Q", "802.1ad"};
inline constexpr std::array<std::string_view, 2> kYesNo{"yes", "no"};

// What may stand for a key.

struct Map {};

struct WholeNumber {
  yaml::Range range;
};

struct PowerOfTwo {
  yaml::Range range;
};

struct OneNumberOf {
  std::span<const std::uint64_t> numbers;
};

struct OneWordOf {
  std::span<const std::string_view> words;
};

struct Text {
  std::string_view form;
  bool (*is_right)(std::string_view) = nullptr; // beyond printable; absent: anything is
};

struct List {
  yaml::Range count;
  std::string_view things; // "ports"
  // Of a list of plain values.
  std::variant<std::monostate, OneWordOf, Text, WholeNumber> entry = {};
  std::string_view word = {}; // that may stand in the list's place; empty: none may
};

using Value = std::variant<Map, List, WholeNumber, PowerOfTwo, OneNumberOf, OneWordOf, Text>;

struct Key {
  std::string path; // from the root; "[]" stands for any entry of a list
  Value value;
  std::string_view meaning; // empty: the keys below it say all
  std::string without = {}; // what holds when the key is missing; empty: it may not be missing
};

/// Every key, in the order in which the manual page has them.
std::span<const Key> keys();

/// "a whole number, 1 to 16".
std::string allowed(const Value& value);

/// The table for a person: what it is, and a line for each key that has a meaning of its own.
std::string keys_as_text();

} // namespace weir::config
