// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "control/kernel_interface.hpp"
#include "control/placement.hpp"
#include "control/steering.hpp"
#include "lcore/tx_port.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

struct rte_mempool;

namespace weir::control {

/// A port that cannot be opened, set up or closed. what() has the port and why: the device and the
/// driver's answer, or what would be allowed.
class PortError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Frames that the device lost; the switch cannot count these.
struct DeviceLosses {
  std::uint64_t rx_missed = 0; // no descriptor or mbuf was free
  std::uint64_t rx_errors = 0;
  std::uint64_t tx_errors = 0;
};

struct PortInformation {
  std::string driver;
  std::string mac;
  std::string link;   // "up 100000 Mbit/s", "up, speed unknown", "down", "gone"
  std::string remedy; // of a port that is gone, in words
  std::uint16_t mtu = 0;
  int numa_node = kNoNode;
  bool promiscuous = false;
};

/// The NUMA node of the port's PCI device, which EAL has probed; otherwise kNoNode. A virtual
/// device is where its memory is, so nothing is far from it.
int numa_node_of(const config::PortConfig& port);

/// One DPDK device as a port of the switch: probed, configured, started, stopped. Several threads
/// may ask it; a closed one has nothing to say.
class Port {
 public:
  /// Probes the device. Throws PortError.
  explicit Port(const config::PortConfig& config);
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  /// Starts the queues of tx_queues(), more if the driver wants as many as receive queues, and
  /// config.rx_queues receive queues fed from `pool`, in promiscuous mode. Throws PortError. One
  /// that has to wait for its other end is not started: no lcore may poll it, and can_reconnect()
  /// says when it may be.
  void start(rte_mempool* pool);
  bool is_started() const;
  void stop();
  /// Stops the device and frees the mbufs that its driver holds. It cannot be started again.
  void close();
  /// Closes the device and gives it back, so that it can be probed again. Throws PortError.
  void detach();

  const std::string& name() const { return config_.name; }

  const config::PortConfig& config() const { return config_; }

  std::uint16_t device() const { return device_; }

  int numa_node() const;

  /// A NIC has a transmit queue for each traffic class, so a result does not wait behind other
  /// traffic that the NIC already has. Virtual devices have one: the other end may never read a
  /// second.
  const lcore::TxQueues& tx_queues() const { return tx_queues_; }

  /// Settings that the driver could not apply, in words. Empty when there are none.
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// With `rx_steering: flow`: installs the plan's rules that there are not. A rule that the driver
  /// refuses is no error. For a started port.
  void install_rules(const SteeringPlan& plan);
  /// With `rx_steering: flow`: removes the rules that the plan has not.
  void keep_only_rules(const SteeringPlan& plan);
  /// nullopt without `rx_steering: flow`, and for a port that is not started.
  std::optional<SteeringState> steering() const;

  /// Whether its interface has gone, and an interface has its name again, so that a new port can
  /// take this one's place.
  bool can_be_replaced() const;
  /// Why the new one could not be opened.
  void tell_why_gone(const std::string& why);

  /// Whether its driver connects only at the start, has no other end now, and there may be one:
  /// for who looks now and then.
  bool can_reconnect();
  /// Stops the device, which no lcore polls, and starts it again, as start(). Throws PortError;
  /// then the device stays stopped.
  void restart();

  PortInformation information() const;
  /// Whether it certainly has no link: its cable is out, or its interface is gone.
  bool is_down() const;
  DeviceLosses losses() const;
  void clear_statistics();
  std::vector<std::pair<std::string, std::uint64_t>> extended_statistics() const;

 private:
  std::string link() const;
  std::string remedy() const;
  bool is_calling() const;
  void start_device();
  void stop_device();
  void close_device();
  void probe();
  void check_interface() const;
  void make_folder_for_socket();
  void make_way_for_socket();
  void choose_tx_queues();
  std::uint16_t number_of_tx_queues() const;
  void configure();
  void set_mtu(const char* driver);
  void set_up_queues(rte_mempool* pool);
  void check(int answer, const char* what) const;

  const config::PortConfig config_;
  mutable std::mutex one_user_;                // of the device
  std::unique_ptr<KernelInterface> interface_; // before the device: whoever takes its name is seen
  std::string why_gone_;                       // with an interface that a new port cannot take
  std::uint16_t device_;
  lcore::TxQueues tx_queues_;
  bool has_paired_queues_ = false; // the driver wants as many transmit as receive queues
  bool is_started_ = false;
  std::optional<std::uint64_t> connection_; // to its driver's socket: the inode
  std::vector<std::string> warnings_;
  std::optional<Steering> steering_; // while the port is started, with `rx_steering: flow`
};

} // namespace weir::control
