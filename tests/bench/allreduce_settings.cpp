// SPDX-License-Identifier: BSD-3-Clause
#include "allreduce_settings.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace weir::bench {
namespace {

constexpr Time kMicrosecond = 1000;

/// What a measurement of the network varies besides ranks and tensors.
struct Trouble {
  std::string_view about;
  std::string_view parameter;
  AllReduce (*network)(std::uint32_t value);
};

/// Where the hellos are over.
constexpr Time kFirstOutage = 5 * kMicrosecond;
constexpr Time kOutagesApart = 2000 * kMicrosecond;
constexpr Time kLateness = 5 * kMicrosecond; // at most
constexpr std::uint32_t kMeanBurst = 8;

AllReduce loss_on_all_links(std::uint32_t ppm) {
  return {.links = lossy_link(ppm)};
}

AllReduce loss_on_one_link(std::uint32_t ppm) {
  return {.first_link = lossy_link(ppm)};
}

AllReduce loss_in_bursts(std::uint32_t ppm) {
  AllReduce wanted{.links = lossy_link(ppm)};
  wanted.links.mean_burst = kMeanBurst;
  return wanted;
}

AllReduce late_frames(std::uint32_t ppm) {
  AllReduce wanted;
  wanted.links.late = ppm;
  wanted.links.spread = kLateness;
  wanted.links.order = network::LinkTraits::Order::free;
  return wanted;
}

AllReduce flapping_link(std::uint32_t microseconds) {
  AllReduce wanted{.first_link = lossy_link(0)};
  wanted.first_link->outages = {kFirstOutage, kOutagesApart, microseconds * kMicrosecond};
  return wanted;
}

/// The delay of all links, which lose one frame in ten thousand: what a loss costs is a round trip.
AllReduce delayed_links(std::uint32_t ns) {
  AllReduce wanted{.links = lossy_link(100)};
  wanted.links.delay = ns;
  return wanted;
}

AllReduce incast(std::uint32_t percent) {
  return {.foreign_load = percent * network::kPercent};
}

constexpr Trouble kNothing{"size", "loss ppm", loss_on_all_links};
constexpr Trouble kLoss{"loss", "loss ppm", loss_on_all_links};
constexpr Trouble kOneLink{"one link", "loss ppm", loss_on_one_link};
constexpr Trouble kBursts{"bursts", "loss ppm", loss_in_bursts};
constexpr Trouble kReordering{"reordering", "late ppm", late_frames};
constexpr Trouble kFlapping{"flapping", "down us", flapping_link};
constexpr Trouble kDelays{"delay", "delay ns", delayed_links};
constexpr Trouble kIncast{"incast", "foreign percent", incast};

/// One trouble, for all combinations of these.
struct Sweep {
  Trouble trouble;
  std::vector<std::uint16_t> ranks;
  std::vector<std::size_t> kib; // of the tensor
  std::vector<std::uint32_t> values;
};

std::vector<Sweep> full_sweeps() {
  const std::vector<std::uint16_t> few{2, 3, 4, 8, 16, 32};
  const std::vector<std::uint16_t> ranks{2, 3, 4, 8, 16, 32, 64};
  const std::vector<std::uint32_t> many{100, 1000, 10'000};
  return {
      {kNothing, {2, 3, 4, 6, 8, 12, 16}, {64, 1024, 4096}, {0}},
      {kLoss, ranks, {64, 1024, 2048}, {0, 1, 10, 100, 1000, 10'000}},
      {kOneLink, ranks, {2048}, many},
      {kBursts, ranks, {2048}, many},
      {kReordering, ranks, {2048}, many},
      {kFlapping, ranks, {2048}, {100, 200, 400, 800}},
      {kDelays, {16, 32, 64}, {2048}, {250, 500, 1000, 2000}},
      {kIncast, few, {2048}, {25, 50, 75}}, // the other stations take ports
  };
}

std::vector<Sweep> quick_sweeps() {
  return {
      {kNothing, {2, 3, 4, 6, 8}, {64, 1024}, {0}},
      {kLoss, {2, 4}, {1024}, {0, 100, 10'000}},
      {kOneLink, {4}, {256}, {1000}},
      {kBursts, {4}, {256}, {1000}},
      {kReordering, {4}, {256}, {1000}},
      {kFlapping, {4}, {256}, {100}},
      {kDelays, {4}, {256}, {250}},
      {kIncast, {4}, {256}, {50}},
  };
}

/// Hosts that are not as usual belong to the case.
void add_hosts(Case& parameters, const HostTraits& hosts) {
  const HostTraits usual;
  const auto add = [&](std::string_view name, std::uint32_t HostTraits::*trait) {
    if (hosts.*trait != usual.*trait) {
      parameters.with(name, hosts.*trait);
    }
  };
  add("in flight", &HostTraits::packets_in_flight);
  add("window", &HostTraits::window);
  add("message bytes", &HostTraits::message_bytes);
  add("MTU", &HostTraits::mtu);
}

Setting setting_of(const Trouble& trouble, std::uint16_t ranks, std::size_t kib,
                   std::uint32_t value, const HostTraits& hosts) {
  Setting setting{.wanted = trouble.network(value)};
  setting.wanted.ranks = ranks;
  setting.wanted.bytes = kib << 10;
  setting.wanted.hosts = hosts;
  setting.parameters.with("about", trouble.about)
      .with("ranks", ranks)
      .with("tensor KiB", kib)
      .with(trouble.parameter, value);
  add_hosts(setting.parameters, hosts);
  return setting;
}

} // namespace

std::vector<Setting> settings_of(const Options& options, const HostTraits& hosts) {
  std::vector<Setting> settings;
  for (const Sweep& sweep : options.effort == Effort::full ? full_sweeps() : quick_sweeps()) {
    for (const std::uint16_t ranks : sweep.ranks) {
      for (const std::size_t kib : sweep.kib) {
        for (const std::uint32_t value : sweep.values) {
          Setting setting = setting_of(sweep.trouble, ranks, kib, value, hosts);
          if (setting.parameters.is_wanted(options)) {
            settings.push_back(std::move(setting));
          }
        }
      }
    }
  }
  return settings;
}

} // namespace weir::bench
