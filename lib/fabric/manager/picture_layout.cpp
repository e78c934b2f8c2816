// SPDX-License-Identifier: BSD-3-Clause
#include "manager/picture_layout.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace weir::manager {
namespace {

constexpr double kRim = 16;
constexpr double kColumn = 132; // of a leaf
constexpr double kAreaWidth = 116;
constexpr double kSwitchHeight = 44;
constexpr double kHostHeight = 22;
constexpr double kMarkedHeight = 36; // with a line below its name
constexpr double kGap = 4;           // between hosts
constexpr double kCell = 12;
constexpr std::size_t kCellsInARow = 7;
constexpr double kCellWidth = (kAreaWidth - kCell) / (kCellsInARow - 1);
constexpr std::size_t kMostNames = 12; // of a leaf's hosts, each with its name
constexpr std::uint32_t kHighest = 8;  // a level; a switch that reaches no host has none

std::uint32_t level_of(const v1::PictureSwitch& one) {
  return std::min(one.level(), kHighest);
}

const Area* found_in(const std::map<std::string, Area>& boxes, const std::string& name) {
  const auto found = boxes.find(name);
  return found == boxes.end() ? nullptr : &found->second;
}

} // namespace

Layout::Layout(const v1::FabricPicture& picture) {
  for (const v1::PictureHost& host : picture.hosts()) {
    hosts_of_[host.switch_name()].push_back(host.name());
    if (!host.drained().empty()) {
      marked_.insert(host.name());
    }
  }
  for (const v1::Job& job : picture.jobs()) {
    marked_.insert(job.waits_for().begin(), job.waits_for().end());
  }
  for (const v1::PictureSwitch& one : picture.switches()) {
    top_ = std::max(top_, level_of(one));
  }
  level_height_ = std::min(280.0, 104 + 10 * static_cast<double>(hosts_of_.size()));
  place_leaves(picture);
  place_uppers(picture);
  place_hosts(picture);
  place_links(picture);
}

const Area* Layout::host(const std::string& name) const {
  return found_in(hosts_, name);
}

const Area* Layout::switch_named(const std::string& name) const {
  return found_in(switches_, name);
}

double Layout::row_of(std::uint32_t level) const {
  return kRim + kSwitchHeight / 2 + (top_ - level) * level_height_;
}

void Layout::place_leaves(const v1::FabricPicture& picture) {
  std::map<std::uint32_t, std::size_t> count_of;
  std::size_t most = 2;
  for (const v1::PictureSwitch& one : picture.switches()) {
    most = std::max(most, ++count_of[level_of(one)]);
  }
  width_ = 2 * kRim + kColumn * static_cast<double>(most);
  place_level(picture, 0);
}

void Layout::place_uppers(const v1::FabricPicture& picture) {
  for (std::uint32_t level = 1; level <= top_; ++level) {
    place_level(picture, level);
  }
}

/// Each above the middle of those below it to which it has links, as far as others leave it room.
void Layout::place_level(const v1::FabricPicture& picture, std::uint32_t level) {
  std::vector<std::pair<double, std::string>> row;
  for (const v1::PictureSwitch& one : picture.switches()) {
    if (level_of(one) != level) {
      continue;
    }
    double sum = 0;
    double count = 0;
    for (const v1::PictureLink& link : picture.links()) {
      const bool is_its = link.one() == one.name() || link.other() == one.name();
      const Area* const below = switch_named(link.one() == one.name() ? link.other() : link.one());
      if (is_its && below != nullptr) {
        sum += below->centre.x;
        ++count;
      }
    }
    row.emplace_back(count == 0 ? 0 : sum / count, one.name());
  }
  std::ranges::stable_sort(row, {}, &std::pair<double, std::string>::first);
  const double each =
      (width_ - 2 * kRim) / static_cast<double>(std::max<std::size_t>(1, row.size()));
  double x = kRim + each / 2;
  for (const auto& [middle, name] : row) {
    switches_[name] = {{x, row_of(level)}, kAreaWidth, kSwitchHeight};
    x += each;
  }
}

void Layout::place_hosts(const v1::FabricPicture& picture) {
  height_ = row_of(0) + kSwitchHeight / 2 + kRim;
  for (const v1::PictureSwitch& one : picture.switches()) {
    const std::vector<std::string>& hosts = hosts_of_[one.name()];
    if (!hosts.empty()) {
      const Area& leaf = switches_[one.name()];
      const double begin = leaf.bottom() + 3 * kGap;
      height_ = std::max(height_, place_rows(hosts, leaf, place_cells(hosts, leaf, begin)) + kRim);
    }
  }
}

/// From `y` on, those of many that are well. Returns where the next one begins.
double Layout::place_cells(const std::vector<std::string>& hosts, const Area& leaf, double y) {
  if (hosts.size() <= kMostNames) {
    return y;
  }
  std::size_t count = 0;
  for (const std::string& host : hosts) {
    if (!marked_.contains(host)) {
      const std::size_t row = count / kCellsInARow;
      const std::size_t column = count++ % kCellsInARow;
      cells_.insert(host);
      hosts_[host] = {{leaf.left() + kCell / 2 + static_cast<double>(column) * kCellWidth,
                       y + kCell / 2 + static_cast<double>(row) * (kCell + kGap)},
                      kCell,
                      kCell};
    }
  }
  const std::size_t rows = (count + kCellsInARow - 1) / kCellsInARow;
  return y + static_cast<double>(rows) * (kCell + kGap);
}

/// The others, each with its name.
double Layout::place_rows(const std::vector<std::string>& hosts, const Area& leaf, double y) {
  for (const std::string& host : hosts) {
    if (!cells_.contains(host)) {
      const double high = marked_.contains(host) ? kMarkedHeight : kHostHeight;
      hosts_[host] = {{leaf.centre.x, y + high / 2}, kAreaWidth, high};
      y += high + kGap;
    }
  }
  return y;
}

/// The links that a switch has on one side leave it side by side, in the order of their other ends.
void Layout::place_links(const v1::FabricPicture& picture) {
  links_.resize(static_cast<std::size_t>(picture.links_size()));

  struct Socket {
    double other_x;
    Point* end;
  };

  std::map<std::pair<std::string, bool>, std::vector<Socket>> sockets; // and whether above
  for (std::size_t at = 0; at < links_.size(); ++at) {
    const v1::PictureLink& link = picture.links(static_cast<int>(at));
    const Area& one = switches_[link.one()];
    const Area& other = switches_[link.other()];
    const bool is_one_low = one.centre.y >= other.centre.y;
    Ends& ends = links_[at];
    ends.is_level = one.centre.y == other.centre.y;
    const Area& low = is_one_low ? one : other;
    const Area& high = is_one_low ? other : one;
    ends.low.y = low.top();
    ends.high.y = ends.is_level ? high.top() : high.bottom();
    sockets[{is_one_low ? link.one() : link.other(), true}].push_back({high.centre.x, &ends.low});
    sockets[{is_one_low ? link.other() : link.one(), ends.is_level}].push_back(
        {low.centre.x, &ends.high});
  }
  for (auto& [place, row] : sockets) {
    std::ranges::stable_sort(row, {}, &Socket::other_x);
    const Area& box = switches_[place.first];
    for (std::size_t at = 0; at < row.size(); ++at) {
      row[at].end->x = box.left() + box.width * static_cast<double>(at + 1) /
                                        static_cast<double>(row.size() + 1);
    }
  }
}

} // namespace weir::manager
