// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The configuration file (docs/configuration.md): from YAML to checked structures. Nothing here
/// touches a port.

#include "config/address_block.hpp"
#include "config/config_error.hpp"
#include "gate/tls_files.hpp"
#include "ring/ring_spec.hpp"
#include "wire/address.hpp"
#include "wire/headers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

/// Who chooses the receive queue of a frame.
enum class RxSteering : std::uint8_t {
  rss,  // a hash of addresses and UDP ports
  flow, // for ring neighbours' frames a rule (rte_flow): the queue of their ring's worker
};

enum class YesNo : std::uint8_t { yes, no };

struct PortConfig {
  // Letters, digits, '_', '.', '-'; unique. Empty: a place in a running switch that has no port.
  std::string name;
  std::string device;                 // DPDK devargs: a vdev ("net_tap0,iface=x") or a PCI address
  std::vector<wire::MacAddress> macs; // sources behind this port; only weir-replay reads it
  std::uint16_t rx_queues = 1;        // 1 .. 16
  RxSteering rx_steering = RxSteering::rss; // flow: with at least two receive queues
  // The outermost VLAN tag on this port's links, for drivers that do not report it.
  wire::EtherType outer_tag = wire::EtherType::vlan;
  YesNo bridge = YesNo::yes;           // no: for packets between ring neighbours alone
  std::uint16_t mtu = 1500;            // bytes of Ethernet payload, 1280 .. 9216
  std::uint16_t rx_descriptors = 1024; // per queue, power of two, 64 .. 32768
  std::uint16_t tx_descriptors = 1024;

  bool is_there() const { return !name.empty(); }

  /// Its devargs up to the first comma, by which EAL names it.
  std::string device_name() const { return device.substr(0, device.find(',')); }
};

enum class Role : std::uint8_t { control, rx, worker, tx };

/// What an lcore does after a round without work.
enum class Idle : std::uint8_t { spin, yield, sleep };

struct LcoreConfig {
  unsigned id = 0;         // CPU number, 0 .. 1023; unique
  std::vector<Role> roles; // at least one, each once
  Idle idle = Idle::spin;
  int line = 0; // of the id in the file, or of `lcores`, or the one on which it is missing

  bool plays(Role role) const { return std::ranges::find(roles, role) != roles.end(); }

  bool moves_packets() const { return plays(Role::rx) || plays(Role::worker) || plays(Role::tx); }
};

/// Who says which CPUs the switch takes.
enum class LcoresBy : std::uint8_t { file, the_switch };

struct L2Config {
  std::uint32_t aging_s = 300;  // 1 .. 1000000
  std::uint32_t entries = 8192; // MAC addresses remembered, power of two, 16 .. 2^20
  YesNo loop_detection = YesNo::yes;
};

/// A station that is tied to a port.
struct StationConfig {
  wire::MacAddress mac; // of a host; unique
  std::string port;     // its name; it has `bridge: yes`
};

struct ConnectionsConfig {
  // Queue pairs between ring neighbours with plain traffic, 1 .. 2^20.
  std::uint32_t plain_entries = 4096;
  // Seconds of silence after which a plain or dead entry is forgotten, 1 .. 1000000.
  std::uint32_t aging_s = 600;
};

/// What the switch sets aside for rings and ports that come while it runs. Withdrawn rings add what
/// they held.
struct SpareConfig {
  std::uint16_t rings = 0;   // 0 .. 4096
  std::uint32_t members = 0; // of all of them, 0 .. 32767
  std::uint32_t frames = 0;  // that their slots can hold, 0 .. 2^26
  std::uint16_t ports = 0;   // that a reload may open; with those of the file at most 32
};

/// What regions may take of the switch, all of them together.
struct RegionRooms {
  std::uint16_t regions = 0; // 1 .. 1024
  std::uint32_t members = 0; // 2 .. 32767
  std::uint32_t frames = 0;  // that can be held for members, 4 .. 2^26
  std::uint32_t entries = 0; // packets of READs that are gathered at a time, 0 .. 2^22
};

/// The switch as the peer of regions' members (docs/regions.md).
struct RegionsConfig {
  wire::IpAddress address; // nobody else's
  wire::MacAddress mac;    // likewise
  RegionRooms rooms;
};

struct MetricsConfig {
  std::string listen; // "ADDRESS:PORT", IPv6 in brackets; empty: no metrics
};

/// Where the control service listens.
struct ControlConfig {
  std::vector<std::string> local;    // paths of Unix sockets
  std::vector<std::string> remote;   // "ADDRESS:PORT", IPv6 in brackets
  std::optional<gate::TlsFiles> tls; // there if `remote` has an address
  // Common names of the certificates whose bearers may do all. Absent: everybody's, unless there
  // are tenants.
  std::optional<std::vector<std::string>> operators;
  std::string fabric;                // that the switch belongs to; empty: none
  std::vector<std::string> managers; // common names of its managers' certificates
  bool is_default = true;            // the file says nothing of it
};

