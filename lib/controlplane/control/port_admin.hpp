// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/port.hpp"
#include "control/port_counts.hpp"
#include "control/writer_lock.hpp"
#include "l2/port_set.hpp"
#include "ring/ring_spec.hpp"

#include <cstdint>
#include <memory>

namespace weir::lcore {
class TxPort;
} // namespace weir::lcore

namespace weir::control {

struct Chassis;
class RingAdmin;

/// Opens, replaces and closes ports while the switch runs. Any thread may use it. A port's place is
/// its number everywhere in the switch.
class PortAdmin {
 public:
  /// All outlive it.
  PortAdmin(Chassis& chassis, const RingAdmin& rings, PortCounts& counts)
      : chassis_(chassis), rings_(rings), counts_(counts) {}

  /// Before the lcores run: takes the ports from them whose other end is not there yet. mend()
  /// gives them back.
  void withhold_unstarted();
  /// For who looks now and then: opens ports again whose interface was deleted and made again, and
  /// connects those whose other end has gone and may be back. Jobs behind them go on. Frames for
  /// them are dropped meanwhile, as DropReason::port_closed.
  void mend();
  void clear_counters(std::uint16_t place);
  /// Tells the workers which ports have no link, if these are others than at the last call. One
  /// thread calls it.
  void follow_links();

  // For a reload.

  /// The port, which is started, takes a place that is free.
  void open(std::uint16_t place, const std::shared_ptr<Port>& port, const WriterLock& lock);
  /// First receiving ends; then, when what has come by the port is worked off, it takes no more,
  /// and the rings forget it.
  void close(std::uint16_t place, const WriterLock& lock);
  /// Whether a member speaks by the port. One that the configuration moves to another port does so
  /// no longer.
  bool speaks_by(std::uint16_t ring, const ring::RingSpec& as_it_will_be, std::uint16_t place,
                 const lcore::Quiesce& quiesced) const;

 private:
  std::unique_ptr<lcore::TxPort> queues_of(const Port& port, std::uint16_t place,
                                           const WriterLock& lock) const;
  void give_device(std::uint16_t place, const Port& port, std::unique_ptr<lcore::TxPort> queues,
                   const lcore::Quiesce& quiesced);
  void take_device(std::uint16_t place);
  void withhold_unless_started(std::uint16_t place, const Port& port,
                               const lcore::Quiesce& quiesced);
  void mend(std::uint16_t place, const WriterLock& lock);
  void replace(std::uint16_t place, const WriterLock& lock);
  void reconnect(std::uint16_t place, const WriterLock& lock);
  void forget_members_behind(std::uint16_t place, const lcore::Quiesce& quiesced);

  Chassis& chassis_;
  const RingAdmin& rings_;
  PortCounts& counts_;
  l2::PortSet ports_down_ = 0; // as the workers know them
};

} // namespace weir::control
