// SPDX-License-Identifier: BSD-3-Clause
#include "bare_pair.hpp"

#include "lcore/mbuf_frame.hpp"
#include "lcore/prefetch.hpp"
#include "measurement.hpp"

#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include <algorithm>
#include <span>
#include <string>

namespace weir::bench {
namespace {

constexpr unsigned kHandoffEntries = 1024;

/// Pushes what there is room for; the rest stays.
template <typename Value>
void hand_on(std::vector<Value>& values, lcore::Handoff<Value>& to) {
  const unsigned pushed = to.push(values);
  values.erase(values.begin(), values.begin() + pushed);
}

} // namespace

BarePair::Side::Side(const Workload& workload, unsigned number)
    : bare(workload), contributions("bench_bare_in" + std::to_string(number), kHandoffEntries),
      results("bench_bare_out" + std::to_string(number), kHandoffEntries) {}

BarePair::BarePair(const Workload& workload, RingPorts& ports, Division division)
    : ports_(ports), division_(division), sides_{Side(workload, 0), Side(workload, 1)} {}

double BarePair::seconds_of(const FrameStock& stock) {
  for (std::size_t frame = 0; frame < stock.size(); ++frame) {
    const unsigned receiver = (stock.port_of(frame) + 1u) % ports_.size();
    ++sides_[side_of_port(receiver)].to_send;
  }
  rte_eal_remote_launch(run_second, this, rte_get_next_lcore(rte_lcore_id(), 1, 1));
  const double seconds = bench::seconds_of([&] {
    run(0);
    rte_eal_mp_wait_lcore();
  });
  ports_.take_transmitted();
  return seconds;
}

int BarePair::run_second(void* pair) {
  static_cast<BarePair*>(pair)->run(1);
  return 0;
}

/// A side that has sent all its results has no slot left: each slot has results for both.
void BarePair::run(unsigned number) {
  Side& side = sides_[number];
  Side& other = sides_[1 - number];
  while (side.to_send != 0 || !side.results_for_other.empty()) {
    for (std::uint16_t port = 0; port < ports_.size(); ++port) {
      const bool is_due = side.contributions_for_other.empty() &&
                          side.under_way[port] + BareSwitch::kBurst <= kWindow;
      if (side_of_port(port) == number && is_due) {
        receive(number, port);
      }
      hand_on(side.contributions_for_other, other.contributions);
    }
    add_contributions(side);
    send(number);
    hand_on(side.results_for_other, other.results);
  }
}

void BarePair::receive(unsigned number, std::uint16_t port) {
  std::array<rte_mbuf*, BareSwitch::kBurst> burst;
  const std::uint16_t count =
      rte_eth_rx_burst(ports_.device(port), 0, burst.data(), BareSwitch::kBurst);
  Side& side = sides_[number];
  side.under_way[port] += count;
  std::array<rte_mbuf*, BareSwitch::kBurst> own;
  std::array<BareSwitch::Place, BareSwitch::kBurst> places;
  std::size_t owns = 0;
  for (rte_mbuf* mbuf : std::span(burst).first(count)) {
    const BareSwitch::Place& place = side.bare.next_place(port);
    if (side_of_slot(place.slot) == number) {
      own[owns] = mbuf;
      places[owns++] = place;
    } else {
      side.contributions_for_other.push_back({mbuf, place});
    }
  }
  const BareSwitch::Place* place = places.data();
  lcore::for_each_parsed(std::span(own).first(owns), [&](frame::Frame& frame) {
    BareSwitch::check(frame);
    side.bare.add(frame, *place++);
  });
  if (division_ == Division::receiver_checks && owns == 0) { // all go to the other
    lcore::for_each_parsed(std::span(burst).first(count),
                           [](frame::Frame& frame) { BareSwitch::check(frame); });
  }
}

void BarePair::add_contributions(Side& side) {
  const std::size_t bursts = ports_.size() / 2; // as many as could come from the other's ports
  for (std::size_t i = 0; i < bursts; ++i) {
    std::array<Contribution, BareSwitch::kBurst> contributions;
    const unsigned count = side.contributions.pop(contributions);
    std::array<rte_mbuf*, BareSwitch::kBurst> burst;
    std::transform(contributions.begin(), contributions.begin() + count, burst.begin(),
                   [](const Contribution& contribution) { return contribution.mbuf; });
    const Contribution* contribution = contributions.data();
    lcore::for_each_parsed(std::span(burst).first(count), [&](frame::Frame& frame) {
      BareSwitch::check(frame); // does nothing if the receiver has checked it
      side.bare.add(frame, (contribution++)->place);
    });
  }
}

void BarePair::send(unsigned number) {
  Side& side = sides_[number];
  for (std::uint16_t port = 0; port < ports_.size(); ++port) {
    std::vector<rte_mbuf*>& leaving = side.bare.leaving_by(port);
    if (side_of_port(port) == number) {
      send(side, port, leaving);
    } else {
      for (rte_mbuf* mbuf : leaving) {
        side.results_for_other.push_back({mbuf, port});
      }
    }
    leaving.clear();
  }
  std::array<Departure, BareSwitch::kBurst> results;
  const unsigned count = side.results.pop(results);
  for (Departure& result : std::span(results).first(count)) {
    send(side, static_cast<std::uint16_t>(result.port), {&result.mbuf, 1});
  }
}

void BarePair::send(Side& side, std::uint16_t port, std::span<rte_mbuf*> results) {
  const std::uint16_t sent = rte_eth_tx_burst(ports_.device(port), 0, results.data(),
                                              static_cast<std::uint16_t>(results.size()));
  side.to_send -= sent;
  side.under_way[port] -= sent;
}

} // namespace weir::bench
