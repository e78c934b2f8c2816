// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What is known of a server, for the questions about it. No verdicts here.

#include "control/cpus.hpp"
#include "control/placement.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::server {

/// Hugepages of one size on one node.
struct HugepagePool {
  int node = control::kNoNode; // a kernel without NUMA has no nodes
  std::uint64_t page_kib = 0;
  std::uint64_t pages = 0; // that are set aside
  std::uint64_t free = 0;  // of these

  std::uint64_t free_mib() const { return free * page_kib / 1024; }

  std::uint64_t all_mib() const { return pages * page_kib / 1024; }
};

/// A process that has hugepages.
struct HugepageUser {
  unsigned process = 0;
  std::string program;
  std::uint64_t mib = 0;
};

struct Hugepages {
  std::vector<HugepagePool> pools;
  std::vector<HugepageUser> users;
  bool has_folder = false; // a hugetlbfs is mounted into which this process may write

  /// Of one node, or with kNoNode of all. So is all_mib().
  std::uint64_t free_mib(int node) const { return sum_of(node, &HugepagePool::free_mib); }

  std::uint64_t all_mib(int node) const { return sum_of(node, &HugepagePool::all_mib); }

 private:
  std::uint64_t sum_of(int node, std::uint64_t (HugepagePool::*mib)() const) const {
    std::uint64_t sum = 0;
    for (const HugepagePool& pool : pools) {
      sum += node == control::kNoNode || pool.node == node ? (pool.*mib)() : 0;
    }
    return sum;
  }
};

/// What this process may lock, so that it is never swapped.
struct LockedMemory {
  std::optional<std::uint64_t> limit_bytes; // nothing: no limit
  bool is_exempt = false;                   // by CAP_IPC_LOCK
};

/// The PCI Express link of a device. 0 lanes: it says nothing.
struct Slot {
  unsigned lanes = 0;
  unsigned most_lanes = 0; // that the device can use
  std::string speed;       // of each lane, as the kernel writes it
  std::string most_speed;
};

/// Whether this process may open the file of an IOMMU group.
enum class Access : std::uint8_t { no_file, denied, granted };

/// Devices that the IOMMU cannot tell apart.
struct IommuGroup {
  struct Member {
    std::string address;
    std::string driver;
  };

  std::string number;         // empty: the device is in none
  std::vector<Member> others; // besides the device itself
  Access access = Access::no_file;
};

/// The PCI device of a port.
struct Device {
  std::string port;    // its name
  std::string address; // 0000:3b:00.0
  bool is_there = false;
  unsigned vendor = 0;
  unsigned model = 0;
  unsigned pci_class = 0;      // class, subclass, interface: a byte each
  std::string driver = {};     // the kernel's that has it; empty: none
  int node = control::kNoNode; // NUMA
  Slot slot = {};
  IommuGroup group = {};
  std::vector<std::string> interfaces = {}; // of the kernel
  std::string rdma_device = {};             // such as mlx5_0; empty: none
  std::string firmware = {};                // as its RDMA device says; empty: it says nothing
};

/// What protects memory from devices.
struct Iommu {
  bool is_on = false;
  bool is_dispensable = false; // vfio's unsafe mode without one is on
  bool is_intel = false;       // the CPU, which the kernel's command line depends on
};

/// A pause frame of either side stops the other's link (IEEE 802.3 annex 31B).
struct Pause {
  bool receives = false;
  bool sends = false;
};

/// A network interface of the kernel's that a port works through.
struct Interface {
  std::string port; // its name
  std::string name;
  bool is_there = false;
  bool is_up = false;            // by its administrator
  bool has_carrier = false;      // known only while it is up
  std::optional<int> speed = {}; // Mbit/s
  unsigned mtu = 0;
  std::optional<Pause> pause = {}; // nothing: the driver does not say
};

struct IdleState {
  std::string name;
  unsigned exit_us = 0; // time to wake up
  bool is_allowed = false;
};

struct CpuFacts {
  control::Cpu cpu;
  bool is_online = true;
  bool is_isolated = false;
  std::string governor;               // of its clock; empty: the kernel does not change it
  std::vector<IdleState> idle_states; // none: the kernel does not choose
};

/// A Unix socket of the control service.
struct SocketPlace {
  std::string path;
  bool has_folder = false;
  bool may_write = false; // into the folder
  std::string flaw;       // how others could take the folder's place; empty: they cannot
  bool has_listener = false;
};

/// A PEM file of control.tls.
struct PemFile {
  std::string key; // in the configuration
  std::string path;
  bool is_readable = false;
  // Seconds until the first of its certificates ends; negative: it has.
  std::optional<std::int64_t> seconds_left = {};
};

struct Facts {
  Iommu iommu;
  Hugepages hugepages;
  LockedMemory locked_memory;
  std::vector<Device> devices; // of ports, in their order
  std::string ice_package;     // the file that the ice driver loads; empty: there is none
  std::vector<Interface> interfaces;
  std::vector<CpuFacts> cpus;      // all of this machine
  std::optional<double> cpu_quota; // CPUs' time that control groups grant; nothing: no limit
  std::vector<SocketPlace> sockets;
  std::vector<PemFile> pem_files;

  /// nullptr: there is no such CPU.
  const CpuFacts* find_cpu(unsigned id) const {
    const auto found = std::ranges::find(cpus, id, [](const CpuFacts& one) { return one.cpu.id; });
    return found == cpus.end() ? nullptr : &*found;
  }
};

} // namespace weir::server
