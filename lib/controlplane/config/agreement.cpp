// SPDX-License-Identifier: BSD-3-Clause
#include "config/agreement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace weir::config {
namespace {

using ring::Child;
using ring::ChildKind;
using ring::RankRange;
using ring::RingSpec;

/// What a switch's file says of a ring.
struct Part {
  const SwitchConfig* at = nullptr;
  std::size_t index = 0; // of the ring in the file

  const RingSpec& ring() const { return at->config.rings[index]; }
};

using PartsOfRing = std::map<std::string, Part, std::less<>>; // by the switch's name

/// "[2, 3]".
std::string in_brackets(const RankRange& ranks) {
  return fmt::format("[{}, {}]", ranks.first, ranks.last());
}

/// The ranks that a switch answers for.
RankRange ranks_of(const RingSpec& ring) {
  if (ring.children.empty()) {
    return {0, ring.world()};
  }
  const std::uint16_t first = ring.children.front().ranks.first;
  return {first, static_cast<std::uint16_t>(ring.children.back().ranks.last() - first + 1u)};
}

/// The names of the parts that fulfil it.
template <class Condition>
std::vector<std::string> switches_where(const PartsOfRing& parts, const Condition& condition) {
  std::vector<std::string> names;
  for (const auto& [name, part] : parts) {
    if (condition(part.ring())) {
      names.push_back(name);
    }
  }
  return names;
}

std::vector<std::string> roots_of(const PartsOfRing& parts) {
  return switches_where(parts, [](const RingSpec& ring) { return !ring.parent; });
}

std::map<std::uint32_t, PartsOfRing> parts_by_ring(std::span<const SwitchConfig> switches) {
  std::map<std::uint32_t, PartsOfRing> rings;
  for (const SwitchConfig& one : switches) {
    for (std::size_t index = 0; index < one.config.rings.size(); ++index) {
      rings[one.config.rings[index].id].emplace(one.name, Part{&one, index});
    }
  }
  return rings;
}

/// Looks at one ring.
class RingCheck {
 public:
  RingCheck(std::uint32_t id, const PartsOfRing& parts, std::span<const SwitchConfig> switches)
      : id_(id), parts_(parts), first_(first_in(switches)), switches_(switches) {}

  std::vector<std::string> run() {
    for (const SwitchConfig& one : switches_) {
      if (const auto part = parts_.find(one.name); part != parts_.end()) {
        check_numbers(part->second);
        check_members(part->second);
        check_parent(part->second);
        check_children(part->second);
      }
    }
    check_roots();
    if (said_.empty()) {
      check_circles();
    }
    return std::move(said_);
  }

 private:
  const Part& first_in(std::span<const SwitchConfig> switches) const {
    const auto first = std::ranges::find_if(
        switches, [&](const SwitchConfig& one) { return parts_.contains(one.name); });
    return parts_.find(first->name)->second;
  }

  void say(const Part& part, std::string_view key, std::string_view found,
           std::string_view allowed) {
    said_.push_back(fmt::format("{}: rings[{}].{}: found {} in ring {}; allowed: {}", part.at->file,
                                part.index, key, found, id_, allowed));
  }

  std::string as_the_first(std::string_view value) const {
    return fmt::format("{}, as {} has it", value, first_.at->file);
  }

  void check_number(const Part& part, std::string_view key, std::uint32_t here,
                    std::uint32_t there) {
    if (here != there) {
      say(part, key, fmt::format("{}", here), as_the_first(fmt::format("{}", there)));
    }
  }

  void check_numbers(const Part& part) {
    const RingSpec& here = part.ring();
    const RingSpec& there = first_.ring();
    check_number(part, "window", here.window, there.window);
    check_number(part, "max_message_bytes", here.max_message_bytes, there.max_message_bytes);
    check_number(part, "mtu", here.mtu, there.mtu);
  }

  void check_members(const Part& part) {
    const std::vector<ring::Member>& here = part.ring().members;
    const std::vector<ring::Member>& there = first_.ring().members;
    if (here.size() != there.size()) {
      say(part, "members", fmt::format("{} members", here.size()),
          as_the_first(fmt::format("{}", there.size())));
      return;
    }
    const auto [one, other] =
        std::ranges::mismatch(here, there, {}, &ring::Member::ip, &ring::Member::ip);
    if (one != here.end()) {
      say(part, fmt::format("members[{}].ip", one - here.begin()), to_string(one->ip),
          as_the_first(to_string(other->ip)));
    }
  }

