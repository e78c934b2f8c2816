// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/group_opening.hpp"

#include "host/api/group_formation.hpp"
#include "host/api/transport_options.hpp"
#include "host/rendezvous/rendezvous_point.hpp"
#include "host/transport/lone_transport.hpp"
#include "weir/limits.hpp"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace weir::host {
namespace {

/// This rank alone is in trouble. So the others are told, who call their all-gather.
void tell_others(const GroupOptions& options, std::string_view why) {
  const bool has_place = options.world <= kMaxWorld && options.rank < options.world;
  if (options.all_gather && has_place) {
    share_failure(options.all_gather, {options.rank, options.world}, why);
  }
}

void refuse_defects(const GroupOptions& options) {
  const std::string defect = find_defect(options);
  if (!defect.empty()) {
    tell_others(options, defect);
    throw std::invalid_argument(defect);
  }
}

std::unique_ptr<Transport> opened_or_told(const GroupOptions& options,
                                          const TransportOpening& open_transport) {
  try {
    return open_transport(options);
  } catch (const std::exception& error) {
    tell_others(options, error.what());
    throw;
  }
}

/// What has settled where the ranks meet is of no more use: not to those who shrink the group
/// either. In its stead is the address, for errors.
void forget_handle(GroupOptions& options) {
  if (options.listener) {
    options.handle = options.listener->handle_text();
  }
  if (!options.handle.empty()) {
    options.rendezvous = read_handle(options.handle).endpoints.front().text();
  }
  options.listener.reset();
  options.handle.clear();
}

/// Windows and messages within the protocol's limits may still need more memory than there is.
template <typename Body>
auto with_memory_for(const GroupOptions& options, Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::transport_failure, options.rank,
                fmt::format("rank {}: no memory for {} x {} slots of {} bytes (rings, window, "
                            "message_bytes)",
                            options.rank, options.rings.size(), slots_of(options),
                            options.message_bytes));
  }
}

} // namespace

GroupOpening open_group(const GroupOptions& options, const TransportOpening& open_transport) {
  refuse_defects(options);
  return with_memory_for(options, [&] {
    if (options.world == 1) {
      return GroupOpening{options, make_lone_transport(), {}};
    }
    GroupOpening opening{options, opened_or_told(options, open_transport), {}};
    opening.place = settle_place(rendezvous_plan(options));
    forget_handle(opening.options);
    return opening;
  });
}

std::shared_ptr<GroupDriver> form(GroupOpening opening, const StopOrder* stop) {
  const GroupOptions& options = opening.options;
  return with_memory_for(options, [&] {
    Membership membership =
        form_group(options, std::move(opening.transport), std::move(opening.place), stop);
    return std::make_shared<GroupDriver>(options, std::move(membership));
  });
}

} // namespace weir::host
