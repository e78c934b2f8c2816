// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "call_plan.hpp"
#include "endpoint/config.hpp"
#include "event_queue.hpp"
#include "network/dice.hpp"
#include "network/link.hpp"
#include "ring/ring_spec.hpp"
#include "ring_tree.hpp"
#include "weir/ina.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::fabric {

using network::kAlways;
using network::kPercent;
using network::LinkTraits;
using network::Ppm;

inline constexpr std::uint64_t kEndlessPatience = 600'000; // ms: longer than a run

/// One list makes the enum and the names.
#define WEIR_FABRIC_FAULTS(X)                                                                      \
  X(link_down, "a host's link is down, both ways")                                                 \
  X(answers_lost, "no acknowledgement passes to or from a host")                                   \
  X(host_frozen, "a host does nothing; what comes waits")                                          \
  X(straggler, "a worker computes; its queue pairs go on")                                         \
  X(host_dies, "a host loses everything and comes back")                                           \
  X(switch_restarts, "another switch in its place, with another session")                          \
  X(rank_killed, "a rank's process is killed")                                                     \
  X(ring_reset, "an operator resets a ring")                                                       \
  X(ring_withdrawn, "an operator withdraws a ring")                                                \
  X(ring_drained, "an operator drains a ring")                                                     \
  X(ring_forgotten, "another switch in its place, which does not know a ring")                     \
  X(ring_away, "an operator withdraws a ring and adds it again later")                             \
  X(ring_pauses, "an operator drains a ring; later it is withdrawn and added again")               \
  X(uplink_down, "a link between switches is down, both ways")                                     \
  X(uplink_deaf, "no acknowledgement passes between two switches")

#define WEIR_FABRIC_ENUMERATOR(name, text) name,
enum class FaultKind : std::uint8_t { WEIR_FABRIC_FAULTS(WEIR_FABRIC_ENUMERATOR) count };
#undef WEIR_FABRIC_ENUMERATOR
inline constexpr std::size_t kFaultKinds = static_cast<std::size_t>(FaultKind::count);

std::string_view name_of(FaultKind kind);

inline constexpr std::uint16_t kEverySwitch = 0xffff;

struct Fault {
  FaultKind kind{};
  Time begins = 0;
  Time ends = 0;
  std::uint16_t place = 0; // host, or ring for straggler and ring_reset
  std::uint16_t rank = 0;  // straggler
  std::uint16_t node = 0;  // switch, or kEverySwitch
};

enum class RingRole : std::uint8_t {
  sound,  // every result is checked and the job must finish
  victim, // strangers forge its packets: its results are not checked
  doomed, // a member dies and the job is not restarted: results are checked
};

/// Of queue pairs that a restarted job uses again.
enum class FirstPsns : std::uint8_t { elsewhere, again };

/// What hellos say of their sender's queue pair. anothers: that of a rank of another ring on the
/// same host, where there is one.
enum class Tells : std::uint8_t { nothing, own, anothers };

/// What carries a rank's messages (docs/protocol.md §3). mixed: in turn.
enum class Carrier : std::uint8_t { write, send, mixed };

/// One rank calls something else than the others.
struct Dispute {
  std::uint16_t rank = 0;
  std::uint32_t call = 0; // number
  CallPlan plan;
};

struct RingPlan {
  ring::RingSpec spec;
  std::vector<std::uint16_t> hosts; // by rank
  RingTree tree;
  bool is_pinned = false; // ranks tied to ports
  RingRole role = RingRole::sound;
  Ppm near_wrap = 0; // chance of first PSNs a few packets before 2^24
  Ppm reuse = 0;     // chance that a restarted job takes its old queue pair numbers
  Tells tells = Tells::own;
  Time lateness = 1; // of ranks that compute, in ACK timeouts
  FirstPsns psns = FirstPsns::elsewhere;
  std::uint32_t jobs = 1; // one after the other
  std::uint32_t packets_in_flight = 4;
  std::vector<endpoint::Stack> stacks;    // by rank
  std::vector<Carrier> carriers;          // likewise
  std::vector<std::uint32_t> calls_ahead; // likewise: calls that it queues at once
  std::uint32_t first_epoch = 1;
  std::vector<CallPlan> calls;
  Ppm pauses = 0; // chance that a rank computes after it has begun a call
  std::optional<Dispute> dispute;
  bool is_made = false;                   // for each run anew, with the run's nonce
  bool has_operators = false;             // the ranks' hellos name some of the users' own
  std::optional<std::uint16_t> lacks_one; // the switch that has only the first of them

