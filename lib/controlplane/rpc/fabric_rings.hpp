// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rpc/backend.hpp"
#include "rpc/fabric_term.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <weir/v1/switch.pb.h>

namespace weir::rpc {

/// An order has the number of an earlier one, or a smaller one, or is for the switch as it was
/// before it restarted. what() has both.
class OrderOvertaken : public WrongFabric {
 public:
  using WrongFabric::WrongFabric;
};

/// The rings that the manager of the switch's fabric has made, and who may order them: the manager
/// with the highest term. They have no lease while it watches. Any thread may use it.
class FabricRings {
 public:
  /// `backend` outlives it.
  explicit FabricRings(Backend& backend);

  // Each throws WrongFabric, TermOver, and what the backend throws.

  void claim(const v1::ClaimFabricRequest& request, v1::ClaimFabricResponse& response);
  /// All or none.
  void apply(const v1::ApplyRingsRequest& request);
  void remove(const v1::RemoveRingsRequest& request);

  /// Whether answers have the rings' labels, and what else of them was asked for.
  enum class Labels : std::uint8_t { left_out, told };

  /// What the switch has after its last order, for a manager that watches.
  void look(const v1::WatchSwitchRequest& request, Labels labels, v1::SwitchSeen& seen);

  /// Withdraws rings that have been silent, and of which no manager has asked, for a day. Call it
  /// now and then.
  void look_after();

 private:
  using Clock = std::chrono::steady_clock;

  struct Managed {
    ring::RingBirth birth = 0;
    v1::LabelledRing as_asked;
  };

  using Rings = std::map<std::uint32_t, Managed>; // by id

  std::string own_fabric() const;
  FabricTerm& term();
  void check_leads(const std::string& fabric, const v1::FabricTerm& term);
  void check_order(const v1::FabricOrder& order);
  v1::ClaimFabricResponse holder();
  void make(const v1::LabelledRing& ring, Rings& made);
  void withdraw(std::uint32_t id, const Managed& ring);

  Backend& backend_;
  const std::string boot_;
  std::mutex mutex_; // guards all below; an order and a look come one after the other
  std::optional<FabricTerm> term_;
  std::optional<Clock::time_point> holder_heard_; // who has the highest term claimed or watched
  LeaderTerm last_ordered_;
  std::uint64_t last_order_ = 0; // of this term
  Rings rings_;
  Clock::time_point last_look_ = Clock::now();
};

} // namespace weir::rpc
