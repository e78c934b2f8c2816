// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// NetReduce's three methods to all-reduce over machines with several GPUs (§3.4): by the formulas
/// of appendix A and, independently, as phases of flows.

#include "flow_level.hpp"
#include "inputs.hpp"

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace weir::figures::netreduce {

struct Cluster {
  double gpus = 0;                      // P
  double per_machine = kGpusPerMachine; // n
  double intra = 0;                     // B_intra, bytes/s
  double inter = kInterBytesPerSecond;  // B_inter, bytes/s
  double latency = 0;                   // α, seconds
  double bytes = 0;                     // M
};

/// Links of a cluster: GPU g sends on 2g and receives on 2g+1; then two links for each machine's
/// NIC.
class Machines {
 public:
  explicit Machines(const Cluster& cluster);

  const std::vector<double>& rates() const { return rates_; }

  std::uint32_t machines() const { return gpus_ / per_machine_; }

  /// From GPU to GPU: inside a machine by their own ports, else by the NICs.
  Flow between(std::uint32_t from, std::uint32_t to, double bytes) const;

  /// Up to a switch that adds, and down at the same time.
  Flow by_switch(std::uint32_t machine, double bytes) const;

  /// A step inside every machine: local GPU g sends to target(g).
  std::vector<Flow> inside(const std::function<std::uint32_t(std::uint32_t)>& target,
                           double bytes) const;

  /// A step of a ring inside every machine.
  std::vector<Flow> next_inside(double bytes) const;

 private:
  std::uint32_t gpus_;
  std::uint32_t per_machine_;
  std::vector<double> rates_;
};

struct Method {
  std::string_view name;
  double (*seconds)(const Cluster&); ///< appendix A
  std::vector<Phase> (*phases)(const Cluster&, const Machines&);
};

/// Flat ring, Tencent's all-reduce, parallel NetReduce.
extern const Method kFlatRing;
extern const Method kTencent;
extern const Method kParallel;

} // namespace weir::figures::netreduce
