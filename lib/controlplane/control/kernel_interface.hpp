// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::control {

/// " 25000 Mbit/s" behind "up", or that the speed is unknown: 0, or all ones, as the kernel and
/// DPDK say.
std::string speed_text(std::uint32_t megabits);

/// The kernel's network interface of which a device with these devargs is a second user:
/// net_af_packet, net_af_xdp, or net_pcap on an interface. None for other devices.
std::optional<std::string> interface_below(std::string_view devargs);

/// "eth0, lo": those of this network namespace.
std::string interfaces_there();

/// Why net_af_packet cannot use the interface, in words; empty: nothing is known. It puts its
/// sockets into a group (packet(7), PACKET_FANOUT) whose number DPDK makes of the process's number
/// and the interface's. Two processes of a network namespace may get the same number, and then the
/// kernel refuses the second one's. DPDK lets nobody choose another.
std::string why_not_for_af_packet(const std::string& interface);

/// An interface of the kernel, watched by a packet socket that is bound to it and receives nothing.
/// When the interface goes, the kernel unbinds this socket as it unbinds the driver's. So an
/// interface that was deleted and made again is not taken for the old one, and a renamed one is.
class KernelInterface {
 public:
  /// Throws std::system_error: ENODEV without an interface of that name.
  explicit KernelInterface(std::string name);
  ~KernelInterface();
  KernelInterface(const KernelInterface&) = delete;
  KernelInterface& operator=(const KernelInterface&) = delete;

  const std::string& name() const { return name_; }

  bool has_gone() const { return index() == 0; }

  /// In words: "up 25000 Mbit/s", "up, speed unknown", "down", "gone"; with the interface's name
  /// when it was renamed.
  std::string link() const;

 private:
  unsigned index() const;

  std::string name_; // at the beginning
  int socket_;
};

} // namespace weir::control
