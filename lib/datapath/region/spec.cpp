// SPDX-License-Identifier: BSD-3-Clause
#include "region/spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <set>
#include <string_view>
#include <tuple>

namespace weir::region {
namespace {

constexpr std::uint32_t kLeastQueuePair = 2; // 0 and 1 are for management (IBTA §3.9)

struct Limit {
  std::string_view field;
  std::uint64_t found;
  std::uint64_t low;
  std::uint64_t high;
};

template <std::size_t kLimits>
std::string find_excess(const std::string& where, const Limit (&limits)[kLimits]) {
  for (const Limit& limit : limits) {
    if (limit.found < limit.low || limit.found > limit.high) {
      return fmt::format("{}: found {} {}; allowed: {} to {}", where, limit.field, limit.found,
                         limit.low, limit.high);
    }
  }
  return {};
}

std::string find_defect_of_member(const RegionSpec& spec, std::size_t number) {
  const MemberSpec& member = spec.members[number];
  const std::string where = fmt::format("region {}, member {}", spec.id, number);
  const Limit limits[] = {
      {"queue pair", member.queue_pair, kLeastQueuePair, wire::kPsnMask},
      {"first PSN", member.first_psn, 0, wire::kPsnMask},
      {"ack timeout", member.ack_timeout, 1, 31},
      {"reads", member.reads, 1, kMostReads},
      {"base", member.base, 0, std::numeric_limits<std::uint64_t>::max() - spec.bytes + 1},
  };
  if (std::string excess = find_excess(where, limits); !excess.empty()) {
    return excess;
  }
  if (member.ip.is_v4() != spec.members.front().ip.is_v4()) {
    return fmt::format("{}: found address {}; allowed: one of the family of member 0's, {}", where,
                       to_string(member.ip), to_string(spec.members.front().ip));
  }
  return {};
}

std::string find_defect_of_views(const RegionSpec& spec) {
  for (std::size_t number = 0; number < spec.views.size(); ++number) {
    const RegionView& view = spec.views[number];
    const auto before = spec.views.begin() + static_cast<std::ptrdiff_t>(number);
    const std::string found = fmt::format("region {}, view {}: found {} of {}", spec.id, number,
                                          name_of(view.operation), name_of(view.type));
    if (!is_reducible(view.type, view.operation)) {
      return found + "; allowed: and, or and xor of integers only";
    }
    if (std::find(spec.views.begin(), before, view) != before) {
      return found + " twice; allowed: once";
    }
  }
  return {};
}

} // namespace

std::uint64_t most_frames(const RegionSpec& spec) {
  return spec.members.size() * std::uint64_t{spec.window + entries_of(spec)};
}

std::string find_defect(const RegionSpec& spec) {
  const std::string where = fmt::format("region {}", spec.id);
  const Limit limits[] = {
      {"members", spec.members.size(), 2, kMostMembers},
      {"bytes", spec.bytes, kTokenBytes, std::uint64_t{1} << 48},
      {"mtu", spec.mtu, 256, 4096},
      {"window", spec.window, 2, kMostWindow},
      {"patience (ms)", spec.patience_ms, 1, 86'400'000},
      {"forming (ms)", spec.forming_ms, 1, 86'400'000},
      {"views", spec.views.size(), 0, kMostViews},
      {"entries", spec.entries, 1, kMostEntries},
      {"entries times members", entries_of(spec) * spec.members.size(), 0, kMostPlaces},
  };
  if (std::string excess = find_excess(where, limits); !excess.empty()) {
    return excess;
  }
  if (!std::has_single_bit(spec.mtu)) {
    return fmt::format("{}: found mtu {}; allowed: 256, 512, 1024, 2048 and 4096", where, spec.mtu);
  }
  if (std::string defect = find_defect_of_views(spec); !defect.empty()) {
    return defect;
  }
  std::set<std::tuple<wire::IpAddress, std::uint32_t>> seen;
  for (std::size_t number = 0; number < spec.members.size(); ++number) {
    if (std::string defect = find_defect_of_member(spec, number); !defect.empty()) {
      return defect;
    }
    const MemberSpec& member = spec.members[number];
    if (!seen.emplace(member.ip, member.queue_pair).second) {
      return fmt::format("{}, member {}: found queue pair {} at {} twice; allowed: once", where,
                         number, member.queue_pair, to_string(member.ip));
    }
  }
  return {};
}

RegionBirth draw_birth(const RegionSpec& spec, const std::function<std::uint64_t()>& random,
                       const std::function<bool(std::uint32_t)>& is_taken) {
  RegionBirth birth;
  birth.base = random() >> 2 & ~std::uint64_t{0xfff}; // no range wraps
  birth.multicast_key = static_cast<std::uint32_t>(random());
  std::set<std::uint32_t> keys{birth.multicast_key};
  while (birth.view_keys.size() < spec.views.size()) {
    if (const auto key = static_cast<std::uint32_t>(random()); keys.insert(key).second) {
      birth.view_keys.push_back(key);
    }
  }
  std::set<std::uint32_t> drawn;
  while (birth.members.size() < spec.members.size()) {
    const auto queue_pair = static_cast<std::uint32_t>(random() & wire::kPsnMask);
    if (queue_pair < kLeastQueuePair || is_taken(queue_pair) || !drawn.insert(queue_pair).second) {
      continue;
    }
    MemberBirth member{queue_pair, static_cast<std::uint32_t>(random() & wire::kPsnMask), {}};
    const std::uint64_t halves[] = {random(), random()};
    std::memcpy(member.token.data(), halves, kTokenBytes);
    birth.members.push_back(member);
  }
  return birth;
}

} // namespace weir::region
