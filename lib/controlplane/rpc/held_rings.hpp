// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rpc/backend.hpp"
#include "rpc/places.hpp"

#include <cstdint>
#include <grpcpp/support/server_callback.h>
#include <list>
#include <mutex>
#include <set>
#include <weir/v1/switch.pb.h>

namespace weir::rpc {

/// Ids that the switch chooses, at random. People choose smaller ones, and a manager of many
/// switches larger ones.
inline constexpr std::uint32_t kFirstChosenId = 1u << 16;
inline constexpr std::uint32_t kLastChosenId = (1u << 31) - 1;

/// The rings that are there as long as their owners' calls HoldRing. It holds no thread for a call.
/// Any thread may use it.
class HeldRings {
 public:
  /// `backend` outlives it.
  explicit HeldRings(Backend& backend) : backend_(backend) {}

  using Stream = grpc::ServerWriteReactor<v1::HeldRing>;

  /// `maker` makes a ring, as its caller may. The ring's stream deletes itself when the call is
  /// done, and then gives the place back. Throws WrongMessage, and what Backend::hold_ring throws.
  Stream* hold(const v1::HoldRingRequest& request, Backend& maker, Places::Place place);

  /// Ends the calls whose rings somebody else has withdrawn, and withdraws what could not be
  /// withdrawn at its call's end. Call it now and then.
  void look_after();

  /// Ends all calls. The next ones are refused.
  void end();

 private:
  class Holder;

  struct Orphan {
    std::uint32_t id;
    ring::RingBirth birth;
  };

  Stream* open(const ring::RingSpec& spec, const Orphan& ring, Places::Place place);
  ring::RingBirth add(Backend& maker, ring::RingSpec& spec, v1::HoldRingRequest::Id id);
  void load_operators(const v1::HoldRingRequest& request, Backend& maker, const Orphan& ring);
  void enter(Holder& holder);
  void release(Holder& holder);
  void withdraw(const Orphan& orphan);
  std::set<ring::RingBirth> births_without_ring();
  void end_calls_of(const std::set<ring::RingBirth>& births);

  Backend& backend_;
  std::mutex mutex_; // guards all below
  std::set<Holder*> holders_;
  std::list<Orphan> orphans_; // of which an lcore did not stop
  bool has_ended_ = false;
};

} // namespace weir::rpc
