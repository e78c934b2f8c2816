// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ring/ring.hpp"
#include "wire/address.hpp"
#include "wire/keyed_hash.hpp"

#include <cassert>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace weir::ring {

/// A child of a ring, or its parent, by the ring's index in the set: who sends on one connection.
struct RingChild {
  std::uint16_t ring = 0;
  std::uint16_t child = 0;
};

/// The rings of the switch, and which addresses are neighbours in them. A set never changes:
/// control makes another one from it and swaps the two (ring::CurrentRings). Rings and pairs keep
/// their numbers from set to set. The number of a withdrawn ring is given to a later one; its pairs
/// stay neighbours (docs/protocol.md §2a).
class RingSet {
 public:
  /// Throws std::invalid_argument when two rings have the same id, bind one address to two ports,
  /// or have more than kMostMembers in all. Who knows `hash_key` can make look-ups slower.
  explicit RingSet(const std::vector<RingSpec>& rings, const wire::HashKey& hash_key = {});

  static constexpr std::size_t kMostMembers = 32767;
  static constexpr std::size_t kMostPairs = 2 * kMostMembers;

  /// This set and one more ring, with the index next_index(). Throws as the constructor, and
  /// std::invalid_argument when it would have more than kMostPairs, those of withdrawn rings
  /// included.
  RingSet with(const RingSpec& ring) const;

  /// The index that the next ring gets: that of the ring which was withdrawn longest ago, or a new
  /// one.
  std::uint16_t next_index() const;

  /// This set with the ring withdrawn (docs/protocol.md §2a): its id and its index are free again,
  /// and its members are still neighbours.
  RingSet without(std::uint16_t ring) const;

  /// This set with what `specs` say of rings that it has: patience, keep-alive and members' ports.
  /// All else of a ring must be as it was. Throws std::invalid_argument when an address is then
  /// bound to two ports.
  RingSet with_changed(std::span<const RingSpec> specs) const;

  /// By index. Withdrawn rings too.
  std::span<const Ring> rings() const { return rings_; }

  bool is_withdrawn(std::uint16_t ring) const {
    return ring_with_id(rings_[ring].spec().id) != ring;
  }

  /// By which rings that are not withdrawn reach other switches.
  std::uint64_t ports_of_switches() const { return ports_of_switches_; }

  /// The indices of the rings that are not withdrawn, in order.
  std::vector<std::uint16_t> present() const;

  /// The ring that has this id and is not withdrawn.
  std::optional<std::uint16_t> ring_with_id(std::uint32_t id) const;

  /// A number of 1 .. pairs() for <a member, its successor> or <a member, its predecessor> in any
  /// ring. 0 for any other two addresses.
  std::uint16_t pair_of(const wire::IpAddress& source, const wire::IpAddress& destination) const;

  /// The most cells that pair_of() looks at.
  static constexpr std::size_t kMostProbes = 16;

  std::size_t pairs() const { return pairs_.size(); }

  /// How many neighbours <a member, its successor> were first in a ring of this tenant, withdrawn
  /// ones included. The set remembers them for ever; kMostPairs bounds those of all.
  std::size_t neighbours_of(const std::string& tenant) const;

  const wire::IpAddress& source_of(std::uint16_t pair) const { return pairs_[pair - 1u].source; }

  const wire::IpAddress& destination_of(std::uint16_t pair) const {
    return pairs_[pair - 1u].destination;
  }

  /// Whether a ring, perhaps a withdrawn one, sends contributions from the pair's source to its
  /// destination. Otherwise only acknowledgements flow there.
  bool carries_messages(std::uint16_t pair) const { return pairs_[pair - 1u].carries_messages; }

  /// The children, and the parents, that send their messages from the pair's source to its
  /// destination.
  std::span<const RingChild> senders(std::uint16_t pair) const { return pairs_[pair - 1u].senders; }

  /// The pair with source and destination exchanged.
  std::uint16_t reverse_of(std::uint16_t pair) const { return pairs_[pair - 1u].reverse; }

  /// False when the configuration binds the pair's source to other ports.
  bool may_enter(std::uint16_t pair, std::uint16_t ingress) const {
    const std::uint64_t ports = pairs_[pair - 1u].source_ports;
    return ports == 0 || (ports >> ingress & 1) != 0;
  }

  /// The pair of this sender's connection.
  std::uint16_t pair_of(const RingChild& sender) const {
    return sender_pairs_[sender.ring][sender.child];
  }

  /// The number of the pair's ring group. Rings that share two neighbours, in either direction,
  /// form a ring group: every packet has its addresses, but only some have their ring. Groups are
  /// independent of each other.
  std::uint16_t ring_group_of_pair(std::uint16_t pair) const {
    assert(pair != 0 && pair <= pairs_.size());
    return pairs_[pair - 1u].ring_group;
  }

  std::uint16_t ring_group_of(std::uint16_t ring) const {
    assert(ring < rings_.size());
    return ring_groups_[ring];
  }

  /// More than every ring group's number.
  std::size_t ring_groups() const { return groups_; }

 private:
  struct Pair {
    wire::IpAddress source;
    wire::IpAddress destination;
    std::uint16_t ring_group = 0;
    std::uint16_t reverse = 0;
    bool carries_messages = false;
    std::uint64_t source_ports = 0; // a set; empty: any
    std::vector<RingChild> senders;
  };

  /// A pair's place. Most pairs with another hash have another tag, so that a look-up reads few
  /// pairs but its own.
  struct Cell {
    std::uint16_t tag = 0;
    std::uint16_t pair = 0; // number; 0: nobody's
  };

  static constexpr std::size_t kMostCells = std::size_t{1} << 22;

  static std::uint16_t tag_of(std::uint64_t hash) { return static_cast<std::uint16_t>(hash >> 48); }

  void add(Ring ring);
  std::uint16_t unused_group(std::uint16_t wanted) const;
  void bind_addresses(const Ring& ring);
  void make_cells_for(std::size_t pairs);
  void make_cells(std::size_t cells);
  void enter(std::uint16_t pair);
  bool place(std::uint16_t pair);
  void add_neighbours(std::uint16_t ring);
  void bind_all_addresses();
  void bind_sources(std::uint16_t ring);
  std::uint16_t add_pair(std::uint16_t ring, const wire::IpAddress& source,
                         const wire::IpAddress& destination);
  void bind_source(std::uint16_t pair);
  void merge_groups(std::uint16_t keep, std::uint16_t give_up);

  std::vector<Ring> rings_;
  std::deque<std::uint16_t> withdrawn_;            // rings, the first one first
  std::size_t members_ = 0;                        // of all rings that are not withdrawn
  std::map<wire::IpAddress, std::uint16_t> ports_; // of the addresses that are bound to one
  std::uint64_t ports_of_switches_ = 0;
  std::unordered_map<std::uint32_t, std::uint16_t> ring_by_id_;
  std::vector<std::uint16_t> ring_groups_;
  std::size_t groups_ = 0;
  std::vector<std::vector<std::uint16_t>> sender_pairs_; // by ring and sender
  std::vector<Pair> pairs_;
  std::map<std::string, std::size_t> neighbours_; // by tenant: neighbours_of()
  wire::HashKey hash_key_;
  std::vector<Cell> cells_;   // open addressing; a power of two, and kMostProbes for the last ones
  std::size_t last_home_ = 0; // also the mask of a home cell's number
};

} // namespace weir::ring
