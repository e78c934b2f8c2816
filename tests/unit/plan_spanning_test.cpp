// SPDX-License-Identifier: BSD-3-Clause
#include "plan/spanning_trees.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace weir::plan::plan_spanning_test {
namespace {

using Parts = std::vector<std::uint32_t>; // by vertex: its part

/// The next partition as a restricted growth string: each part's number is at most one more than
/// the largest before it.
bool advance(Parts& parts) {
  for (std::size_t at = parts.size() - 1; at != 0; --at) {
    const std::uint32_t most =
        *std::max_element(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(at));
    if (parts[at] <= most) {
      ++parts[at];
      std::fill(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1, parts.end(), 0);
      return true;
    }
  }
  return false;
}

/// By Nash-Williams' theorem, over all partitions.
std::size_t most_trees(std::uint32_t vertices, const std::vector<Edge>& edges) {
  std::size_t most = edges.size();
  for (Parts parts(vertices); advance(parts);) {
    const std::size_t borders = *std::ranges::max_element(parts);
    const auto crossing = static_cast<std::size_t>(std::ranges::count_if(
        edges, [&](const Edge& edge) { return parts[edge.one] != parts[edge.other]; }));
    most = std::min(most, crossing / borders);
  }
  return most;
}

bool spans(std::uint32_t vertices, const std::vector<Edge>& edges,
           const std::vector<std::uint32_t>& tree) {
  Parts part(vertices);
  std::iota(part.begin(), part.end(), 0);
  for (const std::uint32_t edge : tree) {
    const std::uint32_t from = part[edges[edge].one];
    std::ranges::replace(part, from, part[edges[edge].other]);
  }
  return tree.size() + 1 == vertices && std::ranges::count(part, part[0]) == vertices;
}

TEST(SpanningTrees, AreAsManyAsTheTheoremAllows) {
  std::mt19937 random(1);
  std::set<std::size_t> counts;
  for (int round = 0; round < 1000; ++round) {
    const std::uint32_t vertices = 2 + random() % 5;
    std::vector<Edge> edges(random() % 20);
    for (Edge& edge : edges) { // parallel ones too, and loops
      edge = {static_cast<std::uint32_t>(random() % vertices),
              static_cast<std::uint32_t>(random() % vertices)};
    }
    const auto trees = disjoint_spanning_trees(vertices, edges, 100);
    ASSERT_EQ(trees.size(), most_trees(vertices, edges)) << "round " << round;
    counts.insert(trees.size());
    std::set<std::uint32_t> used;
    for (const auto& tree : trees) {
      ASSERT_TRUE(spans(vertices, edges, tree)) << "round " << round;
      for (const std::uint32_t edge : tree) {
        ASSERT_TRUE(used.insert(edge).second) << "round " << round;
      }
    }
  }
  EXPECT_GE(counts.size(), 5U);
}

TEST(SpanningTrees, AreNoMoreThanAsked) {
  const std::vector<Edge> parallel(7, Edge{0, 1});
  EXPECT_EQ(disjoint_spanning_trees(2, parallel, 3).size(), 3U);
  EXPECT_EQ(disjoint_spanning_trees(2, parallel, 9).size(), 7U);
  EXPECT_TRUE(disjoint_spanning_trees(1, {}, 3).empty());
}

} // namespace
} // namespace weir::plan::plan_spanning_test
