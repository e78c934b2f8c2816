// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/nccl/abi.hpp"
#include "weir/weir.h"

#include <algorithm>
#include <iterator>

namespace weir::nccl {

/// What NCCL is told of a device of ours, by point-to-point and by CollNet alike: it finds both by
/// the same name and number.
PropertiesV12 properties_of(const weir_device& device, int number);

template <typename Properties>
auto& without_additions(Properties& properties) {
  if constexpr (requires { properties.base; }) {
    return properties.base;
  } else {
    return properties;
  }
}

template <typename From, typename To>
void copy_limits(const From& from, To& to) {
  to.force_flush = from.force_flush;
  to.merged.count = std::min<int>(from.merged.count, std::size(to.merged.devices));
  std::copy_n(from.merged.devices, to.merged.count, to.merged.devices);
  to.most_point_to_point_bytes = from.most_point_to_point_bytes;
  to.most_collective_bytes = from.most_collective_bytes;
}

/// Between any two versions. What `from` does not have stays as it is in `to`.
template <typename From, typename To>
void copy_properties(const From& given, To& wanted) {
  const auto& from = without_additions(given);
  auto& to = without_additions(wanted);
  to.name = from.name;
  to.pci_path = from.pci_path;
  to.guid = from.guid;
  to.pointer_support = from.pointer_support;
  to.registration_is_global = from.registration_is_global;
  to.speed = from.speed;
  to.port = from.port;
  to.latency = from.latency;
  to.most_comms = from.most_comms;
  to.most_receives = from.most_receives;
  to.device_type = from.device_type;
  to.device_version = from.device_version;
  if constexpr (requires { from.merged, to.merged; }) {
    copy_limits(from, to);
  }
  if constexpr (requires { given.most_requests_in_one, wanted.most_requests_in_one; }) {
    wanted.most_requests_in_one = given.most_requests_in_one;
  }
  if constexpr (requires { given.rail, wanted.rail; }) {
    wanted.rail = given.rail;
    wanted.plane = given.plane;
  }
}

} // namespace weir::nccl
