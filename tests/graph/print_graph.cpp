// SPDX-License-Identifier: BSD-3-Clause

/// Prints the graph of stages as JSON: {stages: [{name, file, about, next, drops}], shortcuts:
/// [{name, file, about, from, to}]}.

#include "stage/graph.hpp"

#include <cstdio>
#include <string>

namespace {

using namespace weir;
using namespace weir::stage;

std::string quoted(std::string_view text) {
  return '"' + std::string(text) + '"';
}

std::string joined(const std::string& list, std::string_view word) {
  return list + (list.empty() ? "" : ", ") + quoted(word);
}

std::string json_of(const StageRow& row) {
  std::string next;
  for (const StageRow& other : kGraph) {
    next = row.next.has(other.id) ? joined(next, other.name) : next;
  }
  std::string drops;
  for (std::size_t i = 0; i < kDropReasons; ++i) {
    const auto reason = static_cast<DropReason>(i);
    drops = row.drops.has(reason) ? joined(drops, name_of(reason)) : drops;
  }
  return "{\"name\": " + quoted(row.name) + ", \"file\": " + quoted(row.file) +
         ", \"about\": " + quoted(row.about) + ", \"next\": [" + next + "], \"drops\": [" + drops +
         "]}";
}

std::string json_of(const ShortcutRow& row) {
  return "{\"name\": " + quoted(row.name) + ", \"file\": " + quoted(row.file) +
         ", \"about\": " + quoted(row.about) +
         ", \"from\": " + quoted(row_of(row.way.first()).name) +
         ", \"to\": " + quoted(row_of(row.way.last()).name) + "}";
}

template <typename Rows>
std::string json_of_all(const Rows& rows) {
  std::string list;
  for (const auto& row : rows) {
    list += (list.empty() ? "" : ",\n ") + json_of(row);
  }
  return '[' + list + ']';
}

} // namespace

int main() {
  std::printf("{\"stages\": %s,\n\"shortcuts\": %s}\n", json_of_all(kGraph).c_str(),
              json_of_all(kShortcutRows).c_str());
  return 0;
}
