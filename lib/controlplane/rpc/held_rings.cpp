// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/held_rings.hpp"

#include "random/random_bytes.hpp"
#include "rpc/messages.hpp"
#include "rpc/ring_messages.hpp"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

namespace weir::rpc {

namespace {

/// From the kernel: a stranger who knows some ids knows no other one.
std::uint32_t draw_id() {
  return random_number(kFirstChosenId, kLastChosenId);
}

} // namespace

HeldRings::Stream* HeldRings::hold(const v1::HoldRingRequest& request, Backend& maker,
                                   Places::Place place) {
  ring::RingSpec spec = ring_of(request, *backend_.config());
  const ring::RingBirth birth = add(maker, spec, request.id());
  const HeldRing ring{spec.id, birth}; // the id may be the switch's
  load_operators(request, maker, ring);
  return calls_.open(ring, std::move(place), [&](v1::HeldRing& message) {
    write(spec, *backend_.config(), *message.mutable_ring());
    message.set_workers(static_cast<std::uint32_t>(backend_.workers()));
  });
}

/// All of them, or there is no ring.
void HeldRings::load_operators(const v1::HoldRingRequest& request, Backend& maker,
                               const HeldRing& ring) {
  try {
    for (const std::string& text : request.operators()) {
      maker.load_operator(text, ring.id);
    }
  } catch (...) {
    calls_.take_back(ring);
    throw;
  }
}

ring::RingBirth HeldRings::add(Backend& maker, ring::RingSpec& spec, v1::HoldRingRequest::Id id) {
  if (id == v1::HoldRingRequest::GIVEN) {
    return maker.hold_ring(spec);
  }
  while (true) {
    spec.id = draw_id();
    try {
      return maker.hold_ring(spec);
    } catch (const RingExists&) { // so another one
    }
  }
}

/// Asks without the calls' lock, because the switch may take its time.
void HeldRings::look_after() {
  calls_.take_back_orphans();
  std::set<ring::RingBirth> gone;
  for (const HeldRing& ring : calls_.held()) {
    if (!backend_.has_ring(ring.birth)) {
      gone.insert(ring.birth);
    }
  }
  calls_.end_those([&](const HeldRing& ring) -> std::optional<grpc::Status> {
    if (!gone.contains(ring.birth)) {
      return std::nullopt;
    }
    return grpc::Status(grpc::StatusCode::ABORTED, fmt::format("ring {} was withdrawn", ring.id));
  });
}

} // namespace weir::rpc
