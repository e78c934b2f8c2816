// SPDX-License-Identifier: BSD-3-Clause
#include "allreduce_job.hpp"

#include "exchange.hpp"
#include "foreign_station.hpp"
#include "simulated_host.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <utility>
#include <vector>

namespace weir::bench {
namespace {

constexpr std::uint32_t kFrameHeaders = 14 + 20 + 8 + 12 + 4; // Ethernet, IPv4, UDP, BTH; ICRC
constexpr std::uint16_t kForeignStations = 4;
constexpr Time kLongest = 30'000'000'000; // a job that takes more has come to a stop

ring::RingSpec ring_of(const AllReduce& wanted) {
  const HostTraits& hosts = wanted.hosts;
  ring::RingSpec ring{.id = 1,
                      .window = hosts.window,
                      .max_message_bytes = hosts.message_bytes,
                      .mtu = static_cast<std::uint16_t>(hosts.mtu)};
  for (std::uint16_t rank = 0; rank < wanted.ranks; ++rank) {
    ring.members.push_back({ip_of(rank), rank});
  }
  return ring;
}

std::int32_t element_of(std::uint16_t rank, std::size_t index) {
  return static_cast<std::int32_t>(index % 9973) * (rank + 1);
}

using Tensors = std::vector<std::vector<std::uint8_t>>; // by rank

Tensors make_tensors(const AllReduce& wanted) {
  Tensors tensors(wanted.ranks, std::vector<std::uint8_t>(wanted.bytes));
  for (std::uint16_t rank = 0; rank < wanted.ranks; ++rank) {
    for (std::size_t i = 0; i < wanted.bytes / sizeof(std::int32_t); ++i) {
      const std::int32_t element = element_of(rank, i);
      std::memcpy(&tensors[rank][i * sizeof element], &element, sizeof element);
    }
  }
  return tensors;
}

/// A fast but wrong all-reduce is worthless.
void expect_sums(const Tensors& tensors) {
  const auto ranks = static_cast<std::int32_t>(tensors.size());
  for (const std::vector<std::uint8_t>& tensor : tensors) {
    for (std::size_t i = 0; i < tensor.size() / sizeof(std::int32_t); ++i) {
      std::int32_t found = 0;
      std::memcpy(&found, &tensor[i * sizeof found], sizeof found);
      if (found != element_of(0, i) * (ranks * (ranks + 1) / 2)) {
        throw std::logic_error("an all-reduce gave a wrong sum");
      }
    }
  }
}

/// By port: the members', then those of the foreign stations.
std::vector<network::LinkTraits> links_of(const AllReduce& wanted, std::uint64_t seed) {
  std::vector<network::LinkTraits> links(wanted.ranks, wanted.links);
  if (wanted.first_link) {
    links[0] = *wanted.first_link;
    links[0].outages.first +=
        network::Dice(seed).below(static_cast<std::uint64_t>(wanted.link_time()));
  }
  links.resize(wanted.ranks + (wanted.foreign_load == 0 ? 0U : kForeignStations), lossy_link(0));
  return links;
}

SimulatedNetwork make_network(const AllReduce& wanted, std::vector<ring::RingSpec> rings,
                              std::uint64_t seed) {
  stage::InlineSwitch::Settings settings;
  settings.worker.level = op::best_cpu_level();
  return {{.links = links_of(wanted, seed),
           .longest_frame = wanted.hosts.longest_frame(),
           .seed = seed},
          std::move(rings),
          settings};
}

std::deque<SimulatedHost> make_hosts(SimulatedNetwork& network, const AllReduce& wanted,
                                     auto& exchanges) {
  std::deque<SimulatedHost> hosts;
  for (std::uint16_t rank = 0; rank < wanted.ranks; ++rank) {
    hosts.emplace_back(network, exchanges[rank], rank, wanted.ranks, wanted.hosts);
  }
  return hosts;
}

std::deque<ForeignStation> make_foreign_stations(SimulatedNetwork& network, const AllReduce& wanted,
                                                 std::uint64_t seed) {
  std::deque<ForeignStation> stations;
  if (wanted.foreign_load == 0) {
    return stations;
  }
  const std::uint32_t frame_bytes = wanted.hosts.mtu + kFrameHeaders;
  const double burst_time =
      8.0 * ForeignStation::kBurst * (frame_bytes + network::kWireOverhead) / kBitsPerNs;
  const double share = static_cast<double>(wanted.foreign_load) / network::kAlways;
  for (std::uint16_t number = 0; number < kForeignStations; ++number) {
    stations.emplace_back(
        network,
        ForeignStation::Plan{.port = static_cast<std::uint16_t>(wanted.ranks + number),
                             .victim = 0,
                             .frame_bytes = frame_bytes,
                             .interval = static_cast<Time>(burst_time * kForeignStations / share),
                             .seed = seed * kForeignStations + number});
  }
  return stations;
}

/// Runs until every exchange is done or a queue pair fails.
bool run(SimulatedNetwork& network, std::deque<SimulatedHost>& hosts, const auto& exchanges) {
  const auto is_done = [](const Exchange& exchange) { return exchange.is_done(); };
  try {
    for (SimulatedHost& host : hosts) {
      host.pump();
    }
    while (!std::all_of(exchanges.begin(), exchanges.end(), is_done)) {
      if (!network.advance() || network.now() > kLongest) {
        throw std::logic_error("an all-reduce came to a stop");
      }
    }
    return true;
  } catch (const QueuePairFailed&) {
    return false;
  }
}

std::uint64_t repeated_by(const std::deque<SimulatedHost>& hosts) {
  std::uint64_t packets = 0;
  for (const SimulatedHost& host : hosts) {
    packets += host.repeated();
  }
  return packets;
}

} // namespace

double AllReduce::link_time() const {
  const double frames = static_cast<double>(bytes) / hosts.mtu;
  return frames * 8 * (hosts.mtu + kFrameHeaders + network::kWireOverhead) / kBitsPerNs;
}

host::WindowConfig window_of(const AllReduce& wanted, std::uint16_t rank) {
  return {.ring = 1,
          .rank = rank,
          .world = wanted.ranks,
          .window = wanted.hosts.window,
          .message_bytes = wanted.hosts.message_bytes,
          .epoch = 1,
          .qp = outgoing_qp_of(rank),
          .ack_timeout = ack_timeout_exponent()};
}

Outcome reduce_in_switch(const AllReduce& wanted, std::uint64_t seed) {
  Tensors tensors = make_tensors(wanted);
  SimulatedNetwork network = make_network(wanted, {ring_of(wanted)}, seed);
  std::deque<SwitchExchange> exchanges;
  for (std::uint16_t rank = 0; rank < wanted.ranks; ++rank) {
    exchanges.emplace_back(window_of(wanted, rank), tensors[rank]);
  }
  std::deque<SimulatedHost> hosts = make_hosts(network, wanted, exchanges);
  const auto foreign_stations = make_foreign_stations(network, wanted, seed);
  if (!run(network, hosts, exchanges)) { // the hellos
    return {network.now(), repeated_by(hosts), network.refused()};
  }
  const Time start = network.now();
  for (SwitchExchange& exchange : exchanges) {
    exchange.begin(wanted.calls);
  }
  const bool is_finished = run(network, hosts, exchanges);
  if (is_finished) {
    expect_sums(tensors);
  }
  return {network.now() - start, repeated_by(hosts), network.refused(), is_finished};
}

Outcome reduce_round_the_ring(const AllReduce& wanted, std::uint64_t seed) {
  Tensors tensors = make_tensors(wanted);
  SimulatedNetwork network = make_network(wanted, {}, seed);
  std::deque<RingExchange> exchanges;
  for (std::uint16_t rank = 0; rank < wanted.ranks; ++rank) {
    exchanges.emplace_back(rank, wanted.ranks, tensors[rank], wanted.hosts.message_bytes);
  }
  std::deque<SimulatedHost> hosts = make_hosts(network, wanted, exchanges);
  const auto foreign_stations = make_foreign_stations(network, wanted, seed);
  const bool is_finished = run(network, hosts, exchanges);
  if (is_finished) {
    expect_sums(tensors);
  }
  return {network.now(), repeated_by(hosts), network.refused(), is_finished};
}

} // namespace weir::bench
