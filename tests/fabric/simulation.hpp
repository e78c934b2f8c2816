// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coverage.hpp"
#include "fabric.hpp"
#include "job.hpp"
#include "rogue.hpp"
#include "scenario.hpp"
#include "world.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::fabric {

/// The result of a seed.
struct Outcome {
  std::uint64_t hash = 0; // of all that left the switch, with times
  std::string invariant;  // the violated one; empty: none
  std::string text;

  bool is_sound() const { return invariant.empty(); }
};

/// One run of a seed: hosts, links, a switch, strangers and faults. It ends when every job that
/// must finish has finished.
class Simulation {
 public:
  Simulation(std::uint64_t seed, Topology topology, Tracing tracing, Coverage& coverage);

  Outcome run();

 private:
  void set_up();
  void run_until_finished();
  void dispatch(const Event& event);
  void at_switch(const Event& event);
  void at_port(const Event& event);
  void deliver(std::uint16_t host, Packet& packet);
  void wake_member(const Event& event);
  void begin_fault(const Fault& fault);
  void end_fault(const Fault& fault);
  void restart_switch(std::uint16_t node);
  void reset_ring(const Fault& fault);
  template <typename Act>
  void at_switches_of(const Fault& fault, Act&& act);
  void send_stream_frame(std::uint16_t stream);
  bool is_finished() const;
  void cover_dead_neighbours();
  void check_deadline();
  std::string describe() const;

  World world_;
  Coverage& coverage_;
  Scenario scenario_;
  Fabric fabric_;
  Rogue rogue_;
  std::vector<HostState> hosts_;
  QueuePairNumbers numbers_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::uint64_t events_ = 0;
  bool is_noisy_ = true; // until the faults end
};

} // namespace weir::fabric
