// SPDX-License-Identifier: BSD-3-Clause
#include "worker/device_table.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>

namespace weir::app {
namespace {

constexpr std::string_view kRow = "{:16} {:9} {:>4} {:24} {:>9} {:>6} {:5} {:>5} {}\n";
constexpr std::string_view kNone = "-";

std::string or_none(const std::string& text) {
  return text.empty() ? std::string(kNone) : text;
}

template <typename Number>
std::string or_none(std::optional<Number> number) {
  return number ? std::to_string(*number) : std::string(kNone);
}

std::string row_of(const host::DeviceInfo& device) {
  const bool is_verbs = device.transport == host::TransportKind::verbs;
  return fmt::format(kRow, device.name, is_verbs ? "verbs" : "software", or_none(device.gid_index),
                     or_none(device.ip),
                     device.megabits == 0 ? std::string(kNone) : std::to_string(device.megabits),
                     device.mtu == 0 ? std::string(kNone) : std::to_string(device.mtu),
                     device.is_up ? "up" : "down", or_none(device.numa_node),
                     or_none(device.pci_path));
}

} // namespace

std::string device_table(std::span<const host::DeviceInfo> devices) {
  std::string table =
      fmt::format(kRow, "DEVICE", "TRANSPORT", "GID", "IP", "MBIT/S", "MTU", "LINK", "NUMA", "PCI");
  for (const host::DeviceInfo& device : devices) {
    table += row_of(device);
  }
  return table;
}

} // namespace weir::app