/// Who shares the switch with others. A limit that is absent is none.
struct TenantConfig {
  std::string name;                        // of its rings, and in its certificates; unique
  std::optional<std::uint16_t> rings;      // 0 .. 4096, at once
  std::optional<std::uint32_t> memory_mib; // 0 .. 2^20, of all its rings
  // 0 .. 32767, that the switch remembers of its rings, withdrawn ones included.
  std::optional<std::uint16_t> neighbours;
  std::optional<std::uint32_t> packets_per_second; // 1 .. 10^9, of all its rings
  // Of regions.rooms. Absent: none, and the same part of the members and of the frames as of the
  // regions.
  std::optional<std::uint16_t> regions;        // 0 .. 1024, at once
  std::optional<std::uint32_t> region_members; // 0 .. 32767, of all its regions
  std::optional<std::uint32_t> region_frames;  // 0 .. 2^26, that these can hold
  std::optional<std::uint16_t> operators;      // 0 .. 256, that it may load
  std::optional<std::uint32_t> operator_price; // 1 .. 10^6, ns for a KiB and rank, of each
  std::vector<AddressBlock> hosts;             // in which its rings' members are; empty: anywhere

  /// Whether a member of its rings may have this address.
  bool may_have(const wire::IpAddress& host) const;
};

/// The blocks in which a tenant's hosts are, as in the file.
std::vector<std::string> hosts_of(const TenantConfig& tenant);

/// An operator of the users' own that the switch has from its start (docs/operators.md).
struct OperatorConfig {
  std::string file;                 // an absolute path; unique
  std::vector<std::string> tenants; // for whose rings; empty: for all
};

struct Config {
  std::vector<std::string> eal_options; // unchanged, before those of the command line
  std::vector<PortConfig> ports;        // 1 .. 32
  // At most one lcore has the role control; rx, worker and tx have one or more each. Where the
  // switch is to choose and has not yet, lcore 0 is control and lcore 1 is rx, worker and tx; both
  // spin.
  std::vector<LcoreConfig> lcores;
  LcoresBy lcores_by = LcoresBy::the_switch;
  L2Config l2;
  std::vector<StationConfig> stations; // at most a 16th of l2.entries
  ConnectionsConfig connections;
  MetricsConfig metrics;
  ControlConfig control;
  SpareConfig spare;
  std::vector<TenantConfig> tenants;     // 0 .. 1024
  std::vector<OperatorConfig> operators; // 0 .. 256
  // Where the switch remembers rings that were made while it ran; empty: there can be none.
  std::string state_directory;
  // Most seconds for which a switch that is to stop waits for running collectives and regions, 0 ..
  // 3600.
  std::uint32_t drain_s = 5;
  std::optional<RegionsConfig> regions; // absent: there can be none
  // None: a plain switch. Checked: window 1 .. 1024; max_message_bytes at least 40; mtu 256, 512,
  // 1024, 2048 or 4096; lease not below patience; 2 .. 256 members with distinct addresses; ports
  // and tenants that exist.
  std::vector<ring::RingSpec> rings;
  std::string file; // that it was read from, an absolute path; empty: it was text in memory
};

/// Reads and checks a file, up to the first error. Throws ConfigError for: a file that cannot be
/// read; invalid YAML; unknown, missing, repeated or mistyped keys; values out of range;
/// contradictions between parts (names used twice, a member's port that does not exist, two members
/// with one address, a role without an lcore, a ring's packets longer than a port's MTU). Numbers
/// are decimal or 0x hexadecimal. Lists and maps may be empty where nothing is required.
Config load_config(const std::filesystem::path& file);

/// The same for text in memory. `name` stands for the file in errors.
Config parse_config(std::string_view yaml, std::string_view name);

/// The same for a switch that runs with other ports than the text may have: the rings are checked
/// against these, and their members' ports are places among them.
Config parse_config(std::string_view yaml, std::string_view name,
                    const std::vector<PortConfig>& running);

/// The text of a file, at most 16 MiB. Of a pipe: what has come until its other end closes. Throws
/// ConfigError if it cannot be read, or if nothing comes for 5 s.
std::string read_file(const std::filesystem::path& file);

/// Reads the value that `rings` has in a configuration, one ring or a list of them, as
/// load_config() does.
std::vector<ring::RingSpec> load_rings(const std::filesystem::path& file, const Config& config);

/// The same for text in memory.
std::vector<ring::RingSpec> parse_rings(std::string_view yaml, std::string_view name,
                                        const Config& config);

/// Bytes of Ethernet payload of the longest packets between a ring's members with this path MTU.
unsigned packet_bytes(const wire::IpAddress& member, unsigned path_mtu);

/// Whether an EAL option assigns CPUs. Only `lcores:` may do so; such an option is rejected
/// everywhere.
bool sets_lcores(std::string_view eal_option);
inline constexpr std::string_view kAllowedEalOptions =
    "any EAL option but those that set CPUs; these are set under lcores:";

/// The number of an option -m: MiB of memory that EAL is to take.
struct MemoryOption {
  std::string_view number;
  std::size_t place = 0; // of the word that has the number
};

/// All of them; EAL takes the last. `eal_options` outlives what is returned.
std::vector<MemoryOption> memory_options(const std::vector<std::string>& eal_options);

/// The role's name in the file.
std::string_view name_of(Role role);

} // namespace weir::config
