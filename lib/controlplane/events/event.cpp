// SPDX-License-Identifier: BSD-3-Clause
#include "events/event.hpp"

#include "text/printable.hpp"

#include <fmt/format.h>

namespace weir::events {
namespace {

/// A blank would look like the end of the field. A bracket would not: the line's last one ends all.
std::string word_of(std::string_view value) {
  std::string word;
  for (const char byte : text::printable(value)) {
    word += byte == ' ' ? fmt::format("\\x{:02x}", byte) : std::string(1, byte);
  }
  return word;
}

} // namespace

std::string line_of(const Event& event) {
  std::string line = fmt::format("{} [{}", text::printable(event.text), row_of(event.kind).name);
  for (const Field& field : event.fields) {
    line += fmt::format(" {}={}", field.name, word_of(field.value));
  }
  return line + "]";
}

} // namespace weir::events
