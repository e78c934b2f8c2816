// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/switch.hpp"
#include "host/transport/ethdev_io.hpp"
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

/// Of two members and the noise, and never begun: what the noise sends to a member is between
/// neighbours, so the members' worker gets it, and no port is its own yet.
inline constexpr std::uint32_t kIdleRing = 2;

/// What is behind the switch's ports: the members of the ring first.
enum class Place : std::uint16_t { noise = kMembers, deaf, talker, listener, passer, count };

/// Which lcores play which roles.
enum class Roles : std::uint8_t {
  one_lcore,     // run to completion
  two_lcores,    // rx and tx beside a worker
  pipeline,      // rx, worker and tx apart
  two_pipelines, // two of each, so that an lcore hands on to several and takes from several
  helped,        // two workers for one ring: one makes sums for the other
};

std::string_view name_of(Roles roles);
/// Throws std::invalid_argument with what is allowed.
Roles roles_named(std::string_view name);

wire::IpAddress ip_of(std::uint16_t port);
wire::MacAddress mac_of(std::uint16_t port);

/// EAL without hugepages; its lcores run wherever the scheduler likes.
class Eal {
 public:
  explicit Eal(Roles roles);
  ~Eal();
  Eal(const Eal&) = delete;
  Eal& operator=(const Eal&) = delete;

 private:
  std::vector<std::string> arguments_; // EAL keeps pointers into them
};

/// A switch with memif ports, and the other ends of them in the same process. EAL is up.
class Lab {
 public:
  explicit Lab(Roles roles);
  ~Lab();
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;

  control::Switch& weir() { return *weir_; }

  /// The wire to a port of the switch, with its link up.
  std::unique_ptr<host::FrameIo> open(std::uint16_t port) const;

  std::unique_ptr<host::FrameIo> open(Place place) const {
    return open(static_cast<std::uint16_t>(place));
  }

 private:
  std::filesystem::path folder_; // of the ports' sockets
  std::unique_ptr<control::Switch> weir_;
};

/// A frame that the device takes as it is; false when it takes none now.
bool send(host::FrameIo& wire, std::span<const std::uint8_t> frame);

} // namespace weir::load
