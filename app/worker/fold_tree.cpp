// SPDX-License-Identifier: BSD-3-Clause
#include "worker/fold_tree.hpp"

#include "weir/ina.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace weir::app {

FoldTree FoldTree::flat(std::uint16_t world) {
  FoldTree tree;
  for (std::uint16_t rank = 0; rank < world; ++rank) {
    tree.root_.parts.push_back({rank, {}});
  }
  tree.ranks_ = world;
  return tree;
}

FoldTree FoldTree::with_leaders(std::span<const std::uint16_t> leaders) const {
  FoldTree tree;
  tree.ranks_ = ranks_;
  tree.root_ = led(root_, leaders).value_or(Part());
  return tree;
}

/// None of a rank that does not lead, or of a switch that has only such.
std::optional<FoldTree::Part> FoldTree::led(const Part& part,
                                            std::span<const std::uint16_t> leaders) {
  Part changed{part.rank, {}};
  if (!part.parts.empty()) {
    for (const Part& child : part.parts) {
      if (std::optional<Part> next = led(child, leaders)) {
        changed.parts.push_back(std::move(*next));
      }
    }
    return changed.parts.empty() ? std::nullopt : std::optional(std::move(changed));
  }
  for (std::uint16_t rank = 0; rank < leaders.size(); ++rank) {
    if (leaders[rank] == part.rank) {
      changed.parts.push_back({rank, {}});
    }
  }
  if (changed.parts.empty()) {
    return std::nullopt;
  }
  return changed.parts.size() == 1 ? std::move(changed.parts.front()) : std::move(changed);
}

/// Reads a text from its beginning; each call takes what it has read.
class FoldTree::Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  bool is_at_end() const { return rest_.empty(); }

  std::uint16_t ranks() const { return ranks_; }

  /// A list with at least one part.
  std::optional<Part> list() {
    Part part;
    if (!take('[')) {
      return std::nullopt;
    }
    do {
      std::optional<Part> next = rest_.starts_with('[') ? list() : rank();
      if (!next) {
        return std::nullopt;
      }
      part.parts.push_back(std::move(*next));
    } while (take(','));
    return take(']') ? std::optional(std::move(part)) : std::nullopt;
  }

 private:
  bool take(char wanted) {
    if (!rest_.starts_with(wanted)) {
      return false;
    }
    rest_.remove_prefix(1);
    return true;
  }

  /// The next one.
  std::optional<Part> rank() {
    std::uint16_t number = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc() || number != ranks_ || number >= kMaxWorld) {
      return std::nullopt;
    }
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    ++ranks_;
    return Part{number, {}};
  }

  std::string_view rest_;
  std::uint16_t ranks_ = 0;
};

std::optional<FoldTree> FoldTree::parse(std::string_view text) {
  Parser parser(text);
  std::optional<Part> root = parser.list();
  if (!root || !parser.is_at_end()) {
    return std::nullopt;
  }
  FoldTree tree;
  tree.root_ = std::move(*root);
  tree.ranks_ = parser.ranks();
  return tree;
}

bool FoldTree::is_flat() const {
  return std::ranges::all_of(root_.parts, [](const Part& part) { return part.parts.empty(); });
}

void FoldTree::reduce(std::span<std::byte> out, std::span<const std::byte* const> inputs,
                      op::ReduceKernel kernel) const {
  if (root_.parts.empty()) {
    return kernel(out.data(), inputs.data(), static_cast<unsigned>(inputs.size()), out.size(), {});
  }
  fold(root_, out, inputs, kernel);
}

void FoldTree::fold(const Part& part, std::span<std::byte> out,
                    std::span<const std::byte* const> inputs, op::ReduceKernel kernel) {
  std::vector<std::vector<std::byte>> sums;
  sums.reserve(part.parts.size()); // the pointers stay valid
  std::vector<const std::byte*> pointers;
  for (const Part& child : part.parts) {
    if (child.parts.empty()) {
      pointers.push_back(inputs[child.rank]);
    } else {
      fold(child, sums.emplace_back(out.size()), inputs, kernel);
      pointers.push_back(sums.back().data());
    }
  }
  kernel(out.data(), pointers.data(), static_cast<unsigned>(pointers.size()), out.size(), {});
}

} // namespace weir::app
