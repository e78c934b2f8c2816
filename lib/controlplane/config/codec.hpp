// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// How a value of each type is read from the file, and how it is said to a person. `value` is what
/// the table of keys allows there. A type that no key had before is taught here.

#include "config/config.hpp"
#include "config/keys.hpp"
#include "yaml/reader.hpp"

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace weir::config {

/// Stands for a value that is not there.
inline constexpr std::string_view kNothing = "-";

template <typename T>
concept Enumeration = std::is_enum_v<T>;

/// Fails with what was found, and the form.
[[noreturn]] void refuse(const yaml::Reader& node, const Text& text);

std::uint64_t number_at(const yaml::Reader& node, const Value& value);

std::string text_at(const yaml::Reader& node, const Text& text);

/// The entries of a list, not yet read.
std::vector<yaml::Reader> items_at(const yaml::Reader& node, const Value& value);

/// With spaces between; kNothing if there is none.
std::string joined(const std::vector<std::string>& words);

// Whether the text is a T.
bool parse(const std::string& text, std::string& to);
bool parse(const std::string& text, wire::MacAddress& to);
bool parse(const std::string& text, wire::IpAddress& to);
bool parse(const std::string& text, AddressBlock& to);

// The enumerator of a word, by its index, and back.

inline void take_word(std::size_t index, wire::EtherType& to) {
  to = index == 0 ? wire::EtherType::vlan : wire::EtherType::service_vlan;
}

template <Enumeration T>
void take_word(std::size_t index, T& to) {
  to = static_cast<T>(index);
}

inline std::size_t index_of(wire::EtherType value) {
  return value == wire::EtherType::vlan ? 0 : 1;
}

template <Enumeration T>
std::size_t index_of(T value) {
  return static_cast<std::size_t>(value);
}

// Reading. `Allowed` is Value, or what an entry of a list may be.

template <std::integral T>
void read_value(const yaml::Reader& node, const Value& value, T& to) {
  to = static_cast<T>(number_at(node, value));
}

template <typename Allowed, Enumeration T>
void read_value(const yaml::Reader& node, const Allowed& allowed, T& to) {
  take_word(node.one_of(std::get<OneWordOf>(allowed).words), to);
}

template <typename Allowed, typename T>

requires requires(const std::string& text, T& to) {
  parse(text, to);
}

void read_value(const yaml::Reader& node, const Allowed& allowed, T& to) {
  const Text& form = std::get<Text>(allowed);
  if (!parse(text_at(node, form), to)) {
    refuse(node, form);
  }
}

template <typename T>
void read_value(const yaml::Reader& node, const Value& value, std::vector<T>& to) {
  for (const yaml::Reader& item : items_at(node, value)) {
    read_value(item, std::get<List>(value).entry, to.emplace_back());
  }
}

template <typename T>
void read_value(const yaml::Reader& node, const Value& value, std::optional<T>& to) {
  read_value(node, value, to.emplace());
}

// Saying. Two values have the same words if they are the same.

std::string in_words(const Value& value, std::uint64_t number);
std::string in_words(const Value& value, const std::string& text);
std::string in_words(const Value& value, const wire::IpAddress& address);
std::string in_words(const Value& value, const wire::MacAddress& address);
std::string in_words(const Value& value, const std::vector<std::string>& list);
std::string in_words(const Value& value, const std::vector<wire::MacAddress>& list);
std::string in_words(const Value& value, const std::vector<AddressBlock>& list);
std::string in_words(const Value& value, const std::vector<Role>& list);

template <Enumeration T>
std::string in_words(const Value& value, T word) {
  return std::string(std::get<OneWordOf>(value).words[index_of(word)]);
}

template <typename T>
std::string in_words(const Value& value, const std::optional<T>& there) {
  return there ? in_words(value, *there) : std::string(kNothing);
}

} // namespace weir::config
