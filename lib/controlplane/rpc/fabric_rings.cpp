// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/fabric_rings.hpp"

#include "random/random_bytes.hpp"
#include "rpc/messages.hpp"
#include "rpc/ring_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <google/protobuf/util/message_differencer.h>
#include <stdexcept>

namespace weir::rpc {
namespace {

using google::protobuf::util::MessageDifferencer;

constexpr int kMostRingsAtOnce = 64;
constexpr std::chrono::hours kLeaseWithoutManager{24};

/// What a tree of switches needs of each; a manager makes trees only of switches that have it.
constexpr const char* kCapability = "trees-2";

std::string draw_boot() {
  return fmt::format("{:016x}", random_as<std::uint64_t>());
}

LeaderTerm term_of(const v1::FabricTerm& term) {
  return {term.epoch(), term.number()};
}

void write(const LeaderTerm& term, v1::FabricTerm& message) {
  message.set_epoch(term.epoch);
  message.set_number(term.number);
}

void write(const control::RingRoom& room, v1::RingRoom& message) {
  message.set_rings(room.rings);
  message.set_members(room.members);
  message.set_frames(room.frames);
}

void add(const control::RingRoom& more, control::RingRoom& room) {
  room.rings += more.rings;
  room.members += more.members;
  room.frames += more.frames;
}

/// Of one job's label the next manager may say more.
bool is_same(const v1::LabelledRing& one, const v1::LabelledRing& other) {
  return MessageDifferencer::Equals(one.ring(), other.ring()) &&
         one.label().job() == other.label().job() &&
         one.label().request_id() == other.label().request_id();
}

} // namespace

FabricRings::FabricRings(Backend& backend) : backend_(backend), boot_(draw_boot()) {}

std::string FabricRings::own_fabric() const {
  const auto config = backend_.config();
  if (config->control.fabric.empty() || config->state_directory.empty()) {
    throw WrongFabric("this switch belongs to no fabric; allowed: a configuration with "
                      "control.fabric, spare and state_directory");
  }
  return config->control.fabric;
}

FabricTerm& FabricRings::term() {
  if (!term_) {
    term_.emplace(backend_.config()->state_directory);
  }
  return *term_;
}

void FabricRings::check_leads(const std::string& fabric, const v1::FabricTerm& term) {
  if (fabric != own_fabric()) {
    throw WrongFabric(fmt::format("fabric: found '{}'; allowed: '{}', to which this switch belongs",
                                  fabric, own_fabric()));
  }
  this->term().check(fabric, term_of(term));
}

void FabricRings::check_order(const v1::FabricOrder& order) {
  check_leads(order.fabric(), order.term());
  if (order.boot() != boot_) {
    throw OrderOvertaken(fmt::format(
        "boot: found '{}'; allowed: '{}': the switch has restarted since", order.boot(), boot_));
  }
  const LeaderTerm term = term_of(order.term());
  if (term != last_ordered_) {
    last_ordered_ = term;
    last_order_ = 0;
  }
  if (order.number() <= last_order_) {
    throw OrderOvertaken(fmt::format("number: found {}; allowed: more than {}, which has come",
                                     order.number(), last_order_));
  }
  last_order_ = order.number();
}

void FabricRings::claim(const v1::ClaimFabricRequest& request, v1::ClaimFabricResponse& response) {
  const std::lock_guard lock(mutex_);
  if (request.fabric() != own_fabric()) {
    throw WrongFabric(fmt::format("fabric: found '{}'; allowed: '{}', to which this switch belongs",
                                  request.fabric(), own_fabric()));
  }
  const bool is_named =
      !request.manager().empty() && request.manager().find_first_of(" \n\t") == std::string::npos;
  if (!is_named) {
    throw WrongMessage(
        fmt::format("manager: found '{}'; allowed: a name without blanks", request.manager()));
  }
  try {
    term().claim({request.fabric(), term_of(request.term()), request.manager()});
  } catch (const TermOver& over) {
    throw TermOver(over.what(), holder().SerializeAsString());
  }
  holder_heard_ = Clock::now();
  response.set_boot(boot_);
  write(term().highest().term, *response.mutable_highest());
  response.add_capabilities(kCapability);
}

/// Who has the highest term: somebody may want to take the switch from him.
v1::ClaimFabricResponse FabricRings::holder() {
  const FabricTerm::Claim& highest = term().highest();
  v1::ClaimFabricResponse told;
  write(highest.term, *told.mutable_highest());
  told.set_holder(highest.manager);
  if (holder_heard_) {
    const auto silence = Clock::now() - *holder_heard_;
    told.set_holder_heard_ms(static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(silence).count()));
  }
  return told;
}

