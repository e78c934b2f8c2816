// SPDX-License-Identifier: BSD-3-Clause
#include "weir/reasons.hpp"

#include <array>

namespace weir {
namespace {

struct Row {
  std::string_view name;
  std::string_view text;
};

#define WEIR_ROW(name, text) Row{#name, text},
constexpr std::array<Row, kDropReasons> kDropRows{{WEIR_DROP_REASONS(WEIR_ROW)}};
constexpr std::array<Row, kForeignReasons> kForeignRows{{WEIR_FOREIGN_REASONS(WEIR_ROW)}};
#undef WEIR_ROW

} // namespace

std::string_view name_of(DropReason reason) {
  return kDropRows.at(static_cast<std::size_t>(reason)).name;
}

std::string_view text_of(DropReason reason) {
  return kDropRows.at(static_cast<std::size_t>(reason)).text;
}

std::string_view name_of(ForeignReason reason) {
  return kForeignRows.at(static_cast<std::size_t>(reason)).name;
}

std::string_view text_of(ForeignReason reason) {
  return kForeignRows.at(static_cast<std::size_t>(reason)).text;
}

} // namespace weir
