// SPDX-License-Identifier: BSD-3-Clause
#include "server/pci_address.hpp"

#include <algorithm>
#include <string_view>

namespace weir::server {

std::optional<std::string> pci_address(const config::PortConfig& port) {
  constexpr std::string_view bus = "pci:";
  std::string name = port.device_name();
  if (name.starts_with(bus)) {
    name.erase(0, bus.size());
  }
  if (name.find_first_not_of("0123456789abcdefABCDEF:.") != std::string::npos) {
    return std::nullopt;
  }
  switch (std::ranges::count(name, ':')) {
  case 1:
    return "0000:" + name;
  case 2:
    return name;
  default:
    return std::nullopt;
  }
}

} // namespace weir::server