void FabricRings::apply(const v1::ApplyRingsRequest& request) {
  const std::lock_guard lock(mutex_);
  check_order(request.order());
  if (request.rings_size() > kMostRingsAtOnce) {
    throw WrongMessage(fmt::format("rings: found {}; allowed: at most {}", request.rings_size(),
                                   kMostRingsAtOnce));
  }
  Rings made;
  try {
    for (const v1::LabelledRing& ring : request.rings()) {
      make(ring, made);
    }
  } catch (...) {
    for (const auto& [id, ring] : made) {
      withdraw(id, ring);
    }
    throw;
  }
  rings_.merge(made);
}

void FabricRings::make(const v1::LabelledRing& ring, Rings& made) {
  const std::uint32_t id = ring.ring().id();
  const auto present = rings_.find(id);
  if (present != rings_.end() && backend_.has_ring(present->second.birth)) {
    if (is_same(present->second.as_asked, ring)) {
      return;
    }
    throw RingExists(fmt::format("id: found {}, which another ring of this fabric has; allowed: "
                                 "an id that was never used",
                                 id));
  }
  rings_.erase(id);
  ring::RingSpec spec = ring_of(ring.ring(), *backend_.config());
  made[id] = {backend_.hold_ring(spec), ring};
}

void FabricRings::withdraw(std::uint32_t id, const Managed& ring) {
  if (backend_.has_ring(ring.birth)) {
    backend_.remove_ring(id);
  }
}

void FabricRings::remove(const v1::RemoveRingsRequest& request) {
  const std::lock_guard lock(mutex_);
  check_order(request.order());
  for (const std::uint32_t id : request.ids()) {
    if (const auto ring = rings_.find(id); ring != rings_.end()) {
      withdraw(id, ring->second);
      rings_.erase(ring);
    }
  }
}

void FabricRings::look(const v1::WatchSwitchRequest& request, Labels labels, v1::SwitchSeen& seen) {
  const std::lock_guard lock(mutex_);
  check_leads(request.fabric(), request.term());
  last_look_ = Clock::now();
  holder_heard_ = last_look_;
  const TendedSwitch tended = backend_.tended();
  control::RingRoom others;
  seen.set_boot(boot_);
  seen.set_last_order(last_order_);
  for (const TendedRing& ring : tended.rings) {
    v1::SeenRing& row = *seen.add_rings();
    const auto managed = rings_.find(ring.id);
    const bool is_ours = managed != rings_.end() && managed->second.birth == ring.birth;
    row.set_id(ring.id);
    row.set_silent_ms(ring.silent_ms);
    row.set_is_managed(is_ours);
    row.mutable_waits_for()->Add(ring.waits_for.begin(), ring.waits_for.end());
    if (!is_ours) {
      add(ring.room, others);
    } else if (labels == Labels::told) {
      *row.mutable_label() = managed->second.as_asked.label();
      if (request.with_rings()) {
        *row.mutable_ring() = managed->second.as_asked.ring();
        row.mutable_ring()->clear_nonce();
      }
    }
  }
  for (const TendedPort& port : tended.ports) {
    v1::SeenPort& row = *seen.add_ports();
    row.set_name(port.name);
    row.set_is_down(port.is_down);
  }
  write(tended.room, *seen.mutable_room());
  write(others, *seen.mutable_others());
}

void FabricRings::look_after() {
  const std::lock_guard lock(mutex_);
  if (rings_.empty() || Clock::now() - last_look_ < kLeaseWithoutManager) {
    return;
  }
  const TendedSwitch tended = backend_.tended();
  const auto day = std::chrono::milliseconds(kLeaseWithoutManager).count();
  for (const TendedRing& ring : tended.rings) {
    const auto managed = rings_.find(ring.id);
    if (managed != rings_.end() && managed->second.birth == ring.birth &&
        ring.silent_ms >= static_cast<std::uint64_t>(day)) {
      withdraw(ring.id, managed->second);
      rings_.erase(managed);
    }
  }
}

} // namespace weir::rpc
