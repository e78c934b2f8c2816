// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coverage.hpp"
#include "frame/frame.hpp"
#include "incarnation_watch.hpp"
#include "link.hpp"
#include "ring_watch.hpp"
#include "scenario.hpp"
#include "slow_helpers.hpp"
#include "stage/inline_switch.hpp"
#include "world.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace weir::fabric {

/// The switch and its links. At every frame it checks what is visible from outside (I2, I6, I7),
/// and it makes the hash of everything that leaves (I8).
class Fabric : private stage::FrameSink {
 public:
  Fabric(World& world, const Scenario& scenario, std::uint64_t seed, Coverage& coverage);
  ~Fabric() override;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  /// Puts a packet on the link from a port's station to the switch.
  void send(std::uint16_t port, Packet& packet);
  /// A packet has come to the switch.
  void accept(Packet& packet);

  /// A helper makes a reduction, and the worker collects it.
  void let_helper_sum();

  void restart_switch();
  /// The new switch's configuration has another ring in place of this one.
  void forget_ring(std::uint16_t ring);
  void reset_ring(std::uint16_t ring);
  void withdraw_ring(std::uint16_t ring);
  void end_noise();
  /// A new epoch of the job begins: the check of its order starts again.
  void expect_epoch(std::uint16_t ring, std::uint32_t generation);
  /// The first PSN of a member's packets.
  void expect_member(std::uint16_t ring, std::uint16_t rank, std::uint32_t first_psn);

  Link& to_switch(std::uint16_t port) { return to_switch_[port]; }

  Link& from_switch(std::uint16_t port) { return from_switch_[port]; }

  const stage::InlineSwitch& engine() const { return *switch_; }

  /// The session of the switch's ring with this id.
  std::uint32_t session_of(std::uint32_t ring_id) const;
  /// The nonce of the ring's incarnation; 0: none.
  std::uint32_t nonce_of(std::uint16_t ring) const;

  std::uint64_t hash() const { return hash_; }

  /// What a ring waits for, for the text of a failure.
  std::string waiting_of(std::uint16_t ring) const;

 private:
  void transmit(frame::Frame& frame, l2::PortSet ports) override;
  void release(frame::Frame& frame) override;

  void install_switch(std::vector<ring::RingSpec> rings);
  void replace_switch(std::vector<ring::RingSpec> rings);
  void operator_acted(std::uint16_t ring);
  void carry(Link& link, Packet& packet, EventKind arrival, std::uint16_t port);
  void damage(Packet& packet);
  void check_departure(const Packet& packet, l2::PortSet ports) const;
  void check_unaltered(const Packet& packet) const;
  void check_result(const Packet& packet) const;
  void check_order(const Packet& packet);
  void check_balance() const;
  void tell_verdict() const;

  World& world_;
  const Scenario& scenario_;
  Coverage& coverage_;
  std::vector<Link> to_switch_;
  std::vector<Link> from_switch_;
  SlowHelpers helpers_;
  std::unique_ptr<stage::InlineSwitch> switch_;
  std::uint64_t hash_ = 0;
  std::uint64_t accepted_ = 0;
  const Packet* accepting_ = nullptr;
  std::vector<RingWatch> watches_;
  std::vector<IncarnationWatch> incarnations_; // by ring
  // Arrival number of its last frame that left.
  std::map<std::uint16_t, std::uint64_t> last_of_stream_;
};

} // namespace weir::fabric
