// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/device.hpp"

#include "host/api/transport_options.hpp"
#include "host/base/error.hpp"
#include "host/transport/packet_socket.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace weir::host {

Device::Device(GroupOptions options) : options_(std::move(options)) {}

std::unique_ptr<Transport> Device::open_transport(const GroupOptions& group) {
  if (options_.transport == TransportKind::verbs) {
    return nic()->open_transport(transport_plan(group), options_.gid_index);
  }
  return open_software_transport(group, std::make_unique<PacketSocket>(options_.device));
}

std::unique_ptr<UserMemory> Device::register_memory(std::span<std::uint8_t> bytes) {
  if (options_.transport == TransportKind::verbs) {
    return nic()->register_memory(bytes);
  }
  return std::make_unique<UserMemory>();
}

std::shared_ptr<Nic> Device::nic() {
  if (!birthplace_.is_here()) { // the NIC, if it is open, is the parent's
    throw Error(ErrorCode::transport_failure, std::nullopt,
                fmt::format("device {}: this process was made by a fork of the one that opened the "
                            "context; only that one may use it",
                            options_.device));
  }
  const std::lock_guard lock(mutex_);
  if (!nic_) {
    nic_ = open_nic(options_.device);
  }
  return nic_;
}

} // namespace weir::host
