// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The configuration file (README, "Configuration"): YAML in, checked structures out. Nothing here
/// touches a port.

#include "config/config_error.hpp"
#include "lcore/idle.hpp"
#include "ring/ring_spec.hpp"
#include "wire/address.hpp"
#include "wire/headers.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

struct PortConfig {
  std::string name;                   // letters, digits, '_', '.', '-'; unique
  std::string device;                 // DPDK devargs: a vdev ("net_tap0,iface=x") or a PCI address
  std::vector<wire::MacAddress> macs; // sources behind this port; weir-replay alone reads it
  std::uint16_t rx_queues = 1;        // 1 .. 16
  // What a frame's outermost VLAN tag is on this port's links, for drivers that don't tell.
  wire::EtherType outer_tag = wire::EtherType::vlan;
  std::uint16_t mtu = 1500;            // bytes of Ethernet payload, 1280 .. 9216
  std::uint16_t rx_descriptors = 1024; // per queue, power of two, 64 .. 32768
  std::uint16_t tx_descriptors = 1024;
};

enum class Role : std::uint8_t { control, rx, worker, tx };

using lcore::Idle;

struct LcoreConfig {
  unsigned id = 0;         // CPU number, 0 .. 1023; unique
  std::vector<Role> roles; // at least one, each once
  Idle idle = Idle::spin;
};

// A ring is configured exactly as the classifier wants it; checked here for: window 1 .. 1024,
// max_message_bytes at least 40, mtu 256, 512, 1024, 2048 or 4096, 2 .. 256 members with distinct
// addresses, ports that exist.
using MemberConfig = ring::Member;
using RingConfig = ring::RingSpec;

struct L2Config {
  std::uint32_t aging_s = 300;  // 1 .. 1000000
  std::uint32_t entries = 8192; // MAC addresses remembered, power of two, 16 .. 2^20
};

struct ConnectionsConfig {
  // Queue pairs between ring neighbours that carry plain traffic, 1 .. 2^20.
  std::uint32_t plain_entries = 4096;
  // An idle plain or dead entry is forgotten after this, 1 .. 1000000.
  std::uint32_t aging_s = 600;
};

struct Config {
  std::vector<std::string> eal_options; // as they are, before the command line's
  std::vector<PortConfig> ports;        // 1 .. 32
  // At most one plays control; rx, worker and tx are each played by one or more. A file without
  // `lcores` gives lcore 0 control and lcore 1 rx, worker and tx, both spinning.
  std::vector<LcoreConfig> lcores;
  L2Config l2;
  ConnectionsConfig connections;
  std::vector<RingConfig> rings; // none: a plain switch
};

/// Reads and checks a whole file, up to the first mistake. Throws ConfigError for a file that
/// cannot be read, YAML that does not parse, unknown, missing, repeated or mistyped keys, values
/// out of range, and contradictions between parts (names used twice, a member's port that does not
/// exist, two members with one address, roles nobody plays, a ring's packets longer than a port's
/// MTU). Numbers are decimal or 0x hexadecimal; lists and maps may be empty where nothing is
/// required.
Config load_config(const std::filesystem::path& file);

/// The same for text already in memory; `name` stands for the file in errors.
Config parse_config(std::string_view yaml, std::string_view name);

/// Whether an EAL option says which CPUs are used for what. That is the business of `lcores:`, so
/// such a one is refused wherever it stands.
bool sets_lcores(std::string_view eal_option);
inline constexpr std::string_view kAllowedEalOptions =
    "any EAL option but those that set CPUs; these are set under lcores:";

/// The word for it in the file.
std::string_view name_of(Role role);

} // namespace weir::config
