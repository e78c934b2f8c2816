// SPDX-License-Identifier: BSD-3-Clause
#include "control/loops.hpp"

#include "control/chassis.hpp"
#include "control/settings.hpp"
#include "lcore/clock.hpp"
#include "wire/keyed_hash.hpp"
#include "wire/loop_probe.hpp"

#include <bit>
#include <thread>
#include <utility>

namespace weir::control {

using lcore::Quiesce;

namespace {

/// Never 0.
std::uint64_t random_number() {
  std::uint64_t number = 0;
  while (number == 0) {
    number = wire::HashKey::random().first;
  }
  return number;
}

/// What has come since it was counted last.
void add_news(const stage::SeenProbes::ByPort& seen, ProbesSeen& counted, ProbesSeen& news) {
  const std::uint64_t own = seen.own;
  const std::uint64_t others = seen.others;
  if (own != counted.own) {
    news.own_from = static_cast<std::uint16_t>(seen.own_from.get());
  }
  if (others != counted.others) {
    news.others_from = seen.others_from;
  }
  news.own += own - std::exchange(counted.own, own);
  news.others += others - std::exchange(counted.others, others);
}

bool is_up(const Port& port) {
  return port.information().link.starts_with("up");
}

} // namespace

PortsNow ports_now(const config::Config& config) {
  PortsNow now;
  now.unbridged = unbridged_ports(config);
  for (std::uint16_t place = 0; place < config.ports.size(); ++place) {
    now.bridged |= config.ports[place].is_there() ? l2::set_of(place) & ~now.unbridged : 0;
  }
  return now;
}

Loops::Loops(Chassis& chassis) : chassis_(chassis), sender_(random_number()) {}

std::vector<LoopNews> Loops::look() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) {
    return {};
  }
  next_ = now + kPeriod - kWayBack; // the caller looks once a period, more or less
  const WriterLock lock(chassis_.one_writer);
  const config::Config& config = chassis_.config.read(lock);
  PortsNow ports = ports_now(config);
  ports.of_trees = chassis_.rings.read(lock).ports_of_switches();
  return named(config.l2.loop_detection == config::YesNo::yes ? find(ports, lock) : end(lock),
               lock);
}

PortLoops Loops::of(std::uint16_t place) const {
  const std::lock_guard one(one_at_a_time_);
  return judge_.of(place);
}

/// A loop leads through two ports at least.
std::vector<LoopFinding> Loops::find(const PortsNow& ports, const WriterLock& lock) {
  is_looking_ = true;
  const bool has_ways_for_loop = std::popcount(ports.bridged) > 1;
  send(has_ways_for_loop ? ports.bridged & ~closed_ : 0, lock);
  std::this_thread::sleep_for(kWayBack);
  std::vector<LoopFinding> findings = judge(ports);
  close(judge_.closed());
  return findings;
}

void Loops::send(l2::PortSet bridged, const WriterLock& lock) {
  l2::for_each_port(bridged, [&](std::uint16_t place) {
    const std::shared_ptr<Port>& port = chassis_.ports.read(lock)[place];
    bridged &= port && is_up(*port) ? ~l2::PortSet{0} : ~l2::set_of(place);
  });
  std::array<std::uint64_t, l2::kMaxPorts> tokens{};
  l2::for_each_port(bridged, [&](std::uint16_t place) { tokens[place] = random_number(); });

  const Quiesce quiesced(chassis_.lcores);
  stage::SentProbes& probes = chassis_.shared->probes;
  probes.are_sent = true;
  probes.sender = sender_;
  probes.to_switches = judge_.to_switches(lcore::Clock().now().ns);
  for (std::size_t place = 0; place < tokens.size(); ++place) {
    probes.tokens[place] = {tokens[place], probes.tokens[place].newest};
  }
  l2::for_each_port(bridged, [&](std::uint16_t place) { send_by(place, lock, quiesced); });
}

/// On the lcore that transmits there. Without an mbuf the next second has another try.
void Loops::send_by(std::uint16_t place, const WriterLock& lock, const Quiesce&) {
  const std::uint64_t token = chassis_.shared->probes.tokens[place].newest;
  const wire::LoopProbeFrame frame = frame_of(wire::loop_probe(sender_, place, token));
  const Placement& placement = chassis_.placement.read(lock);
  chassis_.lcores[placement.transmitter_of_port[place]].originate(frame, place,
                                                                  lcore::Clock().now());
}

std::vector<LoopFinding> Loops::judge(const PortsNow& ports) {
  const Seen seen = seen_since_last();
  const std::lock_guard one(one_at_a_time_);
  return judge_.look(seen, ports, lcore::Clock().now().ns);
}

Loops::Seen Loops::seen_since_last() {
  Seen sum;
  counted_.resize(chassis_.lcores.size());
  for (std::size_t lcore = 0; lcore < counted_.size(); ++lcore) {
    for (std::size_t place = 0; place < sum.size(); ++place) {
      add_news(chassis_.lcores[lcore].seen_probes().ports[place], counted_[lcore][place],
               sum[place]);
    }
  }
  return sum;
}

std::vector<LoopFinding> Loops::end(const WriterLock&) {
  if (!std::exchange(is_looking_, false)) {
    return {};
  }
  {
    const Quiesce quiesced(chassis_.lcores);
    chassis_.shared->probes = {};
  }
  close(0);
  const std::lock_guard one(one_at_a_time_);
  return judge_.end();
}

/// Stations behind a port that closes may be reached by another one.
void Loops::close(l2::PortSet ports) {
  const l2::PortSet former = std::exchange(closed_, ports);
  if (ports == former) {
    return;
  }
  {
    const Quiesce quiesced(chassis_.lcores);
    chassis_.bridge.shut(ports, l2::Bridge::Why::loop);
  }
  l2::for_each_port(ports & ~former,
                    [&](std::uint16_t place) { chassis_.stations.forget_port(place); });
}

std::vector<LoopNews> Loops::named(const std::vector<LoopFinding>& findings,
                                   const WriterLock& lock) const {
  const auto& ports = chassis_.config.read(lock).ports;
  std::vector<LoopNews> news;
  for (const LoopFinding& finding : findings) {
    news.push_back(
        {finding.kind, ports[finding.port].name, ports[finding.other].name, finding.sender});
  }
  return news;
}

} // namespace weir::control
