// SPDX-License-Identifier: BSD-3-Clause

/// Counts crossings of the graph's edges. At the end of the program it appends them to the file
/// that WEIR_GRAPH names: lines "edge FROM TO COUNT", "drop STAGE REASON COUNT" and "shortcut NAME
/// TO COUNT". For tests/graph.

#include "stage/graph_watch.hpp"

#include <atomic>
#include <cstdlib>
#include <fstream>

namespace weir::stage {
namespace {

class Watch {
 public:
  Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  ~Watch() {
    if (const char* file = std::getenv("WEIR_GRAPH"); file != nullptr) {
      write(file);
    }
  }

  std::array<std::array<std::atomic<std::uint64_t>, kStages>, kStages> edges{};
  std::array<std::array<std::atomic<std::uint64_t>, kDropReasons>, kStages> dropped{};
  std::array<std::atomic<std::uint64_t>, kShortcuts> shortcuts{};

 private:
  void write(const char* file) const {
    std::ofstream out(file, std::ios::app); // several programs may run, one after another
    for (const StageRow& from : kGraph) {
      const auto stage = static_cast<std::size_t>(from.id);
      for (const StageRow& to : kGraph) {
        if (const auto count = edges[stage][static_cast<std::size_t>(to.id)].load(); count != 0) {
          out << "edge " << from.name << ' ' << to.name << ' ' << count << '\n';
        }
      }
      for (std::size_t reason = 0; reason < kDropReasons; ++reason) {
        if (const auto count = dropped[stage][reason].load(); count != 0) {
          out << "drop " << from.name << ' ' << name_of(static_cast<DropReason>(reason)) << ' '
              << count << '\n';
        }
      }
    }
    for (const ShortcutRow& row : kShortcutRows) {
      if (const auto count = shortcuts[static_cast<std::size_t>(row.id)].load(); count != 0) {
        out << "shortcut " << row.name << ' ' << row_of(row.way.last()).name << ' ' << count
            << '\n';
      }
    }
  }
};

Watch watch;

} // namespace

void count_edge(StageId from, StageId to) {
  ++watch.edges[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
}

void count_drop(StageId stage, DropReason reason) {
  ++watch.dropped[static_cast<std::size_t>(stage)][static_cast<std::size_t>(reason)];
}

void count_taken(ShortcutId shortcut) {
  ++watch.shortcuts[static_cast<std::size_t>(shortcut)];
}

} // namespace weir::stage
