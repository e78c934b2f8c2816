// SPDX-License-Identifier: BSD-3-Clause
#include "server/read_facts.hpp"

#include "control/cpu_quota.hpp"
#include "server/readers.hpp"

namespace weir::server {

Facts read_facts(const Tree& tree, const config::Config& config, const PauseOf& pause_of) {
  Facts facts{.iommu = read_iommu(tree),
              .hugepages = read_hugepages(tree),
              .locked_memory = read_locked_memory(tree),
              .devices = read_devices(tree, config),
              .ice_package = find_ice_package(tree),
              .cpus = read_cpus(tree),
              .cpu_quota =
                  control::cpu_quota(tree.at("/proc/self/cgroup"), tree.at("/sys/fs/cgroup")),
              .sockets = read_sockets(tree, config.control),
              .pem_files = read_pem_files(tree, config.control)};
  facts.interfaces = read_interfaces(tree, config, facts.devices, pause_of);
  return facts;
}

} // namespace weir::server
