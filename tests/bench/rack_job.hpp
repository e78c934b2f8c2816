// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// All-reduces over racks in the simulator of lib/plan/netsim. Each rack's switch has one uplink to
/// a spine. Hosts' links carry 100 Gbit/s; each link takes a microsecond.

#include "netsim/weir_run.hpp"
#include "plan/topology.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace weir::bench {

inline constexpr std::uint64_t kHostRate = 100'000'000'000; // bit/s
inline constexpr std::uint64_t kLinkLatency = 1000;         // ns

/// Hosts that hand a frame to their link when it takes one, as NICs do.
constexpr netsim::HostTraits hosts_with_nics() {
  netsim::HostTraits host;
  host.choice = netsim::HostTraits::Choice::by_link;
  return host;
}

struct RackJob {
  std::uint32_t racks = 2;
  std::uint32_t hosts = 2;            // of a rack
  std::uint32_t oversubscription = 1; // an uplink carries what the rack's hosts can send, over this
  std::uint32_t loss_ppm = 0;         // of each link's frames
  std::uint64_t seed = 1;
  std::uint64_t bytes = 2 << 20;
  netsim::HostTraits host = hosts_with_nics();

  std::uint32_t ranks() const { return racks * hosts; }
};

/// Who adds, and how ranks are numbered: rack by rack, or so that neighbours are in different
/// racks.
enum class Way : std::uint8_t {
  tree,       // a switch in each rack and the spine add
  one_switch, // all hosts are on one switch, which adds
  ring,
  ring_across,
  halving, // halving and doubling
  halving_across,
};

struct WayRow {
  Way way;
  std::string_view name;
};

inline constexpr std::array<WayRow, 6> kWays{{
    {Way::tree, "tree"},
    {Way::one_switch, "one switch"},
    {Way::ring, "ring"},
    {Way::ring_across, "ring across"},
    {Way::halving, "halving"},
    {Way::halving_across, "halving across"},
}};

/// One switch for all where the way wants one.
plan::Topology topology_of(Way way, const RackJob& job);

/// Errors: SimulationError.
netsim::WeirResult reduce(Way way, const RackJob& job, const plan::Topology& topology);

/// How often a host's link could carry the tensor in frames of full payload in that time.
double link_times(netsim::Time duration, const RackJob& job);

} // namespace weir::bench
