// SPDX-License-Identifier: BSD-3-Clause
#include "allreduce_job.hpp"

#include "exchange.hpp"
#include "simulated_host.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <utility>
#include <vector>

namespace weir::bench {
namespace {

constexpr std::uint32_t kWindow = kInboxes / 2;

ring::RingSpec ring_of(std::uint16_t ranks) {
  ring::RingSpec ring{.id = 1, .window = kWindow, .max_message_bytes = kMessageBytes, .mtu = kMtu};
  for (std::uint16_t rank = 0; rank < ranks; ++rank) {
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

SimulatedNetwork make_network(const AllReduce& wanted, std::vector<ring::RingSpec> rings,
                              std::uint64_t seed) {
  stage::InlineSwitch::Settings settings;
  settings.worker.level = op::best_cpu_level();
  return {{.links = std::vector<network::LinkTraits>(
               wanted.ranks, {.bits_per_ns = kBitsPerNs, .delay = kDelay, .loss = wanted.loss}),
           .longest_frame = kLongestFrame,
           .seed = seed},
          std::move(rings),
          settings};
}

std::deque<SimulatedHost> make_hosts(SimulatedNetwork& network, auto& exchanges) {
  const auto ranks = static_cast<std::uint16_t>(exchanges.size());
  std::deque<SimulatedHost> hosts;
  for (std::uint16_t rank = 0; rank < ranks; ++rank) {
    hosts.emplace_back(network, exchanges[rank], rank, ranks);
  }
  return hosts;
}

/// Runs until every exchange is done or a queue pair fails.
bool run(SimulatedNetwork& network, std::deque<SimulatedHost>& hosts, const auto& exchanges) {
  const auto is_done = [](const Exchange& exchange) { return exchange.is_done(); };
  try {
    for (SimulatedHost& host : hosts) {
      host.pump();
    }
    while (!std::all_of(exchanges.begin(), exchanges.end(), is_done)) {
      if (!network.advance()) {
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

Outcome reduce_in_switch(const AllReduce& wanted, std::uint64_t seed) {
  Tensors tensors = make_tensors(wanted);
  SimulatedNetwork network = make_network(wanted, {ring_of(wanted.ranks)}, seed);
  std::deque<SwitchExchange> exchanges;
  for (std::uint16_t rank = 0; rank < wanted.ranks; ++rank) {
    const host::WindowConfig config{.ring = 1,
                                    .rank = rank,
                                    .world = wanted.ranks,
                                    .window = kWindow,
                                    .message_bytes = kMessageBytes,
                                    .epoch = 1,
                                    .qp = outgoing_qp_of(rank),
                                    .ack_timeout = ack_timeout_exponent()};
    exchanges.emplace_back(config, tensors[rank]);
  }
  std::deque<SimulatedHost> hosts = make_hosts(network, exchanges);
  if (!run(network, hosts, exchanges)) { // the hellos
    return {network.now(), repeated_by(hosts)};
  }
  const Time start = network.now();
  for (SwitchExchange& exchange : exchanges) {
    exchange.begin();
  }
  const bool is_finished = run(network, hosts, exchanges);
  if (is_finished) {
    expect_sums(tensors);
  }
  return {network.now() - start, repeated_by(hosts), is_finished};
}

Outcome reduce_round_the_ring(const AllReduce& wanted, std::uint64_t seed) {
  Tensors tensors = make_tensors(wanted);
  SimulatedNetwork network = make_network(wanted, {}, seed);
  std::deque<RingExchange> exchanges;
  for (std::uint16_t rank = 0; rank < wanted.ranks; ++rank) {
    exchanges.emplace_back(rank, wanted.ranks, tensors[rank]);
  }
  std::deque<SimulatedHost> hosts = make_hosts(network, exchanges);
  const bool is_finished = run(network, hosts, exchanges);
  if (is_finished) {
    expect_sums(tensors);
  }
  return {network.now(), repeated_by(hosts), is_finished};
}

} // namespace weir::bench
