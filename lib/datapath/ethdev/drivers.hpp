// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::ethdev {

/// The value of `name` in DPDK devargs, "driver0,name=value,…". Empty when the name is not there.
std::string_view argument_of(std::string_view devargs, std::string_view name);

/// How many transmit queues a driver takes.
enum class TxQueues : std::uint8_t {
  any,
  as_many_as_rx, // not fewer than receive queues
  one,           // with a second one, frames would come in by a second receive queue
};

/// What a driver says of its largest MTU.
enum class MtuLimit : std::uint8_t {
  held,      // longer frames do not pass
  too_tight, // it carries what fits into its slots, but admits only 1518 bytes to the ethdev layer
};

/// What becomes of the packet buffers that a driver is given.
enum class Buffers : std::uint8_t {
  given_back,
  kept_by_kernel, // even when the port closes; and they must suit the kernel (control/af_xdp.hpp)
};

/// On which thread a device is stopped and closed.
enum class EndsOn : std::uint8_t {
  any_thread,
  interrupt_thread, // EAL's: there the driver takes a device apart whose other end has gone,
                    // unlocked
};

/// Who may reach a driver's Unix socket.
enum class SocketName : std::uint8_t {
  file,             // who may write to it
  file_or_abstract, // "socket-abstract=no" in the devargs says that it is a file
};

/// A driver's Unix socket.
struct DriverSocket {
  std::string_view argument; // of the devargs: its path; empty: the driver has none
  SocketName name = SocketName::file;
  bool (*listens)(std::string_view devargs) = nullptr; // absent: it never listens
  // Absent: never. Whether it looks only when the port starts for who listens, and not again when
  // that one has gone.
  bool (*connects_once)(std::string_view devargs) = nullptr;
  int type = 0; // SOCK_…
  // Several ports of one switch may listen on it. Then only the driver knows a stranger's.
  bool is_shared = false;
};

/// Whether everybody on the machine can reach the socket, and can listen on it first.
bool is_abstract(const DriverSocket& socket, std::string_view devargs);

/// What is special about a DPDK driver: all that the switch knows of drivers by name. A driver
/// without a row has no quirk.
struct Driver {
  std::string_view name = {}; // devargs of its devices begin so, and so does EAL's name for it
  TxQueues tx_queues = TxQueues::any;
  MtuLimit mtu_limit = MtuLimit::held;
  Buffers buffers = Buffers::given_back;
  EndsOn ends_on = EndsOn::any_thread;
  bool is_on_interface = false; // on an interface of the kernel, which can go away
  DriverSocket socket = {};
  std::string_view needs = {}; // said beside its errors, which do not tell the cause
};

/// `name` is a driver's name, or a device's devargs.
const Driver& driver_of(std::string_view name);

} // namespace weir::ethdev
