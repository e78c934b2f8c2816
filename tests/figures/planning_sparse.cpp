// SPDX-License-Identifier: BSD-3-Clause
#include "planning_sparse.hpp"

#include "inputs.hpp"
#include "sparse.hpp"
#include "sparse_traffic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace weir::figures::planning {
namespace {

constexpr TwoLevels kTree{8, 8};
constexpr std::uint32_t kValues = 1 << 18; // of the tensor; ratios do not depend on it
// Also the run length of a clustered gradient, as for embeddings.
constexpr std::uint32_t kBlockValues = 256;
constexpr double kValueBytes = 4;

using Sets = std::vector<std::vector<std::uint32_t>>;

/// Every host's indices: single ones anywhere, or whole runs.
Sets made(double density, std::uint32_t run) {
  Draws draws(kValues + run);
  Sets sets(kTree.hosts());
  const std::uint32_t runs = kValues / run;
  const auto count = std::max(1U, static_cast<std::uint32_t>(density * runs));
  for (auto& set : sets) {
    for (const Pair& pair : scattered(draws, runs, count)) {
      for (std::uint32_t offset = 0; offset < run; ++offset) {
        set.push_back(pair.index * run + offset);
      }
    }
  }
  return sets;
}

Sets blocks_of(Sets sets) {
  for (auto& set : sets) {
    for (std::uint32_t& index : set) {
      index /= kBlockValues;
    }
  }
  return sets;
}

/// Weir by union: all bitmaps are or-ed, then the union's blocks are sent as a dense tensor.
double by_union(const Unions& blocks) {
  const double bitmap = static_cast<double>(kValues) / kBlockValues / 8;
  return through_switches(kTree, bitmap + blocks.all * kBlockValues * kValueBytes);
}

/// OmniReduce (SIGCOMM'21): hosts send their blocks to aggregators among the hosts, which send the
/// union's blocks to each host.
double by_aggregators(const Unions& blocks) {
  double links = 0; // mean number between a host and an aggregator
  for (std::uint32_t other = 1; other < kTree.hosts(); ++other) {
    links += static_cast<double>(links_between(kTree, 0, other)) / (kTree.hosts() - 1);
  }
  return kTree.hosts() * links * (blocks.host + blocks.all) * kBlockValues * kValueBytes;
}

} // namespace

void sparse_traffic(const Settings& /*settings*/, Results& results) {
  struct Kind {
    std::string name;
    std::uint32_t run;
  };

  const double dense = through_switches(kTree, kValues * kValueBytes);
  for (const Kind& kind : {Kind{"scattered", 1}, Kind{"clustered", kBlockValues}}) {
    for (const double percent : {0.1, 1.0, 10.0, 20.0}) {
      const Sets sets = made(percent / 100, kind.run);
      const Unions values = unions_of(kTree, sets);
      const Unions blocks = unions_of(kTree, blocks_of(sets));
      const auto give = [&](const std::string& name, double bytes) {
        results.value(fmt::format("{}.{}.{}", kind.name, name, percent), bytes / dense);
        results.point(kind.name, name, percent, bytes / dense);
      };
      give("Flare, pairs", sparse_through_switches(kTree, values, kPairBytes));
      give("Weir, by union of blocks", by_union(blocks));
      give("OmniReduce, blocks", by_aggregators(blocks));
    }
  }
}

} // namespace weir::figures::planning
