// SPDX-License-Identifier: BSD-3-Clause

/// Figures of Klenk et al. (ISCA'20): bounds and table sizes; klenk_simulated.cpp has the packets.

#include "figure.hpp"
#include "inputs.hpp"
#include "klenk_simulated.hpp"

#include <array>

namespace weir::figures::klenk {
namespace {

/// Bytes a nanosecond of a GPU's first port.
double port_rate(Mutation mutation) {
  return mutation == Mutation::link_slower ? kPortBytesPerNs / 2 : kPortBytesPerNs;
}

/// Of all its ports together.
double gpu_rate(Mutation mutation) {
  return port_rate(mutation) + (kPortsPerGpu - 1) * kPortBytesPerNs;
}

/// §VI-A. A packet's write is acknowledged by one of a header's size.
double payload_rate(Mutation mutation) {
  constexpr double kPacket = kPayloadBytes + kHeaderBytes;
  return gpu_rate(mutation) * kPayloadBytes / (kPacket + kHeaderBytes);
}

/// 2(p-1)/p: what a switch that adds and multicasts moves inside over what a port carries. It is
/// what the steps of a ring move too.
double gain(double gpus, Mutation mutation) {
  const double steps = 2 * (gpus - 1) + (mutation == Mutation::step_later ? 1 : 0);
  return steps / gpus;
}

void bounds(const Settings& settings, Results& results) {
  const double rate = payload_rate(settings.mutation);
  results.value("GB/s", rate);
  results.value("GB/s.ring", rate / gain(kGpus, settings.mutation));
}

/// §VI-D, equations (1) and (2): bytes that a table must hold.
void table_sizes(const Settings& settings, Results& results) {
  const double hops = kHopsToMemory + (settings.mutation == Mutation::step_later ? 1 : 0);
  const double pull =
      port_rate(settings.mutation) / (kGpus - 1) * (2 * hops * kHopNs + kGpuMemoryNs);
  results.value("pull.bytes a port", pull);
  const double push = gpu_rate(settings.mutation) * hops * kHopNs;
  constexpr double kWire = static_cast<double>(kPayloadBytes + kHeaderBytes) / kPayloadBytes;
  results.value("push.bytes a port", push / kAllPorts);
  results.value("push.bytes a port.wire", push / kAllPorts * kWire);
}

/// §IV-E1.
void speed_up(const Settings& settings, Results& results) {
  results.value("gain.16", gain(kGpus, settings.mutation));
  results.value("gain.1024", gain(1024, settings.mutation));
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
