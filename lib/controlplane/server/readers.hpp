// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The parts of read_facts().

#include "config/config.hpp"
#include "server/facts.hpp"
#include "server/read_facts.hpp"
#include "server/tree.hpp"

#include <string>
#include <vector>

namespace weir::server {

Iommu read_iommu(const Tree& tree);
Hugepages read_hugepages(const Tree& tree);
LockedMemory read_locked_memory(const Tree& tree);
std::vector<Device> read_devices(const Tree& tree, const config::Config& config);
/// Empty: there is none.
std::string find_ice_package(const Tree& tree);
/// Those through which ports of the configuration work.
std::vector<Interface> read_interfaces(const Tree& tree, const config::Config& config,
                                       const std::vector<Device>& devices, const PauseOf& pause_of);
std::vector<CpuFacts> read_cpus(const Tree& tree);
std::vector<SocketPlace> read_sockets(const Tree& tree, const config::ControlConfig& control);
std::vector<PemFile> read_pem_files(const Tree& tree, const config::ControlConfig& control);

} // namespace weir::server