  /// What the rank calls.
  const CallPlan& call_of(std::uint16_t rank, std::uint32_t call) const {
    const bool is_disputed = dispute && dispute->rank == rank && dispute->call == call;
    return is_disputed ? dispute->plan : calls[call];
  }

  /// Whether the ranks do not agree on this call or on one before it.
  bool is_disputed(std::uint32_t call) const { return dispute && dispute->call <= call; }
};

/// A port of a switch, and what it leads to. Links are named by their places.
struct Place {
  enum class End : std::uint8_t { host, stranger, peer };

  std::uint16_t node = 0; // the switch
  std::uint16_t port = 0; //
  End end = End::host;
  std::uint16_t peer = 0; // the link's place at the other switch
};

/// What a run with several switches is for.
enum class Quest : std::uint8_t {
  anything,
  lossy_uplinks, // only links between switches lose
  no_loss,       // links between switches carry no packet twice
};

/// Everything that the seed decides before the run starts.
struct Scenario {
  std::uint16_t hosts = 2;
  Layout layout;
  Quest quest = Quest::anything;
  std::vector<Place>
      places; // those of the hosts first: host h is at place h; then strangers', peers'
  std::vector<std::vector<std::uint16_t>> places_of; // by switch and port
  bool is_ipv6 = false;
  std::vector<RingPlan> rings;
  std::vector<LinkTraits> to_switch; // by place
  std::vector<LinkTraits> from_switch;
  Time unit = 0;       // of all delays: microseconds as in a rack, or hundreds of them
  Time round_trip = 0; // of a packet and its acknowledgement, longest
  Time ack_timeout = 0;
  Time faults_end = 0;
  std::vector<Fault> faults;
  std::uint32_t rogue_acts = 0;    // number of strangers' acts
  std::uint32_t stream_frames = 0; // frames of each plain stream
  Ppm replays = 0;                 // share of rogue acts
  std::uint32_t plain_entries = 0; // the switch's room for plain queue pairs
  std::uint16_t workers = 1;       // of each switch

  /// The place of the strangers.
  std::uint16_t stranger_place() const { return hosts; }

  bool has_several_switches() const { return places_of.size() > 1; }

  /// Rings of the jobs, and the script's ring, as the switch has them. Where it has no part in one,
  /// a ring of nobody is in its place.
  std::vector<ring::RingSpec> specs(std::uint16_t node) const;
  /// One of them.
  ring::RingSpec spec(std::uint16_t ring, std::uint16_t node) const;
  /// The same, but one ring has another number that no job uses: its neighbours are known, the ring
  /// is not.
  std::vector<ring::RingSpec> specs_without(std::uint16_t ring, std::uint16_t node) const;

  /// Whether no switch has been made to forget the ring until then.
  bool is_known(std::uint16_t ring, Time now) const;

  /// The place of the link from one switch to another, at the first.
  std::uint16_t place_between(std::uint16_t node, std::uint16_t other) const;
};

/// The id of the script's ring, and its configuration.
inline constexpr std::uint32_t kScriptRing = 900;
ring::RingSpec script_ring();

wire::IpAddress ip_of_host(std::uint16_t host, bool is_ipv6);
wire::MacAddress mac_of_host(std::uint16_t host);

/// With one switch, or with several.
enum class Topology : std::uint8_t { star, tree };

Scenario draw_scenario(Dice& dice, Topology topology);

/// For the text of a failure.
std::string describe(const Scenario& scenario);

} // namespace weir::fabric
