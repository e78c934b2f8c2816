// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "dice.hpp"
#include "event_queue.hpp"
#include "link.hpp"
#include "ring/ring_spec.hpp"
#include "weir/ina.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::fabric {

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
  X(ring_forgotten, "another switch in its place, which does not know a ring")

#define WEIR_FABRIC_ENUMERATOR(name, text) name,
enum class FaultKind : std::uint8_t { WEIR_FABRIC_FAULTS(WEIR_FABRIC_ENUMERATOR) count };
#undef WEIR_FABRIC_ENUMERATOR
inline constexpr std::size_t kFaultKinds = static_cast<std::size_t>(FaultKind::count);

std::string_view name_of(FaultKind kind);

struct Fault {
  FaultKind kind{};
  Time begins = 0;
  Time ends = 0;
  std::uint16_t place = 0; // host, or ring for straggler and ring_reset
  std::uint16_t rank = 0;  // straggler
};

enum class RingRole : std::uint8_t {
  sound,  // every result is checked and the job must finish
  victim, // strangers forge its packets: it may get anything
  doomed, // a member dies and nobody restarts the job: results are checked
};

struct TensorPlan {
  DataType type = DataType::i32;
  Operation operation = Operation::sum;
  std::uint32_t bytes = 0;
};

/// Of queue pairs that a restarted job uses again.
enum class FirstPsns : std::uint8_t { elsewhere, again };

enum class Buffers : std::uint8_t { in_place, out_of_place };

struct RingPlan {
  ring::RingSpec spec;
  std::vector<std::uint16_t> hosts; // by rank
  RingRole role = RingRole::sound;
  Buffers buffers = Buffers::in_place;
  Ppm near_wrap = 0; // first PSNs a few packets before 2^24
  Ppm reuse = 0;     // a restarted job takes its old queue pairs' numbers
  FirstPsns psns = FirstPsns::elsewhere;
  std::uint32_t jobs = 1; // one after the other
  std::uint32_t packets_in_flight = 4;
  std::uint32_t first_epoch = 1;
  std::vector<TensorPlan> tensors;
};

/// What strangers send again: a FIRST or ONLY tells its incarnation, another packet does not.
enum class Replayed : std::uint8_t { all, openings };

/// Everything that the seed decides before the run starts.
struct Scenario {
  std::uint16_t hosts = 2; // host h is behind port h
  bool is_ipv6 = false;
  std::vector<RingPlan> rings;
  std::vector<LinkTraits> to_switch; // by port
  std::vector<LinkTraits> from_switch;
  Time round_trip = 0; // of a packet and its acknowledgement, at most
  Time ack_timeout = 0;
  Time faults_end = 0;
  std::vector<Fault> faults;
  std::uint32_t rogue_acts = 0;    // of strangers
  std::uint32_t stream_frames = 0; // of each plain stream
  Ppm replays = 0;                 // share of rogue acts
  Replayed replayed = Replayed::all;
  std::uint32_t plain_entries = 0; // the switch's room for queue pairs that are no ring's

  /// Where strangers are.
  std::uint16_t stranger_port() const { return hosts; }

  std::uint16_t ports() const { return static_cast<std::uint16_t>(hosts + 1); }

  /// Rings of the jobs, and the one that a script plays.
  std::vector<ring::RingSpec> specs() const;
  /// The same, where one has another number and nobody's: its neighbours are known, it is not.
  std::vector<ring::RingSpec> specs_without(std::uint16_t ring) const;
};

/// Ring number of the script, and how it is configured.
inline constexpr std::uint32_t kScriptRing = 900;
ring::RingSpec script_ring();

wire::IpAddress ip_of_host(std::uint16_t host, bool is_ipv6);
wire::MacAddress mac_of_host(std::uint16_t host);

Scenario draw_scenario(Dice& dice);

/// For a failure's text.
std::string describe(const Scenario& scenario);

} // namespace weir::fabric
