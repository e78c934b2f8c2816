// SPDX-License-Identifier: BSD-3-Clause
#include "control/loop_judge.hpp"

#include <algorithm>
#include <utility>

namespace weir::control {

std::vector<LoopFinding> LoopJudge::look(std::span<const ProbesSeen> seen, const PortsNow& ports,
                                         std::uint64_t now_ns) {
  Findings findings;
  l2::for_each_port(ports.bridged, [&](std::uint16_t port) {
    look_at_bridged(port, seen[port], ports.of_trees, now_ns, findings);
  });
  l2::for_each_port(ports.unbridged, [&](std::uint16_t port) {
    look_at_unbridged(port, seen[port], now_ns, findings);
  });
  reopen(ports.bridged, now_ns, findings);
  return findings;
}

void LoopJudge::look_at_bridged(std::uint16_t port, const ProbesSeen& seen, l2::PortSet of_trees,
                                std::uint64_t now_ns, Findings& findings) {
  if (seen.others != 0) {
    ports_[port].switch_at_ns = now_ns;
  }
  if (seen.own != 0) {
    const auto [lower, higher] = std::minmax({port, seen.own_from});
    const std::uint16_t chosen = one_to_close(lower, higher, of_trees);
    close(chosen, chosen == lower ? higher : lower, now_ns, findings);
  }
}

/// A loop of which a port is closed already is none: that port stays closed.
std::uint16_t LoopJudge::one_to_close(std::uint16_t lower, std::uint16_t higher,
                                      l2::PortSet of_trees) const {
  if (is_closed(lower) || is_closed(higher)) {
    return is_closed(lower) ? lower : higher;
  }
  return l2::has(of_trees, higher) && !l2::has(of_trees, lower) ? lower : higher;
}

void LoopJudge::close(std::uint16_t port, std::uint16_t other, std::uint64_t now_ns,
                      Findings& findings) {
  PortLoops& loops = ports_[port].loops;
  if (!is_closed(port)) {
    ++loops.loops;
    loops.other = other;
    findings.push_back({.kind = LoopFinding::Kind::closed, .port = port, .other = other});
  }
  loops.closed_until_ns = now_ns + kClosed;
}

void LoopJudge::look_at_unbridged(std::uint16_t port, const ProbesSeen& seen, std::uint64_t now_ns,
                                  Findings& findings) {
  const std::uint64_t probes = seen.own + seen.others;
  if (probes == 0) {
    return;
  }
  State& state = ports_[port];
  state.loops.wrong_cable += probes;
  const std::uint64_t before = std::exchange(state.wrong_cable_at_ns, now_ns);
  if (before == 0 || now_ns - before > kCableIsNews) {
    findings.push_back({.kind = LoopFinding::Kind::wrong_cable,
                        .port = port,
                        .sender = seen.others != 0 ? seen.others_from : 0});
  }
}

/// One that is gone, or that the configuration has taken from the bridge, is forgotten in silence.
void LoopJudge::reopen(l2::PortSet bridged, std::uint64_t now_ns, Findings& findings) {
  l2::for_each_port(closed(), [&](std::uint16_t port) {
    const bool is_there = l2::has(bridged, port);
    if (is_there && now_ns < ports_[port].loops.closed_until_ns) {
      return;
    }
    ports_[port].loops.closed_until_ns = 0;
    if (is_there) {
      findings.push_back({.kind = LoopFinding::Kind::reopened, .port = port});
    }
  });
}

std::vector<LoopFinding> LoopJudge::end() {
  Findings findings;
  const l2::PortSet all = closed();
  reopen(all, UINT64_MAX, findings);
  return findings;
}

l2::PortSet LoopJudge::closed() const {
  l2::PortSet ports = 0;
  for (std::uint16_t port = 0; port < l2::kMaxPorts; ++port) {
    ports |= is_closed(port) ? l2::set_of(port) : 0;
  }
  return ports;
}

l2::PortSet LoopJudge::to_switches(std::uint64_t now_ns) const {
  l2::PortSet ports = 0;
  for (std::uint16_t port = 0; port < l2::kMaxPorts; ++port) {
    const std::uint64_t at = ports_[port].switch_at_ns;
    ports |= at != 0 && now_ns - at < kSwitchIsThere ? l2::set_of(port) : 0;
  }
  return ports;
}

} // namespace weir::control
