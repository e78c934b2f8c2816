// SPDX-License-Identifier: BSD-3-Clause
#include "ring/ring.hpp"

#include "wire/big_endian.hpp"
#include "wire/crc32.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <stdexcept>
#include <utility>

namespace weir::ring {
namespace {

std::vector<Child> one_for_each_rank(const RingSpec& spec) {
  std::vector<Child> children;
  for (std::uint16_t rank = 0; rank < spec.world(); ++rank) {
    children.push_back({.ranks = {rank, 1}, .port = spec.members[rank].port, .name = {}});
  }
  return children;
}

void check_ranks(const RingSpec& spec, const std::vector<Child>& children) {
  std::size_t ranks = 0;
  for (std::size_t i = 0; i < children.size(); ++i) {
    const Child& child = children[i];
    const RankRange& own = child.ranks;
    const bool follows = i == 0 || own.first == children[i - 1].ranks.last() + 1;
    if (own.count == 0 || own.first + own.count > spec.world() || !follows) {
      throw std::invalid_argument("a ring's children must cover consecutive ranks of its world");
    }
    if (child.kind == ChildKind::rank && own.count != 1) {
      throw std::invalid_argument("a child that is a rank must cover one rank");
    }
    ranks += own.count;
  }
  if (!spec.parent && (ranks != spec.world() || children.size() < 2)) {
    throw std::invalid_argument(
        "a ring without a parent must have two children or more, which cover its world");
  }
  if (spec.parent && (ranks == 0 || ranks == spec.world())) {
    throw std::invalid_argument(
        "a ring with a parent must have children, which do not cover its world");
  }
}

/// Anybody who shares a switch's port could send in its name.
void check_ports(const RingSpec& spec, const std::vector<Child>& children) {
  std::multiset<std::uint16_t> taken;
  std::vector<std::uint16_t> of_switches;
  if (spec.parent) {
    taken.insert(spec.parent->port);
    of_switches.push_back(spec.parent->port);
  }
  for (const Child& child : children) {
    if (child.port) {
      taken.insert(*child.port);
    }
    if (child.kind == ChildKind::switch_below) {
      if (!child.port) {
        throw std::invalid_argument("a switch below must have a port");
      }
      of_switches.push_back(*child.port);
    }
  }
  if (std::ranges::any_of(of_switches, [&](auto port) { return taken.count(port) > 1; })) {
    throw std::invalid_argument("a switch, below or above, must have a port of its own");
  }
  const auto has_port = [](const Member& member) { return member.port.has_value(); };
  if (!spec.children.empty() && std::ranges::any_of(spec.members, has_port)) {
    throw std::invalid_argument("where children are given, they have the ports, not the members");
  }
}

} // namespace

std::uint32_t digest_of(const RingSpec& spec) {
  std::array<wire::BigEndian<std::uint32_t>, 5> words{};
  words[0].set(spec.id);
  words[1].set(spec.world());
  words[2].set(spec.window);
  words[3].set(spec.max_message_bytes);
  words[4].set(spec.mtu);
  std::uint32_t crc =
      wire::crc32(0, {reinterpret_cast<const std::uint8_t*>(words.data()), sizeof words});
  for (const Member& member : spec.members) {
    crc = wire::crc32(crc, member.ip.bytes);
  }
  return crc;
}

Ring::Ring(RingSpec spec)
    : spec_(std::move(spec)),
      children_(spec_.children.empty() ? one_for_each_rank(spec_) : spec_.children),
      child_of_rank_(spec_.world(), children()) {
  check_ranks(spec_, children_);
  check_ports(spec_, children_);
  for (std::uint16_t number = 0; number < children(); ++number) {
    const RankRange& own = children_[number].ranks;
    std::fill_n(child_of_rank_.begin() + own.first, own.count, number);
  }
  for (std::uint16_t sender = 0; sender < senders(); ++sender) {
    ports_of_switches_ |= is_rank(sender) ? 0 : std::uint64_t{1} << *port_of(sender);
  }
  digest_ = digest_of(spec_);
}

std::optional<std::uint16_t> Ring::sender_for(std::uint16_t rank) const {
  const auto child = child_of_rank(rank);
  const std::uint16_t sender = child.value_or(children());
  return sender < senders() && rank_of(sender) == rank ? std::optional(sender) : std::nullopt;
}

} // namespace weir::ring
