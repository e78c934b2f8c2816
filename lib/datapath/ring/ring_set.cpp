// SPDX-License-Identifier: BSD-3-Clause
#include "ring/ring_set.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <stdexcept>
#include <utility>

namespace weir::ring {

RingSet::RingSet(const std::vector<RingSpec>& rings, const wire::HashKey& hash_key)
    : hash_key_(hash_key) {
  std::size_t members = 0;
  for (const RingSpec& ring : rings) {
    members += ring.members.size();
  }
  make_cells_for(2 * members);
  for (const RingSpec& ring : rings) {
    add(Ring(ring));
  }
}

RingSet RingSet::with(const RingSpec& ring) const {
  RingSet more = *this;
  more.make_cells_for(pairs_.size() + 2 * ring.members.size());
  more.add(Ring(ring));
  return more;
}

std::uint16_t RingSet::next_index() const {
  return withdrawn_.empty() ? static_cast<std::uint16_t>(rings_.size()) : withdrawn_.front();
}

RingSet RingSet::without(std::uint16_t ring) const {
  assert(!is_withdrawn(ring));
  RingSet less = *this;
  less.ring_by_id_.erase(rings_[ring].spec().id);
  less.withdrawn_.push_back(ring);
  assert(members_ >= rings_[ring].spec().members.size());
  less.members_ -= rings_[ring].spec().members.size();
  for (const std::uint16_t pair : sender_pairs_[ring]) {
    std::erase_if(less.pairs_[pair - 1u].senders,
                  [ring](const RingChild& sender) { return sender.ring == ring; });
  }
  less.bind_all_addresses();
  return less;
}

RingSet RingSet::with_changed(std::span<const RingSpec> specs) const {
  RingSet changed = *this;
  for (const RingSpec& spec : specs) {
    changed.rings_[ring_by_id_.at(spec.id)] = Ring(spec);
  }
  changed.bind_all_addresses();
  for (const std::uint16_t ring : changed.present()) {
    changed.bind_sources(ring);
  }
  return changed;
}

std::vector<std::uint16_t> RingSet::present() const {
  std::vector<std::uint16_t> rings;
  for (std::uint16_t ring = 0; ring < rings_.size(); ++ring) {
    if (!is_withdrawn(ring)) {
      rings.push_back(ring);
    }
  }
  return rings;
}

void RingSet::add(Ring ring) {
  const std::uint16_t index = next_index();
  if (!ring_by_id_.emplace(ring.spec().id, index).second) {
    throw std::invalid_argument("two rings have the same id");
  }
  bind_addresses(ring);
  members_ += ring.spec().members.size();
  const std::uint16_t ring_group = unused_group(index);
  groups_ = std::max<std::size_t>(groups_, ring_group + 1u);
  if (index < rings_.size()) {
    withdrawn_.pop_front();
    rings_[index] = std::move(ring);
    ring_groups_[index] = ring_group;
    sender_pairs_[index].clear();
  } else {
    rings_.push_back(std::move(ring));
    ring_groups_.push_back(ring_group);
    sender_pairs_.emplace_back();
  }
  add_neighbours(index);
}

/// A number that no pair's ring group has; `wanted` if it is one.
std::uint16_t RingSet::unused_group(std::uint16_t wanted) const {
  std::vector<bool> is_used(pairs_.size() + wanted + 1u);
  for (const Pair& pair : pairs_) {
    if (pair.ring_group < is_used.size()) {
      is_used[pair.ring_group] = true;
    }
  }
  return is_used[wanted]
             ? static_cast<std::uint16_t>(std::ranges::find(is_used, false) - is_used.begin())
             : wanted;
}

std::optional<std::uint16_t> RingSet::ring_with_id(std::uint32_t id) const {
  const auto found = ring_by_id_.find(id);
  return found == ring_by_id_.end() ? std::nullopt : std::optional(found->second);
}

/// Makes so many cells that most look-ups find theirs at once. Throws std::invalid_argument if
/// there are too many pairs to number.
void RingSet::make_cells_for(std::size_t pairs) {
  if (pairs > kMostPairs) {
    throw std::invalid_argument(
        "the rings have more than 32767 members in all, those of withdrawn rings included");
  }
  pairs_.reserve(pairs);
  make_cells(std::bit_ceil(2 * pairs + 2));
}

/// Enters the known pairs into twice as many cells each time that one finds no place. Nobody
/// without the key can choose pairs for which that happens often. Throws std::invalid_argument if
/// it does.
void RingSet::make_cells(std::size_t cells) {
  if (cells > kMostCells) {
    throw std::invalid_argument("the rings' addresses collide under the table's key");
  }
  cells_.assign(cells + kMostProbes - 1, {});
  last_home_ = cells - 1;
  for (std::size_t pair = 1; pair <= pairs_.size(); ++pair) {
    if (!place(static_cast<std::uint16_t>(pair))) {
      return make_cells(2 * cells);
    }
  }
}

void RingSet::enter(std::uint16_t pair) {
  if (!place(pair)) {
    make_cells(2 * (last_home_ + 1));
  }
}

/// False when the cells that pair_of() would look at are taken.
bool RingSet::place(std::uint16_t pair) {
  const std::uint64_t hash =
      wire::keyed_hash(hash_key_, pairs_[pair - 1u].source, pairs_[pair - 1u].destination);
  const auto first = cells_.begin() + static_cast<std::ptrdiff_t>(hash & last_home_);
  const auto cell = std::find_if(first, first + kMostProbes,
                                 [](const Cell& candidate) { return candidate.pair == 0; });
  if (cell == first + kMostProbes) {
    return false;
  }
  *cell = {tag_of(hash), pair};
  return true;
}

std::uint16_t RingSet::pair_of(const wire::IpAddress& source,
                               const wire::IpAddress& destination) const {
  const std::uint64_t hash = wire::keyed_hash(hash_key_, source, destination);
  const Cell* cell = &cells_[hash & last_home_];
  const Cell* const end = cell + kMostProbes;
  for (; cell != end && cell->pair != 0; ++cell) {
    const Pair& pair = pairs_[cell->pair - 1u];
    if (cell->tag == tag_of(hash) && pair.source == source && pair.destination == destination) {
      return cell->pair;
    }
  }
  return 0;
}

void RingSet::add_neighbours(std::uint16_t index) {
  const Ring& ring = rings_[index];
  const std::size_t known = pairs_.size();
  std::vector<std::uint16_t>& sender_pairs = sender_pairs_[index];
  for (std::uint16_t sender = 0; sender < ring.senders(); ++sender) {
    const wire::IpAddress& source = ring.source_of(sender);
    const wire::IpAddress& destination = ring.destination_of(sender);
    const std::uint16_t forward = add_pair(index, source, destination);
    const std::uint16_t reverse = add_pair(index, destination, source);
    pairs_[forward - 1u].reverse = reverse;
    pairs_[reverse - 1u].reverse = forward;
    pairs_[forward - 1u].carries_messages = true;
    pairs_[forward - 1u].senders.push_back({index, sender});
    sender_pairs.push_back(forward);
  }
  neighbours_[ring.spec().tenant] += (pairs_.size() - known) / 2; // a pair for each direction
  bind_sources(index);
}

std::size_t RingSet::neighbours_of(const std::string& tenant) const {
  const auto known = neighbours_.find(tenant);
  return known == neighbours_.end() ? 0 : known->second;
}

void RingSet::bind_sources(std::uint16_t index) {
  for (const std::uint16_t forward : sender_pairs_[index]) {
    bind_source(forward);
    bind_source(pairs_[forward - 1u].reverse);
  }
}

std::uint16_t RingSet::add_pair(std::uint16_t ring, const wire::IpAddress& source,
                                const wire::IpAddress& destination) {
  if (const std::uint16_t known = pair_of(source, destination); known != 0) {
    merge_groups(pairs_[known - 1u].ring_group, ring_groups_[ring]);
    return known;
  }
  pairs_.push_back(
      {.source = source, .destination = destination, .ring_group = ring_groups_[ring]});
  const auto added = static_cast<std::uint16_t>(pairs_.size());
  enter(added);
  return added;
}

/// To the ports that the rings which are present say. What withdrawn rings said counts as long as
/// nobody else uses the pair.
void RingSet::bind_source(std::uint16_t pair) {
  std::uint64_t ports = 0;
  const auto add = [&ports](const std::optional<std::uint16_t>& port) {
    ports |= port ? std::uint64_t{1} << *port : 0;
  };
  for (const RingChild& sender : senders(pair)) {
    add(rings_[sender.ring].port_of(sender.child));
  }
  for (const RingChild& sender : senders(reverse_of(pair))) {
    const Ring& ring = rings_[sender.ring];
    add(ring.port_of(ring.receiver_of(sender.child)));
  }
  pairs_[pair - 1u].source_ports = ports;
}

void RingSet::bind_all_addresses() {
  ports_.clear();
  ports_of_switches_ = 0;
  for (const std::uint16_t ring : present()) {
    bind_addresses(rings_[ring]);
  }
}

/// Rejects an address that is bound to two ports: all traffic to a host of this switch leaves by
/// one port. A host behind another switch may be reached by several, each in its own ring.
void RingSet::bind_addresses(const Ring& ring) {
  for (std::uint16_t child = 0; child < ring.children(); ++child) {
    const auto& port = ring.child(child).port;
    const wire::IpAddress& host = ring.source_of(child);
    if (ring.is_rank(child) && port && ports_.emplace(host, *port).first->second != *port) {
      throw std::invalid_argument("two rings bind " + wire::to_string(host) +
                                  " to different ports");
    }
  }
  ports_of_switches_ |= ring.ports_of_switches();
}

void RingSet::merge_groups(std::uint16_t keep, std::uint16_t give_up) {
  if (keep == give_up) {
    return;
  }
  for (std::uint16_t& ring_group : ring_groups_) {
    ring_group = ring_group == give_up ? keep : ring_group;
  }
  for (Pair& pair : pairs_) {
    pair.ring_group = pair.ring_group == give_up ? keep : pair.ring_group;
  }
}

} // namespace weir::ring
