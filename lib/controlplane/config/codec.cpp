// SPDX-License-Identifier: BSD-3-Clause
#include "config/codec.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::config {
namespace {

std::string to_string(Role role) {
  return std::string(name_of(role));
}

template <typename T>
std::string sorted_and_joined(const std::vector<T>& list) {
  std::vector<std::string> words;
  for (const T& entry : list) {
    words.push_back(to_string(entry));
  }
  std::ranges::sort(words);
  return joined(words);
}

/// Whether a host can send from the address: not 0/8, 127/8, 224/3 (RFC 6890), ::, ::1 or ff00::/8
/// (RFC 4291).
bool is_host_address(const wire::IpAddress& address) {
  if (address.is_v4()) {
    const std::uint8_t first = address.bytes[12];
    return first != 0 && first != 127 && first < 224;
  }
  const bool zero_but_last = std::all_of(address.bytes.begin(), address.bytes.end() - 1,
                                         [](auto byte) { return byte == 0; });
  return address.bytes[0] != 0xff && !(zero_but_last && address.bytes[15] <= 1);
}

/// Takes what was parsed, if it was.
template <typename T>
bool assign(const std::optional<T>& parsed, T& to) {
  to = parsed.value_or(T{});
  return parsed.has_value();
}

} // namespace

void refuse(const yaml::Reader& node, const Text& text) {
  node.fail(node.found(), text.form);
}

std::uint64_t number_at(const yaml::Reader& node, const Value& value) {
  if (const auto* one = std::get_if<OneNumberOf>(&value)) {
    return node.one_of(one->numbers);
  }
  if (const auto* power = std::get_if<PowerOfTwo>(&value)) {
    return node.power_of_two(power->range);
  }
  return node.whole_number(std::get<WholeNumber>(value).range);
}

std::string text_at(const yaml::Reader& node, const Text& text) {
  std::string found = node.text(text.form);
  if (text.is_right != nullptr && !text.is_right(found)) {
    refuse(node, text);
  }
  return found;
}

std::vector<yaml::Reader> items_at(const yaml::Reader& node, const Value& value) {
  const auto& list = std::get<List>(value);
  return node.items(list.count, list.things);
}

std::string joined(const std::vector<std::string>& words) {
  return words.empty() ? std::string(kNothing) : fmt::format("{}", fmt::join(words, " "));
}

bool parse(const std::string& text, std::string& to) {
  to = text;
  return true;
}

bool parse(const std::string& text, wire::MacAddress& to) {
  return assign(wire::parse_mac(text), to) && !to.is_group() && to != wire::MacAddress{};
}

bool parse(const std::string& text, wire::IpAddress& to) {
  return assign(wire::parse_ip(text), to) && is_host_address(to);
}

bool parse(const std::string& text, AddressBlock& to) {
  return assign(parse_block(text), to);
}

std::string in_words(const Value& /*value*/, std::uint64_t number) {
  return fmt::format("{}", number);
}

std::string in_words(const Value& /*value*/, const std::string& text) {
  return text.empty() ? std::string(kNothing) : text;
}

std::string in_words(const Value& /*value*/, const wire::IpAddress& address) {
  return to_string(address);
}

std::string in_words(const Value& /*value*/, const wire::MacAddress& address) {
  return to_string(address);
}

std::string in_words(const Value& /*value*/, const std::vector<std::string>& list) {
  return joined(list);
}

std::string in_words(const Value& /*value*/, const std::vector<wire::MacAddress>& list) {
  return sorted_and_joined(list);
}

std::string in_words(const Value& /*value*/, const std::vector<AddressBlock>& list) {
  return sorted_and_joined(list);
}

std::string in_words(const Value& /*value*/, const std::vector<Role>& list) {
  return sorted_and_joined(list);
}

} // namespace weir::config
