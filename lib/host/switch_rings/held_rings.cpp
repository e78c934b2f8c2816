// SPDX-License-Identifier: BSD-3-Clause
#include "host/switch_rings/held_rings.hpp"

#include "host/base/error.hpp"
#include "host/switch_rings/switch_access.hpp"
#include "host/switch_rings/switch_module.hpp"
#include "program/operator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace weir::host {
namespace {

/// As server_of, of a list.
std::string servers_of(const std::string& addresses) {
  std::string servers;
  std::stringstream list(addresses);
  for (std::string address; std::getline(list, address, ',');) {
    servers += (servers.empty() ? "" : ",") + server_of(address);
  }
  return servers;
}

} // namespace

HeldRings::HeldRings(const SwitchAccess& access, const GroupOptions& options,
                     const std::vector<std::string>& members, std::uint32_t nonce,
                     std::function<bool()> is_stopped)
    : maker_(access.manager.empty() ? fmt::format("switch {}", access.address.value_or(""))
                                    : fmt::format("manager {}", access.manager)),
      is_stopped_(std::move(is_stopped)),
      deadline_(deadline_after(Clock::now(), options.form_timeout)) {
  const bool is_managed = !access.manager.empty();
  const std::string server =
      is_managed ? servers_of(access.manager) : server_of(access.address.value_or(""));
  const std::vector<const char*> addresses = pointers_to(members);
  std::vector<const char*> texts;
  for (const auto& one : options.operators) {
    texts.push_back(one->code().text.c_str());
  }
  weir_hold_order order = order_to(server, access);
  order.id_is = options.ring_ids == RingIds::given ? WEIR_HOLD_ID_GIVEN : WEIR_HOLD_ID_CHOSEN;
  order.window = options.window;
  order.message_bytes = options.message_bytes;
  order.mtu = options.path_mtu;
  order.nonce = nonce;
  order.members = addresses.data();
  order.member_count = addresses.size();
  order.operators = texts.data();
  order.operator_count = texts.size();
  order.is_stopped = [](void* self) { return static_cast<HeldRings*>(self)->is_stopped() ? 1 : 0; };
  order.ended = [](void* self, const char* why) { static_cast<HeldRings*>(self)->note_end(why); };
  order.user = this;
  try {
    module_ = &switch_module();
    is_managed ? make_on_fabric(order, options) : make_on_switch(order, options);
  } catch (const std::exception& error) {
    release();
    throw Error(ErrorCode::not_aggregated, std::nullopt,
                fmt::format("{}: {}", maker_, error.what()));
  }
}

void HeldRings::make_on_switch(weir_hold_order order, const GroupOptions& options) {
  if (options.ring_ids == RingIds::offered) {
    add_offered(order, options.rings.size());
    return;
  }
  for (const std::uint32_t ring : options.rings) {
    add(order, options.ring_ids == RingIds::given ? ring : 0);
  }
}

/// One for each of the switch's workers. Others' rings may leave room for some of them alone.
void HeldRings::add_offered(weir_hold_order& order, std::size_t most) {
  const std::size_t offered = std::min(add(order, 0), most);
  try {
    while (ids_.size() < offered) {
      add(order, 0);
    }
  } catch (const std::runtime_error& error) {
    shortage_ = fmt::format("{} offers {} rings, one for each worker, and made {}: {}", maker_,
                            offered, ids_.size(), error.what());
  }
}

/// Returns how many workers the switch has.
std::size_t HeldRings::add(weir_hold_order& order, std::uint32_t id) {
  order.id = id;
  order.timeout_ms = static_cast<std::uint32_t>(milliseconds_left(deadline_));
  weir_held_ring held{};
  std::array<char, kWhyBytes> why{};
  holds_.reserve(holds_.size() + 1);
  weir_hold* const hold = module_->hold(&order, &held, why.data(), why.size());
  if (hold == nullptr) {
    throw std::runtime_error(why.data());
  }
  holds_.push_back(hold);
  ids_.push_back(held.id);
  return held.workers;
}

void HeldRings::make_on_fabric(weir_hold_order order, const GroupOptions& options) {
  order.timeout_ms = static_cast<std::uint32_t>(milliseconds_left(deadline_));
  const std::size_t wanted = options.rings.size();
  std::vector<std::uint32_t> ids(wanted);
  weir_job_rings rings{.wanted = wanted,
                       .least = options.ring_ids == RingIds::offered ? 1 : wanted,
                       .made = 0,
                       .ids = ids.data()};
  std::array<char, kWhyBytes> why{};
  holds_.reserve(1);
  weir_hold* const hold = module_->hold_job(&order, &rings, why.data(), why.size());
  if (hold == nullptr) {
    throw std::runtime_error(why.data());
  }
  holds_.push_back(hold);
  ids.resize(rings.made);
  ids_ = std::move(ids);
}

bool HeldRings::is_stopped() const {
  return is_stopped_ && is_stopped_();
}

void HeldRings::note_end(std::string_view why) {
  end_.note(fmt::format("{} ended the ring: {}", maker_, why));
}

void HeldRings::when_ended(std::function<void(std::string_view why)> told) {
  end_.when_noted(std::move(told));
}

void HeldRings::release() {
  const std::lock_guard lock(mutex_);
  for (weir_hold* const hold : std::exchange(holds_, {})) {
    module_->release(hold);
  }
}

} // namespace weir::host
