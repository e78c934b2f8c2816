// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/c_errors.hpp"
#include "host/api/c_structs.hpp"
#include "host/transport/device_list.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

/// The list of devices.

using namespace weir;
using namespace weir::host::c;

namespace {

/// All that fits, and a 0 behind it: `out` is zeroed.
template <std::size_t kBytes>
void write_text(std::string_view text, char (&out)[kBytes]) {
  text.copy(out, kBytes - 1);
}

weir_device struct_of(const host::DeviceInfo& info) {
  weir_device device{};
  device.transport = static_cast<weir_transport>(info.transport);
  write_text(info.name, device.name);
  write_text(info.interface, device.interface);
  write_text(info.ip, device.ip);
  write_text(info.mac, device.mac);
  write_text(info.pci_path, device.pci_path);
  device.numa_node = info.numa_node ? static_cast<int>(*info.numa_node) : -1;
  device.speed_mbps = info.megabits;
  device.mtu = info.mtu;
  device.gid_index = info.gid_index ? *info.gid_index : -1;
  device.is_up = info.is_up ? 1 : 0;
  return device;
}

} // namespace

weir_status weir_list_devices(weir_device* devices, std::size_t capacity, std::size_t* count) {
  return guarded([&] {
    std::size_t& found = object_at(count, "count");
    // The caller's struct may be longer or shorter than ours: its array has steps of its size.
    const std::size_t step = capacity == 0 ? 0 : size_of("devices", devices);
    const std::vector<host::DeviceInfo> infos = host::list_devices();
    auto* to = reinterpret_cast<std::uint8_t*>(devices);
    for (std::size_t i = 0; i < std::min(capacity, infos.size()); ++i, to += step) {
      write_struct(reinterpret_cast<weir_device*>(to), step, struct_of(infos[i]));
    }
    found = infos.size();
    return WEIR_OK;
  });
}
