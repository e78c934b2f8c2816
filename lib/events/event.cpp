// SPDX-License-Identifier: BSD-3-Clause
#include "events/event.hpp"

#include <fmt/format.h>

namespace weir::events {

std::string line_of(const Event& event) {
  std::string line = fmt::format("{} [{}", event.text, row_of(event.kind).name);
  for (const Field& field : event.fields) {
    line += fmt::format(" {}={}", field.name, field.value);
  }
  return line + "]";
}

} // namespace weir::events