  /// nullptr, and says so, if no file has the switch or its file has not the ring.
  const Part* part_named(const std::string& name, const Part& by, std::string_view key) {
    if (const auto named = parts_.find(name); named != parts_.end()) {
      return &named->second;
    }
    const auto file = std::ranges::find(switches_, name, &SwitchConfig::name);
    if (file != switches_.end()) {
      say(by, key, fmt::format("{}, whose file {} does not have it,", name, file->file),
          "a switch that has the ring");
    } else {
      std::vector<std::string_view> names;
      std::ranges::transform(switches_, std::back_inserter(names), &SwitchConfig::name);
      say(by, key, name, fmt::format("the name of a file: {}", fmt::join(names, ", ")));
    }
    return nullptr;
  }

  void check_parent(const Part& part) {
    const std::optional<ring::Parent>& parent = part.ring().parent;
    const Part* const above = parent ? part_named(parent->name, part, "parent.switch") : nullptr;
    if (above == nullptr) {
      return;
    }
    const auto is_this = [&](const Child& child) {
      return child.kind == ChildKind::switch_below && child.name == part.at->name;
    };
    if (std::ranges::none_of(above->ring().children, is_this)) {
      say(part, "parent.switch", parent->name,
          fmt::format("a switch that has {} among its children", part.at->name));
    }
  }

  void check_children(const Part& part) {
    const std::vector<Child>& children = part.ring().children;
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (children[i].kind == ChildKind::switch_below) {
        check_child(part, fmt::format("children[{}]", i), children[i]);
      }
    }
  }

  void check_child(const Part& part, const std::string& key, const Child& child) {
    const Part* const below = part_named(child.name, part, key + ".switch");
    if (below == nullptr) {
      return;
    }
    const RingSpec& ring = below->ring();
    if (!ring.parent || ring.parent->name != part.at->name) {
      say(part, key + ".switch",
          fmt::format("{}, which has {}{}", child.name, ring.parent ? "the parent " : "no parent",
                      ring.parent ? ring.parent->name : ""),
          fmt::format("a switch whose parent is {}", part.at->name));
    }
    const RankRange ranks = ranks_of(ring);
    if (ranks.first != child.ranks.first || ranks.count != child.ranks.count) {
      say(part, key + ".ranks", in_brackets(child.ranks),
          fmt::format("{}, for which {} has children", in_brackets(ranks), below->at->file));
    }
  }

  void check_roots() {
    const std::vector<std::string> roots = roots_of(parts_);
    if (roots.size() != 1) {
      said_.push_back(fmt::format(
          "ring {}: found {}; allowed: one switch without a parent", id_,
          roots.empty() ? "no root"
                        : fmt::format("{} roots: {}", roots.size(), fmt::join(roots, ", "))));
    }
  }

  bool leads_to_root(std::string name) const {
    std::set<std::string> seen;
    while (seen.insert(name).second) {
      const std::optional<ring::Parent>& parent = parts_.find(name)->second.ring().parent;
      if (!parent) {
        return true;
      }
      name = parent->name;
    }
    return false;
  }

  /// All parents are there.
  void check_circles() {
    std::vector<std::string> turning;
    for (const auto& [name, part] : parts_) {
      if (!leads_to_root(name)) {
        turning.push_back(name);
      }
    }
    if (!turning.empty()) {
      said_.push_back(fmt::format("ring {}: found a circle of parents: {}; allowed: parents that "
                                  "lead to the root",
                                  id_, fmt::join(turning, ", ")));
    }
  }

  const std::uint32_t id_;
  const PartsOfRing& parts_;
  const Part& first_; // that the others are compared with
  const std::span<const SwitchConfig> switches_;
  std::vector<std::string> said_;
};

} // namespace

std::vector<std::string> disagreements(std::span<const SwitchConfig> switches) {
  std::vector<std::string> all;
  for (const auto& [id, parts] : parts_by_ring(switches)) {
    std::ranges::move(RingCheck(id, parts, switches).run(), std::back_inserter(all));
  }
  return all;
}

std::vector<AgreedRing> agreed_rings(std::span<const SwitchConfig> switches) {
  std::vector<AgreedRing> rings;
  for (const auto& [id, parts] : parts_by_ring(switches)) {
    rings.push_back(
        {id, parts.begin()->second.ring().world(), roots_of(parts).front(), parts.size()});
  }
  return rings;
}

} // namespace weir::config
