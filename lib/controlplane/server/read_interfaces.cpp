// SPDX-License-Identifier: BSD-3-Clause
#include "ethdev/drivers.hpp"
#include "server/nics.hpp"
#include "server/readers.hpp"

#include <net/if.h>

namespace weir::server {
namespace {

/// Documentation/ABI/testing/sysfs-class-net. An interface that is down has no carrier file that
/// can be read, and some say -1 for a speed that they do not know.
Interface read_interface(const Tree& tree, const std::string& port, const std::string& name,
                         const PauseOf& pause_of) {
  const std::string folder = "/sys/class/net/" + name;
  Interface interface { .port = port, .name = name, .is_there = tree.has(folder) };
  if (!interface.is_there) {
    return interface;
  }
  interface.is_up = (tree.hexadecimal(folder + "/flags") & IFF_UP) != 0;
  interface.has_carrier = tree.line(folder + "/carrier") == "1";
  interface.speed = tree.number<int>(folder + "/speed");
  if (interface.speed && *interface.speed <= 0) {
    interface.speed.reset();
  }
  interface.mtu = tree.number<unsigned>(folder + "/mtu").value_or(0);
  interface.pause = pause_of(name);
  return interface;
}

} // namespace

std::vector<Interface> read_interfaces(const Tree& tree, const config::Config& config,
                                       const std::vector<Device>& devices,
                                       const PauseOf& pause_of) {
  std::vector<Interface> interfaces;
  for (const Device& device : devices) {
    for (const std::string& name : device.interfaces) {
      if (is_mellanox(device)) {
        interfaces.push_back(read_interface(tree, device.port, name, pause_of));
      }
    }
  }
  for (const config::PortConfig& port : config.ports) {
    const std::string_view name = ethdev::argument_of(port.device, "iface");
    if (ethdev::driver_of(port.device).is_on_interface && !name.empty()) {
      interfaces.push_back(read_interface(tree, port.name, std::string(name), pause_of));
    }
  }
  return interfaces;
}

} // namespace weir::server
