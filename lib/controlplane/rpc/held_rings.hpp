// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rpc/backend.hpp"
#include "rpc/held_calls.hpp"
#include "rpc/places.hpp"

#include <cstdint>
#include <grpcpp/support/server_callback.h>
#include <weir/v1/switch.pb.h>

namespace weir::rpc {

/// Ids that the switch chooses, at random. People choose smaller ones, and a manager of many
/// switches larger ones.
inline constexpr std::uint32_t kFirstChosenId = 1u << 16;
inline constexpr std::uint32_t kLastChosenId = (1u << 31) - 1;

/// The rings that are there as long as their owners' calls HoldRing. Any thread may use it.
class HeldRings {
 public:
  /// `backend` outlives it.
  explicit HeldRings(Backend& backend)
      : backend_(backend),
        calls_([this](const HeldRing& ring) { backend_.remove_orphan(ring.birth); }) {}

  using Stream = grpc::ServerWriteReactor<v1::HeldRing>;

  /// `maker` makes a ring, as its caller may. The ring's stream deletes itself when the call is
  /// done, and then gives the place back. Throws WrongMessage, and what Backend::hold_ring throws.
  Stream* hold(const v1::HoldRingRequest& request, Backend& maker, Places::Place place);

  /// Ends the calls whose rings somebody else has withdrawn, and withdraws what could not be
  /// withdrawn at its call's end. Call it now and then.
  void look_after();

  /// Ends all calls. The next ones are refused.
  void end() { calls_.end(); }

 private:
  struct HeldRing {
    std::uint32_t id;
    ring::RingBirth birth;
  };

  ring::RingBirth add(Backend& maker, ring::RingSpec& spec, v1::HoldRingRequest::Id id);
  void load_operators(const v1::HoldRingRequest& request, Backend& maker, const HeldRing& ring);

  Backend& backend_;
  HeldCalls<v1::HeldRing, HeldRing> calls_;
};

} // namespace weir::rpc
