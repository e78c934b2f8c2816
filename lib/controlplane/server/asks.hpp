// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The functions of the table of questions. None of them looks at the machine.

#include "server/questions.hpp"

#include <vector>

namespace weir::server {

/// The verdict on each device that is there.
template <typename Verdict>
std::vector<Finding> of_those_there(const Case& given, Verdict&& verdict) {
  std::vector<Finding> findings;
  for (const Device& device : given.facts.devices) {
    if (device.is_there) {
      findings.push_back(verdict(device));
    }
  }
  return findings;
}

std::vector<Finding> ask_iommu(const Case& given);
std::vector<Finding> ask_devices(const Case& given);
std::vector<Finding> ask_drivers(const Case& given);
std::vector<Finding> ask_firmware(const Case& given);
std::vector<Finding> ask_slots(const Case& given);
std::vector<Finding> ask_hugepages(const Case& given);
std::vector<Finding> ask_locked_memory(const Case& given);
std::vector<Finding> ask_cpus(const Case& given);
std::vector<Finding> ask_isolation(const Case& given);
std::vector<Finding> ask_siblings(const Case& given);
std::vector<Finding> ask_governors(const Case& given);
std::vector<Finding> ask_idle_states(const Case& given);
std::vector<Finding> ask_cpu_time(const Case& given);
std::vector<Finding> ask_numa(const Case& given);
std::vector<Finding> ask_links(const Case& given);
std::vector<Finding> ask_mtu(const Case& given);
std::vector<Finding> ask_pause(const Case& given);
std::vector<Finding> ask_sockets(const Case& given);
std::vector<Finding> ask_certificates(const Case& given);

} // namespace weir::server
