// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "lcore/transmit.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

struct rte_mempool;

namespace weir::control {

/// A device that cannot be had or set up; what() names the port, the device and the driver's
/// answer.
class PortError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What the switch itself cannot count: frames that the device lost.
struct DeviceLosses {
  std::uint64_t rx_missed = 0; // no descriptor or mbuf for them
  std::uint64_t rx_errors = 0;
  std::uint64_t tx_errors = 0;
};

struct PortInformation {
  std::string driver;
  std::string mac;
  std::string link; // "up 100000 Mbit/s", "down"
  std::uint16_t mtu = 0;
  int numa_node = -1;
  bool promiscuous = false;
};

/// One DPDK device as a port of the switch: probed, configured, started, stopped.
class Port {
 public:
  /// Probes the device. Throws PortError.
  explicit Port(const config::PortConfig& config);
  ~Port();
  Port(Port&& other) noexcept;
  Port& operator=(Port&&) = delete;

  /// As many transmit queues as tx_queues() names, config.rx_queues receive queues fed from `pool`,
  /// promiscuous. Throws PortError.
  void start(rte_mempool* pool);
  void stop();
  /// Stops it and gives back the mbufs that its driver keeps while it is open. Not to be started
  /// again.
  void close();

  const std::string& name() const { return config_.name; }

  const config::PortConfig& config() const { return config_; }

  std::uint16_t device() const { return device_; }

  /// A NIC has a transmit queue for each traffic class: a result then waits for no frame of other
  /// traffic that the NIC has already. Virtual devices have one: their other ends need not look at
  /// a second.
  const lcore::TxQueues& tx_queues() const { return tx_queues_; }

  /// What the driver could not do as configured, in words; empty when all is well.
  const std::vector<std::string>& warnings() const { return warnings_; }

  PortInformation information() const;
  DeviceLosses losses() const;
  void clear_statistics();
  std::vector<std::pair<std::string, std::uint64_t>> extended_statistics() const;

 private:
  void probe();
  void choose_tx_queues();
  std::uint16_t number_of_tx_queues() const;
  void configure();
  void set_mtu(const char* driver);
  void set_up_queues(rte_mempool* pool);
  void check(int answer, const char* what) const;

  config::PortConfig config_;
  std::uint16_t device_;
  lcore::TxQueues tx_queues_;
  bool is_started_ = false;
  std::vector<std::string> warnings_;
};

} // namespace weir::control
