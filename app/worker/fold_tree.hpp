// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "op/kernel.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace weir::app {

/// In which order a job's data are folded: by the switches of a tree, level by level
/// (docs/protocol.md §11.2), or by one switch; and before by the ranks that share a NIC. A part is
/// a rank, or what a switch or the ranks of a NIC fold.
class FoldTree {
 public:
  /// One switch for all ranks that there are.
  FoldTree() = default;

  /// One switch for so many ranks.
  static FoldTree flat(std::uint16_t world);

  /// As "[[0,1,2],[3,4]]": a list is a switch, a number a rank. nullopt if it is no such text, or
  /// if its ranks are not 0, 1, … in order.
  static std::optional<FoldTree> parse(std::string_view text);

  /// The same switches, where ranks share NICs: those of one NIC are folded together in the place
  /// of their leader. `leaders` by rank.
  FoldTree with_leaders(std::span<const std::uint16_t> leaders) const;

  std::uint16_t ranks() const { return ranks_; }

  /// Whether one switch has all the ranks.
  bool is_flat() const;

  /// `inputs` by rank, each of as many bytes as `out`, whole elements.
  void reduce(std::span<std::byte> out, std::span<const std::byte* const> inputs,
              op::ReduceKernel kernel) const;

 private:
  struct Part {
    std::uint16_t rank = 0;
    std::vector<Part> parts; // of a switch; a rank has none
  };
  class Parser;

  static std::optional<Part> led(const Part& part, std::span<const std::uint16_t> leaders);

  static void fold(const Part& part, std::span<std::byte> out,
                   std::span<const std::byte* const> inputs, op::ReduceKernel kernel);

  Part root_;
  std::uint16_t ranks_ = 0;
};

} // namespace weir::app
