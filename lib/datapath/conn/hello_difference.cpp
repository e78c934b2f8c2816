// SPDX-License-Identifier: BSD-3-Clause
#include "conn/hello_difference.hpp"

#include "ring/digest_difference.hpp"
#include "ring/sender_name.hpp"
#include "wire/sum_stamp.hpp"

#include <array>
#include <cstdio>
#include <optional>
#include <utility>

namespace weir::conn {
namespace {

constexpr std::string_view kNobody = "nobody of the ring";
constexpr const char* kBoundElsewhere =
    "another, by its last hello; the cable back there, or `reset ring`, mends it";

/// The child or the parent behind the port; nullopt if the ring has nobody there.
std::optional<std::uint16_t> sender_at(const ring::Ring& ring, std::uint16_t port) {
  for (std::uint16_t sender = 0; sender < ring.senders(); ++sender) {
    if (ring.port_of(sender) == port) {
      return sender;
    }
  }
  return std::nullopt;
}

PortOwner owner_at(const ring::Ring& ring, std::uint16_t port) {
  const auto sender = sender_at(ring, port);
  if (!sender) {
    return PortOwner::nobody;
  }
  return ring.is_rank(*sender) ? PortOwner::rank : PortOwner::other_switch;
}

std::string text_of(const ring::Ring& ring, std::uint16_t sender) {
  if (ring.is_rank(sender)) {
    return ring::phrase_for(ring.spec(), sender);
  }
  return ring::switch_name_of(ring.spec(), sender) +
         (ring.is_parent(sender) ? ", the switch above" : ", the switch below");
}

/// A rank of this switch whose port no configuration tells; its hellos do.
bool is_rank_without_port(const ring::Ring& ring, std::uint16_t rank) {
  const auto sender = ring.sender_for(rank);
  return sender && ring.is_rank(*sender) && !ring.port_of(*sender);
}

/// The hello of such a rank, as far as its source address tells.
bool is_of_rank_without_port(const ring::Ring& ring, const RefusedHello& hello) {
  const std::uint16_t rank = hello.header.rank.get();
  return !wire::is_partial(hello.header) && rank < ring.spec().world() &&
         is_rank_without_port(ring, rank) && ring.spec().members[rank].ip == hello.source;
}

std::string hop_of(const ring::Ring& ring, const RefusedHello& hello) {
  if (const auto sender = sender_at(ring, hello.port)) {
    return text_of(ring, *sender);
  }
  return is_of_rank_without_port(ring, hello)
             ? "rank " + std::to_string(hello.header.rank.get()) + ", by its address,"
             : std::string(kNobody);
}

std::string text_of(const ring::RankRange& ranks) {
  return std::to_string(ranks.first) + "-" + std::to_string(ranks.last());
}

std::string hex(std::uint32_t number) {
  std::array<char, 2 * sizeof number + 1> text{};
  std::snprintf(text.data(), text.size(), "%08x", number);
  return text.data();
}

std::string claimed_sender_of(const ring::Ring& ring, const RefusedHello& hello) {
  const auto sender = ring.sender_for(hello.header.rank.get());
  return sender ? text_of(ring, *sender) : std::string(kNobody);
}

/// The hello's own words against the ring that this switch has.
class Comparison {
 public:
  Comparison(const RefusedHello& hello, const ring::Ring& ring, const PortName& port_name)
      : hello_(hello), ring_(ring), port_name_(port_name) {}

  std::vector<HelloDifference> all() {
    if (has_same_world()) {
      compare_ports();
      compare_ranks();
      compare_addresses();
      compare_digests();
      compare_kinds();
    }
    if (differences_.empty()) {
      add_reason();
    }
    return differences_;
  }

 private:
  void add(std::string_view field, std::string theirs, std::string ours) {
    differences_.push_back({field, std::move(theirs), std::move(ours)});
  }

  /// Nothing that the hello says differs.
  void add_reason() {
    if (hello_.reason == DropReason::wrong_port && is_of_rank_without_port(ring_, hello_)) {
      add("bound port", port_name_(hello_.port), kBoundElsewhere);
    } else {
      add("hello", std::string(name_of(hello_.reason)), "-");
    }
  }

  bool is_sum() const { return wire::is_partial(hello_.header); }

  std::uint16_t rank() const { return hello_.header.rank.get(); }

  /// Else no rank means the same.
  bool has_same_world() {
    const std::uint16_t theirs = hello_.header.world.get();
    const std::uint16_t ours = ring_.spec().world();
    if (theirs != ours) {
      add("members", std::to_string(theirs) + " ranks", std::to_string(ours) + " ranks");
    }
    return theirs == ours && rank() < ours;
  }

