// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/device.hpp"

#include "host/api/group.hpp"
#include "host/api/transport_options.hpp"
#include "host/base/error.hpp"
#include "host/region/nic_region_link.hpp"
#include "host/region/software_region_link.hpp"
#include "host/transport/packet_socket.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <sys/epoll.h>
#include <utility>

namespace weir::host {

Device::Device(GroupOptions options) : options_(std::move(options)) {}

GroupOptions Device::named_by(GroupOptions group) const {
  if (group.nic.empty() && !options_.device.empty()) {
    const bool is_verbs = options_.transport == TransportKind::verbs;
    group.nic = fmt::format("{} {}", is_verbs ? "RDMA device" : "interface", options_.device);
  }
  return group;
}

std::unique_ptr<Transport> Device::open_transport(const GroupOptions& group) {
  if (options_.transport == TransportKind::verbs) {
    return nic()->open_transport(transport_plan(group), options_.gid_index);
  }
  return open_software_transport(group, std::make_unique<PacketSocket>(options_.device));
}

std::unique_ptr<RegionLink> Device::open_region_link(const GroupOptions& group,
                                                     std::span<std::uint8_t> memory,
                                                     std::uint32_t reads) {
  refuse_elsewhere();
  const RegionLinkPlan plan = region_link_plan(group, memory, reads);
  if (options_.transport == TransportKind::verbs) {
    return std::make_unique<NicRegionLink>(plan, *nic(), options_.gid_index);
  }
  auto frames = std::make_unique<PacketSocket>(options_.device);
  const SoftwareTransportOptions software = software_options(group, *frames);
  return std::make_unique<SoftwareRegionLink>(plan, software, std::move(frames));
}

std::unique_ptr<UserMemory> Device::register_memory(std::span<std::uint8_t> bytes) {
  if (options_.transport == TransportKind::verbs) {
    return nic()->register_memory(bytes);
  }
  return std::make_unique<UserMemory>();
}

std::unique_ptr<UserMemory> Device::register_dmabuf(const DmabufRange& range,
                                                    std::span<std::uint8_t> mapped) {
  if (options_.transport == TransportKind::verbs) {
    return nic()->register_dmabuf(range, mapped);
  }
  return std::make_unique<UserMemory>();
}

int Device::descriptor() {
  refuse_elsewhere();
  const std::lock_guard lock(mutex_);
  if (!events_) {
    events_ = Socket([] { return epoll_create1(EPOLL_CLOEXEC); });
    if (!events_) {
      throw Error(ErrorCode::transport_failure, std::nullopt,
                  fmt::format("no descriptor for groups: {}", std::strerror(errno)));
    }
    for (Group* const group : groups_) {
      watch(*group);
    }
  }
  return events_.get();
}

void Device::watch(Group& group) {
  epoll_event event{.events = EPOLLIN, .data = {}};
  if (epoll_ctl(events_.get(), EPOLL_CTL_ADD, group.descriptor(), &event) != 0) {
    throw Error(ErrorCode::transport_failure, std::nullopt,
                fmt::format("a group's descriptor cannot be waited for: {}", std::strerror(errno)));
  }
}

void Device::enter(Group& group) {
  if (group.options().progress == ProgressBy::caller) {
    return;
  }
  const std::lock_guard lock(mutex_);
  if (events_) {
    watch(group);
  }
  groups_.push_back(&group);
}

/// In a child made by fork, another thread of the parent may have had the lock.
void Device::leave(Group& group) {
  if (!birthplace_.is_here()) {
    return;
  }
  const std::lock_guard lock(mutex_);
  if (std::erase(groups_, &group) != 0 && events_) {
    epoll_ctl(events_.get(), EPOLL_CTL_DEL, group.descriptor(), nullptr);
  }
}

/// The NIC, if it is open, is the parent's, and so are the groups.
void Device::refuse_elsewhere() const {
  if (!birthplace_.is_here()) {
    throw Error(ErrorCode::transport_failure, std::nullopt,
                fmt::format("device {}: this process was made by a fork of the one that opened the "
                            "context; only that one may use it",
                            options_.device));
  }
}

std::shared_ptr<Nic> Device::nic() {
  refuse_elsewhere();
  const std::lock_guard lock(mutex_);
  if (!nic_) {
    nic_ = open_nic(options_.device);
  }
  return nic_;
}

} // namespace weir::host
