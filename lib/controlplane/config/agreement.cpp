// SPDX-License-Identifier: BSD-3-Clause
#include "config/agreement.hpp"

#include "config/key_lines.hpp"

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

/// The places of keys in the files.
class Places {
 public:
  /// "rack0.yaml:12".
  std::string of(const SwitchConfig& one, const std::string& key) {
    if (one.text.empty()) {
      return one.file;
    }
    const auto known = lines_.try_emplace(one.file, one.text, one.file).first;
    return fmt::format("{}:{}", one.file, known->second.line_of(key));
  }

 private:
  std::map<std::string, KeyLines> lines_; // by file, of those that are in an error
};

/// The first few, and how many more there are.
std::string some_of(const std::vector<std::string>& places) {
  constexpr std::size_t most = 4;
  if (places.size() <= most) {
    return fmt::format("{}", fmt::join(places, ", "));
  }
  return fmt::format("{} and {} more", fmt::join(places.begin(), places.begin() + most, ", "),
                     places.size() - most);
}

/// Looks at one ring.
class RingCheck {
 public:
  RingCheck(std::uint32_t id, const PartsOfRing& parts, std::span<const SwitchConfig> switches,
            Places& places)
      : id_(id), parts_(parts), switches_(switches), places_(places) {
    for (const SwitchConfig& one : switches) {
      if (const auto part = parts.find(one.name); part != parts.end()) {
        in_order_.push_back(&part->second);
      }
    }
  }

  std::vector<Disagreement> run() {
    check_numbers();
    check_members();
    for (const Part* const part : in_order_) {
      check_parent(*part);
      check_children(*part);
    }
    check_roots();
    if (said_.empty()) {
      check_circles();
    }
    return std::move(said_);
  }

 private:
  using Parts = std::vector<const Part*>;

  std::string place(const Part& part, std::string_view key) {
    return places_.of(*part.at,
                      fmt::format("rings[{}]{}{}", part.index, key.empty() ? "" : ".", key));
  }

  void say(std::string text, const Parts& about) {
    std::vector<std::string> files;
    for (const Part* const part : about) {
      if (std::ranges::find(files, part->at->file) == files.end()) {
        files.push_back(part->at->file);
      }
    }
    said_.push_back({std::move(text), std::move(files)});
  }

  /// What is wrong in one file, by what another one says.
  void say_of(const Part& part, std::string_view key, std::string_view found,
              std::string_view allowed, const Part* other = nullptr) {
    say(fmt::format("{}: rings[{}].{}: found {} in ring {}; allowed: {}", place(part, key),
                    part.index, key, found, id_, allowed),
        other == nullptr ? Parts{&part} : Parts{&part, other});
  }

  /// What `text_of` says of a part, and who says it; what fewest say is first.
  template <class TextOf>
  std::vector<std::pair<std::string, Parts>> groups_by(const TextOf& text_of) const {
    std::vector<std::pair<std::string, Parts>> groups;
    for (const Part* const part : in_order_) {
      const std::string text = text_of(part->ring());
      auto known = std::ranges::find(groups, text, &std::pair<std::string, Parts>::first);
      if (known == groups.end()) {
        known = groups.insert(groups.end(), {text, {}});
      }
      known->second.push_back(part);
    }
    std::ranges::stable_sort(groups, {}, [](const auto& group) { return group.second.size(); });
    return groups;
  }

  /// Which of several values is right, no file can know. Returns whether there is one alone.
  template <class TextOf>
  bool check_same(const std::string& key, const TextOf& text_of) {
    const auto groups = groups_by(text_of);
    if (groups.size() < 2) {
      return true;
    }
    std::vector<std::string> found;
    for (const auto& [text, parts] : groups) {
      std::vector<std::string> there;
      for (const Part* const part : parts) {
        there.push_back(place(*part, key));
      }
      found.push_back(fmt::format("{} in {}", text, some_of(there)));
    }
    say(fmt::format("ring {}: found {}; allowed: the same in the files of all its switches", id_,
                    fmt::join(found, ", and ")),
        in_order_);
    return false;
  }

  void check_numbers() {
    check_same("window",
               [](const RingSpec& ring) { return fmt::format("window {}", ring.window); });
    check_same("max_message_bytes", [](const RingSpec& ring) {
      return fmt::format("max_message_bytes {}", ring.max_message_bytes);
    });
    check_same("mtu", [](const RingSpec& ring) { return fmt::format("mtu {}", ring.mtu); });
  }

