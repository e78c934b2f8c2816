// SPDX-License-Identifier: BSD-3-Clause

/// Prints the graph of stages as JSON: an array of {name, file, about, next, drops}.

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

} // namespace

int main() {
  std::string rows;
  for (const StageRow& row : kGraph) {
    rows += (rows.empty() ? "" : ",\n ") + json_of(row);
  }
  std::printf("[%s]\n", rows.c_str());
  return 0;
}