  /// Whose hello it is, and where that one is.
  void compare_ports() {
    const auto sender = ring_.sender_for(rank());
    const auto port = sender ? ring_.port_of(*sender) : std::nullopt;
    if (port && *port != hello_.port && is_from(*sender)) {
      add("port", port_name_(hello_.port), port_name_(*port));
    }
  }

  /// Whether the hello is this sender's for all that it says.
  bool is_from(std::uint16_t sender) const {
    const bool is_child_switch = !ring_.is_rank(sender) && !ring_.is_parent(sender);
    return is_child_switch == is_sum() &&
           (!is_child_switch || hello_.header.root.get() == ring_.child(sender).ranks.first);
  }

  /// Of a switch below.
  void compare_ranks() {
    const auto sender = sender_at(ring_, hello_.port);
    const bool is_switch = sender && !ring_.is_rank(*sender) && !ring_.is_parent(*sender);
    if (!is_sum() || !is_switch || !differences_.empty()) {
      return;
    }
    const std::string theirs =
        std::to_string(hello_.header.root.get()) + "-" + std::to_string(rank());
    const std::string ours = text_of(ring_.child(*sender).ranks);
    if (theirs != ours) {
      add("ranks", theirs, ours);
    }
  }

  void compare_addresses() {
    compare_address(rank(), hello_.source);
    compare_address(ring_.spec().successor(rank()), hello_.destination);
  }

  void compare_address(std::uint16_t rank, const wire::IpAddress& theirs) {
    const wire::IpAddress& ours = ring_.spec().members[rank].ip;
    if (theirs != ours) {
      add("members", "rank " + std::to_string(rank) + " at " + to_string(theirs), to_string(ours));
    }
  }

  /// Where the addresses above are others, the digest is too.
  void compare_digests() {
    if (!is_sum() || hello_.header.message_id.get() == ring_.digest() || has_other_members()) {
      return;
    }
    const auto numbers = ring::numbers_that_differ(ring_.spec(), hello_.header.message_id.get());
    for (const ring::OtherNumber& number : numbers) {
      add(number.key, std::to_string(number.theirs), std::to_string(number.ours));
    }
    if (numbers.empty()) {
      add("digest (of the members, or of several numbers)", hex(hello_.header.message_id.get()),
          hex(ring_.digest()));
    }
  }

  bool has_other_members() const {
    return !differences_.empty() && differences_.back().field == "members";
  }

  void compare_kinds() {
    const auto sender = ring_.sender_for(rank());
    if (hello_.reason == DropReason::raw_from_switch) {
      add("ring", "none, or withdrawn", std::to_string(ring_.spec().id));
    } else if (hello_.reason == DropReason::raw_from_parent) {
      add("parent", "no switch above", ring_.is_root() ? "-" : ring_.parent()->name);
    } else if (hello_.reason == DropReason::partial_flag && sender) {
      add("children", "a switch", ring::phrase_for(ring_.spec(), *sender));
    } else if (hello_.reason == DropReason::queue_pair_untold) {
      add("queue pair", "not told", "needed in a tree");
    }
  }

  const RefusedHello& hello_;
  const ring::Ring& ring_;
  const PortName& port_name_;
  std::vector<HelloDifference> differences_;
};

/// The name of the switch that the rings have behind the port. Empty: they have none there.
std::string switch_at(const ring::RingSet& rings, std::uint16_t port) {
  for (const std::uint16_t index : rings.present()) {
    const ring::Ring& ring = rings.rings()[index];
    const auto sender = sender_at(ring, port);
    if (sender && !ring.is_rank(*sender)) {
      return ring::switch_name_of(ring.spec(), *sender);
    }
  }
  return {};
}

/// Hosts too may have sent one, before the ring was withdrawn.
ToldHello told_without_ring(const RefusedHello& hello, const ring::RingSet& rings) {
  const std::string name = switch_at(rings, hello.port);
  return {name.empty() ? PortOwner::nobody : PortOwner::other_switch,
          name.empty() ? std::string(kNobody) : name,
          {},
          {{"ring", std::to_string(hello.header.ring_id.get()), "none"}}};
}

} // namespace

ToldHello tell(const RefusedHello& hello, const ring::RingSet& rings, const PortName& port_name) {
  const auto index = rings.ring_with_id(hello.header.ring_id.get());
  if (!index) {
    return told_without_ring(hello, rings);
  }
  const ring::Ring& ring = rings.rings()[*index];
  return {owner_at(ring, hello.port), hop_of(ring, hello), claimed_sender_of(ring, hello),
          Comparison(hello, ring, port_name).all()};
}

std::string text_of(const std::vector<HelloDifference>& differences) {
  std::string text;
  for (const HelloDifference& difference : differences) {
    text += (text.empty() ? "" : ", ") + std::string(difference.field) + " " + difference.theirs +
            " (here " + difference.ours + ")";
  }
  return text;
}

} // namespace weir::conn