  /// Of members in another order, the first is told.
  void check_members() {
    if (!check_same("members", [](const RingSpec& ring) {
          return fmt::format("{} members", ring.members.size());
        })) {
      return;
    }
    const std::vector<ring::Member>& first = in_order_.front()->ring().members;
    std::size_t rank = first.size();
    for (const Part* const part : in_order_) {
      const auto other = std::ranges::mismatch(first, part->ring().members, {}, &ring::Member::ip,
                                               &ring::Member::ip);
      rank = std::min(rank, static_cast<std::size_t>(other.in1 - first.begin()));
    }
    if (rank < first.size()) {
      check_same(fmt::format("members[{}].ip", rank), [rank](const RingSpec& ring) {
        return fmt::format("rank {} at {}", rank, to_string(ring.members[rank].ip));
      });
    }
  }

  /// nullptr, and says so, if no file has the switch or its file has not the ring.
  const Part* part_named(const std::string& name, const Part& by, const std::string& key) {
    if (const auto named = parts_.find(name); named != parts_.end()) {
      return &named->second;
    }
    const auto file = std::ranges::find(switches_, name, &SwitchConfig::name);
    if (file != switches_.end()) {
      say_of(by, key, fmt::format("{}, whose file {} does not have it,", name, file->file),
             "a switch that has the ring");
      said_.back().files.push_back(file->file);
    } else {
      std::vector<std::string> names;
      std::ranges::transform(switches_, std::back_inserter(names), &SwitchConfig::name);
      say_of(by, key, name, fmt::format("the name of a file: {}", some_of(names)));
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
      say_of(part, "parent.switch",
             fmt::format("{}, which has no child {} at {},", parent->name, part.at->name,
                         place(*above, "children")),
             fmt::format("a switch that has {} among its children", part.at->name), above);
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
      say_of(part, key + ".switch",
             fmt::format("{}, which has {}{} at {},", child.name,
                         ring.parent ? "the parent " : "no parent",
                         ring.parent ? ring.parent->name : "", place(*below, "parent")),
             fmt::format("a switch whose parent is {}", part.at->name), below);
    }
    const RankRange ranks = ranks_of(ring);
    if (ranks.first != child.ranks.first || ranks.count != child.ranks.count) {
      say_of(part, key + ".ranks", in_brackets(child.ranks),
             fmt::format("{}, for which {} has children{}, or other children there",
                         in_brackets(ranks), place(*below, "children"), twin_of(*below)),
             below);
    }
  }

  /// Another switch below the same one that has the same ranks: one may be a copy.
  std::string twin_of(const Part& part) {
    const RankRange ranks = ranks_of(part.ring());
    for (const Part* const other : in_order_) {
      const RankRange others = ranks_of(other->ring());
      if (other != &part && other->ring().parent && part.ring().parent &&
          other->ring().parent->name == part.ring().parent->name && others.first == ranks.first &&
          others.count == ranks.count) {
        return fmt::format(" (as {} has: is one a copy?)", place(*other, "children"));
      }
    }
    return {};
  }

  /// "rack0 (rack0.yaml:12)".
  std::string names_and_places(const std::vector<std::string>& names, std::string_view key) {
    std::vector<std::string> texts;
    for (const std::string& name : names) {
      texts.push_back(fmt::format("{} ({})", name, place(parts_.find(name)->second, key)));
    }
    return some_of(texts);
  }

  Parts parts_named(const std::vector<std::string>& names) const {
    Parts parts;
    for (const std::string& name : names) {
      parts.push_back(&parts_.find(name)->second);
    }
    return parts;
  }

  void check_roots() {
    const std::vector<std::string> roots = roots_of(parts_);
    if (roots.empty()) {
      say(fmt::format("ring {}: found no root; allowed: one switch without a parent", id_),
          in_order_);
    } else if (roots.size() > 1) {
      say(fmt::format("ring {}: found {} roots: {}; allowed: one switch without a parent", id_,
                      roots.size(), names_and_places(roots, "")),
          parts_named(roots));
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
      say(fmt::format("ring {}: found a circle of parents: {}; allowed: parents that lead to the "
                      "root",
                      id_, names_and_places(turning, "parent.switch")),
          parts_named(turning));
    }
  }

  const std::uint32_t id_;
  const PartsOfRing& parts_;
  const std::span<const SwitchConfig> switches_;
  Places& places_;
  Parts in_order_; // of the files
  std::vector<Disagreement> said_;
};

} // namespace

std::vector<Disagreement> disagreements(std::span<const SwitchConfig> switches) {
  Places places;
  std::vector<Disagreement> all;
  for (const auto& [id, parts] : parts_by_ring(switches)) {
    std::ranges::move(RingCheck(id, parts, switches, places).run(), std::back_inserter(all));
  }
  return all;
}

std::vector<std::string> switches_around(const ring::RingSpec& ring) {
  std::vector<std::string> names;
  if (ring.parent) {
    names.push_back(ring.parent->name);
  }
  for (const Child& child : ring.children) {
    if (child.kind == ChildKind::switch_below) {
      names.push_back(child.name);
    }
  }
  return names;
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
