// SPDX-License-Identifier: BSD-3-Clause
#include "host/switch_rings/held_region.hpp"

#include "host/base/error.hpp"
#include "host/switch_rings/switch_access.hpp"
#include "host/switch_rings/switch_module.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>
#include <vector>

namespace weir::host {
namespace {

/// By rank.
std::vector<weir_hold_region_member> rows_of(std::span<const RegionMember> members,
                                             std::uint32_t reads) {
  std::vector<weir_hold_region_member> rows;
  for (const RegionMember& member : members) {
    rows.push_back({.queue_pair = member.queue_pair,
                    .first_psn = member.first_psn,
                    .base = member.base,
                    .key = member.key,
                    .ack_timeout = member.ack_timeout,
                    .reads = reads});
  }
  return rows;
}

/// The names end with a 0.
std::vector<weir_hold_region_view> rows_of(const std::vector<RegionView>& views) {
  std::vector<weir_hold_region_view> rows;
  for (const RegionView& view : views) {
    rows.push_back({name_of(view.operation).data(), name_of(view.type).data()});
  }
  return rows;
}

std::vector<std::string> addresses_of(std::span<const RegionMember> members) {
  std::vector<std::string> addresses;
  for (const RegionMember& member : members) {
    addresses.push_back(wire::to_string(member.ip));
  }
  return addresses;
}

/// Rings may come from a manager; a region is one switch's.
void refuse_without_switch(const SwitchAccess& access) {
  if (access.address.value_or("").empty()) {
    throw std::runtime_error(fmt::format(
        "switch_address: found {}; allowed: the control service of the switch that makes the "
        "region (switch_address, WEIR_SWITCH)",
        access.manager.empty() ? "none" : "a fabric's manager, which makes no regions"));
  }
}

} // namespace

HeldRegion::HeldRegion(const GroupOptions& group, const RegionOptions& options,
                       std::span<const RegionMember> members, std::size_t bytes)
    : maker_(fmt::format("switch {}", switch_access_of(group).address.value_or(""))),
      access_(switch_access_of(group)) {
  try {
    refuse_without_switch(access_);
    make(group, options, members, bytes);
  } catch (const std::exception& error) {
    release();
    throw Error(ErrorCode::no_region, std::nullopt, fmt::format("{}: {}", maker_, error.what()));
  }
}

void HeldRegion::make(const GroupOptions& group, const RegionOptions& options,
                      std::span<const RegionMember> members, std::size_t bytes) {
  const std::string server = server_of(*access_.address);
  const std::vector<std::string> texts = addresses_of(members);
  const std::vector<const char*> addresses = pointers_to(texts);
  const std::vector<weir_hold_region_member> rows = rows_of(members, options.reads);
  const std::vector<weir_hold_region_view> views = rows_of(options.views);
  weir_hold_order order = order_to(server, access_);
  order.window = options.window;
  order.mtu = group.path_mtu;
  order.members = addresses.data();
  order.member_count = addresses.size();
  order.timeout_ms = static_cast<std::uint32_t>(group.form_timeout.count());
  order.is_stopped = [](void* /*self*/) { return 0; };
  order.ended = [](void* self, const char* why) { static_cast<HeldRegion*>(self)->note_end(why); };
  order.user = this;
  const weir_hold_region region{.bytes = bytes,
                                .patience = static_cast<std::uint64_t>(options.patience.count()),
                                .forming = static_cast<std::uint64_t>(options.forming.count()),
                                .entries = options.entries,
                                .loopback = options.loopback == Loopback::own_writes ? 1 : 0,
                                .views = views.data(),
                                .view_count = views.size(),
                                .members = rows.data()};
  std::vector<weir_held_region_end> ends(members.size());
  made_.view_keys.resize(views.size());
  weir_held_region held{};
  held.ends = ends.data();
  held.view_keys = made_.view_keys.data();
  std::array<char, kWhyBytes> why{};
  hold_ = switch_module().hold_region(&order, &region, &held, why.data(), why.size());
  if (hold_ == nullptr) {
    throw std::runtime_error(why.data());
  }
  for (const weir_held_region_end& end : ends) {
    made_.ends.push_back({.queue_pair = end.queue_pair, .first_psn = end.first_psn, .token = {}});
    std::ranges::copy(end.token, made_.ends.back().token.begin());
  }
  take(held);
}

/// Its ends and keys of views are there.
void HeldRegion::take(const weir_held_region& held) {
  const auto ip = wire::parse_ip(held.ip);
  const auto mac = wire::parse_mac(held.mac);
  if (!ip || !mac) {
    throw std::runtime_error(fmt::format(
        "it gave the addresses '{}' and '{}', which cannot be read", held.ip, held.mac));
  }
  made_.id = held.id;
  made_.ip = *ip;
  made_.mac = *mac;
  made_.base = held.base;
  made_.key = held.key;
  made_.window = held.window;
  made_.patience = std::chrono::seconds(held.patience);
}

void HeldRegion::note_end(std::string_view why) {
  end_.note(fmt::format("{} ended the region: {}", maker_, why));
}

void HeldRegion::when_ended(std::function<void(std::string_view why)> told) {
  end_.when_noted(std::move(told));
}

void HeldRegion::release() {
  const std::lock_guard lock(mutex_);
  if (weir_hold* const hold = std::exchange(hold_, nullptr); hold != nullptr) {
    switch_module().release(hold);
  }
}

} // namespace weir::host
