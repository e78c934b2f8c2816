// SPDX-License-Identifier: BSD-3-Clause
#include "manager/scheduler_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <string_view>

namespace weir::manager {
namespace {

constexpr std::size_t kLongestName = 63; // of a label's value
constexpr std::size_t kNobody = std::numeric_limits<std::size_t>::max();

/// A leaf, or all switches that hold the same leaves together.
struct Group {
  std::string name;
  std::vector<std::string> members; // hosts of a leaf, else groups
  bool is_leaf = false;
  std::size_t parent = kNobody;
};

/// Which switches are connected by those that were joined so far.
class Islands {
 public:
  explicit Islands(std::size_t switches) : next_(switches) {
    std::iota(next_.begin(), next_.end(), std::size_t{0});
  }

  std::size_t of(std::size_t at) const {
    while (next_[at] != at) {
      at = next_[at];
    }
    return at;
  }

  void join(std::size_t one, std::size_t other) {
    const auto [first, last] = std::minmax({of(one), of(other)});
    next_[last] = first;
  }

 private:
  std::vector<std::size_t> next_;
};

bool is_plain(const std::string& name) {
  constexpr std::string_view others = "-_.";
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !name.empty() && name.size() <= kLongestName && is_letter(name.front()) &&
         is_letter(name.back()) && std::ranges::all_of(name, [&](char c) {
           return is_letter(c) || others.find(c) != std::string_view::npos;
         });
}

const std::string& checked(const std::string& name) {
  if (!is_plain(name)) {
    throw NotForSchedulers(fmt::format("found the name '{}'; allowed for schedulers: letters, "
                                       "digits and -_. between them, at most {}",
                                       name, kLongestName));
  }
  return name;
}

std::map<std::string, std::size_t> numbers_of(const v1::FabricPicture& picture) {
  std::map<std::string, std::size_t> number;
  for (const v1::PictureSwitch& one : picture.switches()) {
    number.emplace(one.name(), number.size());
  }
  return number;
}

/// The leaves, then what joins them, level by level: a switch of a level joins all that is below
/// it.
class Tree {
 public:
  explicit Tree(const v1::FabricPicture& picture)
      : picture_(picture), number_(numbers_of(picture)), islands_(number_.size()) {
    add_leaves();
    std::uint32_t highest = 0;
    for (const v1::PictureSwitch& one : picture_.switches()) {
      highest = std::max(highest, one.level());
    }
    for (std::uint32_t level = 0; level <= highest; ++level) {
      join(level);
    }
  }

  const std::vector<Group>& groups() const { return groups_; }

 private:
  const v1::PictureSwitch& at(std::size_t number) const {
    return picture_.switches(static_cast<int>(number));
  }

  void add_leaves() {
    std::map<std::size_t, std::size_t> leaf_at;
    for (const v1::PictureHost& host : picture_.hosts()) {
      const std::size_t number = number_.at(host.switch_name());
      const auto [leaf, is_new] = leaf_at.emplace(number, groups_.size());
      if (is_new) {
        groups_.push_back({.name = checked(host.switch_name()), .members = {}, .is_leaf = true});
        number_of_.push_back(number);
      }
      groups_[leaf->second].members.push_back(checked(host.name()));
    }
  }

  void join(std::uint32_t level) {
    for (const v1::PictureLink& link : picture_.links()) {
      const std::size_t one = number_.at(link.one());
      const std::size_t other = number_.at(link.other());
      if (std::max(at(one).level(), at(other).level()) <= level) {
        islands_.join(one, other);
      }
    }
    std::map<std::size_t, std::vector<std::size_t>> under; // by island: groups without a parent
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      if (groups_[group].parent == kNobody) {
        under[islands_.of(number_of_[group])].push_back(group);
      }
    }
    for (const auto& [island, groups] : under) {
      if (groups.size() > 1) {
        add(name_of(island, level, groups), groups);
      }
    }
  }

  /// Leaves may be joined without a switch above them.
  std::string name_of(std::size_t island, std::uint32_t level,
                      const std::vector<std::size_t>& groups) const {
    for (std::size_t number = 0; level != 0 && number < number_.size(); ++number) {
      if (at(number).level() == level && islands_.of(number) == island) {
        return checked(at(number).name());
      }
    }
    return checked(fmt::format("{}-{}", groups_[groups.front()].name, groups_[groups.back()].name));
  }

  void add(std::string name, const std::vector<std::size_t>& groups) {
    Group joined{.name = std::move(name), .members = {}};
    for (const std::size_t group : groups) {
      groups_[group].parent = groups_.size();
      joined.members.push_back(groups_[group].name);
    }
    number_of_.push_back(number_of_[groups.front()]);
    groups_.push_back(std::move(joined));
  }

  const v1::FabricPicture& picture_;
  const std::map<std::string, std::size_t> number_; // of a switch
  Islands islands_;
  std::vector<Group> groups_;          // members before those that they are members of
  std::vector<std::size_t> number_of_; // of a group: some switch in it
};

} // namespace

std::string slurm_of(const v1::FabricPicture& picture) {
  const Tree tree(picture);
  std::string text;
  for (const Group& group : tree.groups()) {
    text += fmt::format("SwitchName={} {}={}\n", group.name, group.is_leaf ? "Nodes" : "Switches",
                        fmt::join(group.members, ","));
  }
  return text;
}

std::string kubernetes_of(const v1::FabricPicture& picture, const std::vector<std::string>& keys) {
  const Tree tree(picture);
  std::string text;
  for (const Group& leaf : tree.groups()) {
    if (!leaf.is_leaf) {
      continue;
    }
    std::string labels;
    const Group* group = &leaf;
    for (std::size_t tier = 0; group != nullptr; ++tier) {
      if (tier == keys.size()) {
        throw NotForSchedulers(fmt::format("found {} keys; allowed: one for each level of the "
                                           "fabric, which has more",
                                           keys.size()));
      }
      labels += fmt::format(" {}={}", keys[tier], group->name);
      group = group->parent == kNobody ? nullptr : &tree.groups()[group->parent];
    }
    for (const std::string& host : leaf.members) {
      text += fmt::format("kubectl label --overwrite node {}{}\n", host, labels);
    }
  }
  return text;
}

} // namespace weir::manager
