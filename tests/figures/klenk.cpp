// SPDX-License-Identifier: BSD-3-Clause

/// Figures of Klenk et al. (ISCA'20): bounds and table sizes; klenk_simulated.cpp has the packets.

#include "figure.hpp"
#include "inputs.hpp"
#include "klenk_simulated.hpp"

#include <array>

namespace weir::figures::klenk {
namespace {

/// §VI-A. A packet's write is acknowledged by one of a header's size.
double payload_rate() {
  constexpr double kPacket = kPayloadBytes + kHeaderBytes;
  return kPortsPerGpu * kPortBytesPerNs * kPayloadBytes / (kPacket + kHeaderBytes);
}

/// 2(p-1)/p: what a switch that adds and multicasts moves inside over what a port carries.
double gain(double gpus) {
  return 2 * (gpus - 1) / gpus;
}

void bounds(const Settings& /*settings*/, Results& results) {
  results.value("GB/s", payload_rate());
  results.value("GB/s.ring", payload_rate() / gain(kGpus));
}

/// §VI-D, equations (1) and (2): bytes that a table must hold.
void table_sizes(const Settings& /*settings*/, Results& results) {
  const double pull = kPortBytesPerNs / (kGpus - 1) * (2 * kHopsToMemory * kHopNs + kGpuMemoryNs);
  results.value("pull.bytes a port", pull);
  const double push = kPortsPerGpu * kPortBytesPerNs * kHopsToMemory * kHopNs;
  constexpr double kWire = static_cast<double>(kPayloadBytes + kHeaderBytes) / kPayloadBytes;
  results.value("push.bytes a port", push / kAllPorts);
  results.value("push.bytes a port.wire", push / kAllPorts * kWire);
}

/// §IV-E1.
void speed_up(const Settings& /*settings*/, Results& results) {
  results.value("gain.16", gain(kGpus));
  results.value("gain.1024", gain(1024));
}

/// §VI-E: a share of the time goes to communication; it shrinks by `faster`.
void amdahl(const Settings& /*settings*/, Results& results) {
  constexpr double kFaster = 2;
  results.value("share", kCommunicationShare / kFaster);
}

constexpr std::array kFigures{
    Figure{"KL1", bounds},
    Figure{"KL2", bandwidth_of_16},
    Figure{"KL3", bandwidth_of_128},
    Figure{"KL4", table_without_waves},
    Figure{"KL5", waves},
    Figure{"KL6", packet_latency},
    Figure{"KL7", table_sizes},
    Figure{"KL8", speed_up},
    Figure{"KL9", amdahl},
};

} // namespace
} // namespace weir::figures::klenk

std::span<const weir::figures::Figure> weir::figures::klenk_figures() {
  return klenk::kFigures;
}
