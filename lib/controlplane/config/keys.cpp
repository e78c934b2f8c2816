// SPDX-License-Identifier: BSD-3-Clause
#include "config/keys.hpp"

#include "config/fields.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::config {
namespace {

/// A list of plain values says what each of them may be.
std::string allowed_with_entries(const Key& key) {
  const std::string entry = fmt::format("{}[]", key.path);
  const auto found = std::ranges::find(keys(), entry, &Key::path);
  const bool has_plain_entries =
      found != keys().end() && !std::holds_alternative<Map>(found->value);
  return has_plain_entries ? fmt::format("{}, each {}", allowed(key.value), allowed(found->value))
                           : allowed(key.value);
}

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

} // namespace

std::span<const Key> keys() {
  static const std::vector<Key> table = [] {
    std::vector<Key> keys = keys_below(config_fields(), "");
    keys.insert(keys.begin(), {"", Map{}, ""});
    return keys;
  }();
  return table;
}

std::string allowed(const Value& value) {
  return std::visit(
      Overloaded{
          [](const Map&) { return std::string("a map"); },
          [](const List& list) {
            const std::string length = yaml::allowed_length(list.count, list.things);
            return list.word.empty() ? length : fmt::format("{}, or {}", list.word, length);
          },
          [](const WholeNumber& number) { return yaml::allowed_number(number.range); },
          [](const PowerOfTwo& number) { return yaml::allowed_power(number.range); },
          [](const OneNumberOf& one) { return yaml::join_or(one.numbers); },
          [](const OneWordOf& one) { return yaml::join_or(one.words); },
          [](const Text& text) { return std::string(text.form); },
      },
      value);
}

std::string keys_as_text() {
  std::string text = "The configuration is YAML. Numbers are decimal or 0x hexadecimal. An unknown "
                     "key, a key that\n"
                     "stands twice and a value that is not allowed are errors: the switch tells "
                     "file, line, key, what\n"
                     "it found and what is allowed, and does not start. In the names of keys, [] "
                     "stands for each entry\n"
                     "of a list.\n"
                     "\n";
  for (const Key& key : keys()) {
    const bool is_explained = !key.meaning.empty();
    if (is_explained) {
      text += fmt::format("  {:<25}  {}; allowed: {}; {}\n", key.path, key.meaning,
                          allowed_with_entries(key),
                          key.without.empty() ? "needed" : "default: " + key.without);
    }
  }
  return text;
}

} // namespace weir::config
