// SPDX-License-Identifier: BSD-3-Clause
#include "config/ring_tree.hpp"

#include "config/fields.hpp"
#include "config/once.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace weir::config {
namespace {

using ring::Child;
using ring::ChildKind;
using yaml::Reader;

/// Who is behind a port.
enum class Behind { hosts, a_switch };

/// Where a port is named.
struct Named {
  std::string key;
  int line;
  Behind behind;
};

/// Whoever shares a switch's port could send in its name.
class PortsTaken {
 public:
  void add(std::uint16_t port, const Reader& node, Behind behind) {
    const auto [entry, is_new] = taken_.emplace(port, Named{node.key(), node.line(), behind});
    const Named& known = entry->second;
    if (!is_new && (behind == Behind::a_switch || known.behind == Behind::a_switch)) {
      node.fail(fmt::format("{}, which {} on line {} has too", node.found(), known.key, known.line),
                "a port of its own for each switch, below and above");
    }
  }

 private:
  std::map<std::uint16_t, Named> taken_;
};

/// "rank 1", "ranks 2 to 3".
std::string ranks_in_words(const ring::RankRange& ranks) {
  return ranks.count == 1 ? fmt::format("rank {}", ranks.first)
                          : fmt::format("ranks {} to {}", ranks.first, ranks.last());
}

std::string all_ranks_of(const ring::RingSpec& ring) {
  return ranks_in_words({0, ring.world()});
}

ring::RankRange range_of(const std::vector<Child>& children) {
  const std::uint16_t first = children.front().ranks.first;
  return {first, static_cast<std::uint16_t>(children.back().ranks.last() - first + 1u)};
}

class TreeReader {
 public:
  TreeReader(const PortPlaces& ports, ring::RingSpec& ring) : ports_(ports), ring_(ring) {}

  void read_parent(const Reader& node) {
    const Reader port = node.at("port");
    ring_.parent->port = ports_.named_at(port);
    taken_.add(ring_.parent->port, port, Behind::a_switch);
    add_name(ring_.parent->name, node.at("switch"));
  }

  void read_child(const Reader& node) {
    Child child;
    read_map(child_fields(), node, child);
    check_kind(node);
    const bool is_rank = child.kind == ChildKind::rank;
    check_ranks(child, node.at(is_rank ? "rank" : "ranks"));
    if (!is_rank) {
      add_name(child.name, node.at("switch"));
    }
    const Reader port = node.at("port");
    if (port.is_present() || !is_rank) {
      child.port = ports_.named_at(port);
      taken_.add(*child.port, port, is_rank ? Behind::hosts : Behind::a_switch);
    }
    ring_.children.push_back(std::move(child));
  }

 private:
  void add_name(const std::string& name, const Reader& node) {
    names_.add(name, node, node.found(), "each switch once");
  }

  static void check_kind(const Reader& node) {
    const bool is_rank = node.at("rank").is_present();
    const Reader below = node.at("switch");
    const Reader ranks = node.at("ranks");
    if (!is_rank && !below.is_present()) {
      node.fail("neither rank: nor switch:",
                "{rank: NUMBER}, or {switch: NAME, ranks: [FIRST, LAST], port: PORT}");
    }
    if (is_rank && below.is_present()) {
      below.fail(below.found() + " beside rank:",
                 "rank: for a rank, or switch: with ranks: for a switch");
    }
    if (is_rank && ranks.is_present()) {
      ranks.fail(ranks.found() + " beside rank:", "ranks: for a switch alone");
    }
    if (!is_rank && !ranks.is_present()) {
      ranks.fail(ranks.found(), "[FIRST, LAST], the ranks that the switch answers for");
    }
  }

  void check_ranks(const Child& child, const Reader& node) {
    const std::uint16_t last = child.ranks.last();
    if (last >= ring_.world()) {
      node.fail(fmt::format("rank {} with {} members", last, ring_.world()),
                "ranks of the ring, " + all_ranks_of(ring_));
    }
    if (ring_.children.empty()) {
      first_ = node;
      return;
    }
    const ring::RankRange& before = ring_.children.back().ranks;
    if (child.ranks.first != before.last() + 1) {
      check_first();
      node.fail(fmt::format("{} after {}", ranks_in_words(child.ranks), ranks_in_words(before)),
                fmt::format("a child that begins with rank {}: children stand in ring order and "
                            "leave no rank out",
                            before.last() + 1));
    }
  }

  /// Where children are out of order, a root's first one may be the cause.
  void check_first() const {
    const ring::RankRange& first = ring_.children.front().ranks;
    if (!ring_.parent && first.first != 0) {
      first_->fail(ranks_in_words(first) + " first, and no parent:",
                   "a child that begins with rank 0: children stand in ring order");
    }
  }

  const PortPlaces& ports_;
  ring::RingSpec& ring_;
  std::optional<Reader> first_; // what says the first child's ranks
  PortsTaken taken_;
  Once<std::string> names_; // of switches
};

void check_ports_of_members(const Reader& node) {
  for (const Reader& member : items_of(ring_fields(), node, "members")) {
    if (const Reader port = member.at("port"); port.is_present()) {
      port.fail(port.found() + " beside children:",
                "port: in the entry of this rank under children:");
    }
  }
}

/// A root has all ranks, and more than one child.
void check_root(const Reader& node, const ring::RingSpec& ring) {
  const ring::RankRange range = range_of(ring.children);
  if (range.count != ring.world()) {
    node.fail(
        fmt::format("children for {} of {}, and no parent:", ranks_in_words(range), ring.world()),
        fmt::format("children for {}, or parent:, the switch that has the others",
                    all_ranks_of(ring)));
  }
  if (ring.children.size() == 1) {
    node.fail("one child, and no parent:", "two children or more, or parent:, the switch above");
  }
}

void check_parent(const Reader& node, const ring::RingSpec& ring) {
  const bool has_own_children = !ring.children.empty();
  if (!has_own_children || range_of(ring.children).count == ring.world()) {
    node.fail(fmt::format("a parent, and {}", has_own_children
                                                  ? "children for all ranks"
                                                  : "no children:, so that all ranks are"),
              fmt::format("children: for some of {}, or no parent", all_ranks_of(ring)));
  }
}

} // namespace

void read_tree(const Reader& node, const PortPlaces& ports, ring::RingSpec& ring) {
  const Reader children = node.at("children");
  const Reader parent = node.at("parent");
  TreeReader tree(ports, ring);
  if (parent.is_present()) {
    tree.read_parent(parent);
  }
  if (children.is_present()) {
    check_ports_of_members(node);
    for (const Reader& item : items_of(ring_fields(), node, "children")) {
      tree.read_child(item);
    }
  }
  if (parent.is_present()) {
    check_parent(parent, ring);
  } else if (children.is_present()) {
    check_root(children, ring);
  }
}

void forget_usual_children(ring::RingSpec& ring) {
  const bool is_usual = !ring.parent && std::ranges::all_of(ring.children, [](const Child& child) {
    return child.kind == ChildKind::rank;
  });
  if (!is_usual) {
    return;
  }
  for (const Child& child : ring.children) {
    ring.members[child.ranks.first].port = child.port;
  }
  ring.children.clear();
}

std::string children_in_words(const ring::RingSpec& ring) {
  std::vector<std::string> children;
  for (const Child& child : ring.children) {
    children.push_back(child.kind == ChildKind::rank
                           ? fmt::format("{}", child.ranks.first)
                           : fmt::format("[{}, {}]", child.ranks.first, child.ranks.last()));
  }
  return joined(children);
}

} // namespace weir::config
