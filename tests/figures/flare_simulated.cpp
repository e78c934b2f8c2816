// SPDX-License-Identifier: BSD-3-Clause
#include "flare_simulated.hpp"

#include "inputs.hpp"
#include "netsim/fold_servers.hpp"
#include "plan/generators.hpp"
#include "switch_run.hpp"
#include "units.hpp"

#include <fmt/format.h>

#include <string>

namespace weir::figures::flare {
namespace {

/// 64 hosts below 8 leaves, as many uplinks as hosts (the text's 8-port switches hold only 32).
plan::Topology fat_tree(Mutation mutation) {
  const auto rate = static_cast<std::uint64_t>(kLinkBytesPerSecond * kBitsPerByte);
  return mutated(plan::make_fat_tree(kLeaves, kHosts / kLeaves, {rate, kCableLatencyNs}), mutation);
}

/// §4 to §6: K cores, S of them for a block, hosts that start with different blocks.
netsim::FoldServers servers(std::uint64_t tensor_bytes) {
  constexpr auto kPacket = static_cast<std::uint64_t>(kPacketBytes);
  netsim::FoldServers servers;
  servers.servers = static_cast<std::uint32_t>(kCores);
  servers.servers_a_block = static_cast<std::uint32_t>(kCoresPerCluster);
  servers.fold_time = static_cast<netsim::Time>(kCyclesPerPacket) * netsim::kNanosecond;
  servers.spacing = servers.fold_time / servers.servers;
  servers.children = static_cast<std::uint32_t>(kChildren);
  servers.blocks = tensor_bytes / kPacket;
  servers.sending = netsim::FoldServers::Sending::staggered;
  return servers;
}

double terabits(const netsim::FoldServers& settings) {
  const netsim::FoldServersResult run = netsim::run_fold_servers(settings);
  return static_cast<double>(run.packets) * kPacketBytes * kBitsPerByte / seconds_of(run.duration) /
         kTera;
}

} // namespace

void simulated_servers(const Settings& settings, Results& results) {
  using Buffers = netsim::FoldServers::Buffers;
  for (std::uint64_t kib = 16; kib <= 4096; kib *= 2) {
    netsim::FoldServers single = servers(kib * kKib);
    if (settings.mutation == Mutation::step_later) {
      single.fold_time *= 2;
    }
    netsim::FoldServers tree = single;
    tree.design = Buffers::tree;
    const double rate = terabits(single);
    results.point("servers", "one buffer", static_cast<double>(kib), rate);
    results.point("servers", "tree", static_cast<double>(kib), terabits(tree));
    if (kib == 16) {
      results.value("servers.tree over one.16 KiB", terabits(tree) / rate);
    }
    if (kib == 16 || kib == 4096) {
      results.value(fmt::format("servers.{} KiB", kib), rate);
      results.value(fmt::format("servers.tree.{} KiB", kib), terabits(tree));
    }
  }
}

namespace {

void time_of(double share, const std::string& name, const Settings& settings, Results& results) {
  const auto bytes = static_cast<std::uint64_t>(kTensorBytes * share);
  const netsim::WeirSettings traits;
  const Compared run = compare(fat_tree(settings.mutation), bytes, traits);
  const double bound = wire_bytes(bytes, traits.host) / kLinkBytesPerSecond;
  const double ring_bound = bound * 2 * (kHosts - 1) / kHosts;
  results.value("ring over dense" + name, run.gain());
  results.value("dense over bound" + name, seconds_of(run.through_switch.duration) / bound);
  results.value("ring over bound" + name, seconds_of(run.ring.duration) / ring_bound);
}

} // namespace

void dense_time(const Settings& settings, Results& results) {
  constexpr double kQuickShare = 1.0 / 16;
  time_of(kQuickShare, "", settings, results);
  if (settings.effort == Effort::full) {
    time_of(1, ".all", settings, results);
  }
}

void simulated_traffic(const Settings& settings, Results& results) {
  constexpr std::uint64_t kBytes = 1024 * kKib;
  const plan::Topology topology = fat_tree(settings.mutation);
  const Compared run = compare(topology, kBytes, {});
  const auto sum = [](const netsim::WeirResult& one) {
    double bytes = 0;
    for (const netsim::LinkUse& link : one.links) {
      bytes += static_cast<double>(link.bytes);
    }
    return bytes;
  };
  results.value("ring over dense.packets", sum(run.ring) / sum(run.through_switch));
}

} // namespace weir::figures::flare
