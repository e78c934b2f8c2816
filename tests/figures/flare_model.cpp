// SPDX-License-Identifier: BSD-3-Clause
#include "flare_model.hpp"

#include "inputs.hpp"
#include "units.hpp"

#include <algorithm>
#include <cmath>

namespace weir::figures::flare {
namespace {

constexpr double kGap = kCyclesPerPacket / kCores; // δ, cycles between packets at full rate

/// δc: cycles between two packets of a block, when each host starts with a different block (§5).
double gap_of_block(double bytes) {
  return kGap * std::max(1.0, bytes / kPacketBytes);
}

bool has_contention(const Design& design, double bytes) {
  return design.sharing == Sharing::buffers && design.cores > 1 &&
         design.buffers * gap_of_block(bytes) < kCyclesPerPacket;
}

double packets_per_cycle(const Design& design, double bytes) {
  return std::min(kCores / service_cycles(design, bytes), 1 / kGap);
}

double memory_per_block(const Design& design) {
  return design.sharing == Sharing::tree ? (kChildren - 1) / std::log2(kChildren) : design.buffers;
}

} // namespace

double service_cycles(const Design& design, double bytes) {
  if (design.sharing == Sharing::tree) {
    return (kChildren - 1) * kCyclesPerPacket / kChildren;
  }
  const double one = design.mean == Mean::printed ? -1 : 1;
  const double alone = has_contention(design, bytes)
                           ? kCyclesPerPacket * (kCoresPerCluster + one) / 2
                           : kCyclesPerPacket;
  return alone + (design.buffers - 1) * kCyclesPerPacket / kChildren;
}

double bandwidth(const Design& design, double bytes) {
  return packets_per_cycle(design, bytes) * kPacketBytes * kBitsPerByte * kCyclesPerSecond;
}

double waiting_packets(const Design& design, double bytes) {
  const double between = std::min(design.cores * gap_of_block(bytes), kCores * kGap); // δk
  const double waiting =
      kChildren * kCores / design.cores * (1 - between / service_cycles(design, bytes));
  return std::max(0.0, waiting);
}

double queued_packets(const Design& design, double bytes) {
  return waiting_packets(design, bytes) + kCores;
}

double working_memory(const Design& design, double bytes) {
  const double latency = (kChildren - 1) * gap_of_block(bytes) +
                         queued_packets(design, bytes) / kCores * service_cycles(design, bytes);
  return memory_per_block(design) * packets_per_cycle(design, bytes) / kChildren * latency *
         kPacketBytes;
}

double full_rate_from(const Design& design) {
  constexpr double kLongest = 1024.0 * 1024 * 1024;
  double bytes = kPacketBytes;
  while (bytes < kLongest && bandwidth(design, bytes) < bandwidth(design, kLongest)) {
    bytes *= 2;
  }
  return bytes;
}

} // namespace weir::figures::flare
