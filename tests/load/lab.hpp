// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/switch.hpp"
#include "host/transport/ethdev_io.hpp"
#include "support/temporary_folder.hpp"
#include "wire/address.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weir::load {

inline constexpr std::uint16_t kMembers = 3;
inline constexpr std::uint32_t kRing = 1;
inline constexpr std::uint32_t kWindow = 8;
inline constexpr std::uint16_t kPathMtu = 1024;
inline constexpr std::uint32_t kMessageBytes = 8192;

/// A ring of two members and the noise that never begins. It makes the noise's frames to a member
/// go to the members' worker, and ties no port.
inline constexpr std::uint32_t kIdleRing = 2;

/// The hosts at the switch's ports, members of the ring first.
enum class Place : std::uint16_t { noise = kMembers, deaf, talker, listener, passer, count };

/// Which lcores have which roles.
enum class Roles : std::uint8_t {
  one_lcore,     // run to completion
  two_lcores,    // one is rx and tx, one is worker
  pipeline,      // one each for rx, worker and tx
  two_pipelines, // two of each, so that lcores hand on to several and take from several
  helped,        // a worker more than rings: it makes reductions for another
};

std::string_view name_of(Roles roles);
/// Throws std::invalid_argument with the allowed names.
Roles roles_named(std::string_view name);

wire::IpAddress ip_of(std::uint16_t port);
wire::MacAddress mac_of(std::uint16_t port);

/// EAL without hugepages. Its lcores may run on any CPU.
class Eal {
 public:
  explicit Eal(Roles roles);
  ~Eal();
  Eal(const Eal&) = delete;
  Eal& operator=(const Eal&) = delete;

 private:
  std::vector<std::string> arguments_; // EAL keeps pointers into them
};

/// A switch with memif ports, and their other ends in the same process. EAL is up.
class Lab {
 public:
  explicit Lab(Roles roles);

  control::Switch& weir() { return *weir_; }

  /// The other end of a port, with its link up.
  std::unique_ptr<host::FrameIo> open(std::uint16_t port) const;

  std::unique_ptr<host::FrameIo> open(Place place) const {
    return open(static_cast<std::uint16_t>(place));
  }

 private:
  test::TemporaryFolder folder_; // of the ports' sockets
  std::unique_ptr<control::Switch> weir_;
};

/// Sends a frame unchanged. False when the device is full.
bool send(host::FrameIo& wire, std::span<const std::uint8_t> frame);

} // namespace weir::load
