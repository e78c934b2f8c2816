// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// How a group comes about: what its caller's thread does, and what may take long.

#include "host/api/group_driver.hpp"
#include "host/base/group_options.hpp"
#include "host/base/stop_order.hpp"
#include "host/rendezvous/rendezvous.hpp"
#include "host/transport/transport.hpp"

#include <functional>
#include <memory>

namespace weir::host {

using TransportOpening = std::function<std::unique_ptr<Transport>(const GroupOptions&)>;

/// A group that has not met the other ranks yet.
struct GroupOpening {
  GroupOptions options; // without a handle and its listener
  std::unique_ptr<Transport> transport;
  MeetingPlace place;
};

/// Checks the options, opens the transport, takes the listener and calls the all-gather. Waits for
/// nothing else. Throws std::invalid_argument or Error.
GroupOpening open_group(const GroupOptions& options, const TransportOpening& open_transport);

/// Meets the other ranks. Returns when the group is formed. Throws Error, also when the order to
/// stop is given; null: none comes.
std::shared_ptr<GroupDriver> form(GroupOpening opening, const StopOrder* stop = nullptr);

} // namespace weir::host
