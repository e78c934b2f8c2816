// SPDX-License-Identifier: BSD-3-Clause
#include "conn/port_bindings.hpp"

namespace weir::conn {

PortBindings::PortBindings(const ring::RingDirectory& directory)
    : directory_(directory), sources_(directory.pairs()) {
  for (const ring::RingSpec& ring : directory.rings()) {
    greeted_.emplace_back(ring.members.size());
  }
  for (std::uint16_t pair = 1; pair <= directory.pairs(); ++pair) {
    update_source(pair);
  }
}

void PortBindings::bind(const ring::RingRank& member, std::uint16_t port) {
  greeted_[member.ring][member.rank] = port;
  update(member);
}

void PortBindings::release(std::uint16_t ring) {
  for (std::uint16_t rank = 0; rank < greeted_[ring].size(); ++rank) {
    greeted_[ring][rank].reset();
    update({ring, rank});
  }
}

std::optional<std::uint16_t> PortBindings::port_of(const ring::RingRank& member) const {
  const auto& configured = directory_.rings()[member.ring].members[member.rank].port;
  return configured ? configured : greeted_[member.ring][member.rank];
}

/// A member sends to its successor, and acknowledgements to its predecessor.
void PortBindings::update(const ring::RingRank& member) {
  const ring::RingSpec& spec = directory_.rings()[member.ring];
  const auto predecessor =
      static_cast<std::uint16_t>((member.rank + spec.world() - 1u) % spec.world());
  update_source(directory_.pair_of(member));
  update_source(directory_.reverse_of(directory_.pair_of({member.ring, predecessor})));
}

void PortBindings::update_source(std::uint16_t pair) {
  std::uint64_t& source = sources_[pair - 1u];
  source = 0;
  for (const ring::RingRank& sender : directory_.senders(pair)) {
    if (const auto port = port_of(sender)) {
      source |= std::uint64_t{1} << *port;
    }
  }
  for (const ring::RingRank& sender : directory_.senders(directory_.reverse_of(pair))) {
    const std::uint16_t receiver = directory_.rings()[sender.ring].successor(sender.rank);
    if (const auto port = port_of({sender.ring, receiver})) {
      source |= std::uint64_t{1} << *port;
    }
  }
}

} // namespace weir::conn
