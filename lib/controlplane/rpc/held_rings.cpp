// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/held_rings.hpp"

#include "rpc/messages.hpp"
#include "rpc/ring_messages.hpp"

#include <fmt/format.h>

#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <unistd.h>
#include <utility>

namespace weir::rpc {

namespace {

/// From the kernel: a stranger who knows some ids knows no other one.
std::uint32_t draw_id() {
  std::uint32_t id = 0;
  do {
    if (getentropy(&id, sizeof id) != 0) {
      throw std::runtime_error("the kernel gives no random bytes");
    }
    id &= kLastChosenId;
  } while (id < kFirstChosenId);
  return id;
}

} // namespace

/// An owner's call. It writes once, and then waits for its end.
class HeldRings::Holder : public Stream {
 public:
  Holder(HeldRings& rings, const Orphan& ring, v1::HeldRing message, Places::Place place)
      : rings_(rings), ring_(ring), message_(std::move(message)), place_(std::move(place)) {
    StartWrite(&message_);
  }

  const Orphan& ring() const { return ring_; }

  /// Only the first one counts.
  void end(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    if (!end_) {
      end_ = status;
      finish();
    }
  }

  void OnWriteDone(bool is_written) override {
    if (!is_written) {
      end(grpc::Status::CANCELLED);
    }
    const std::lock_guard lock(mutex_);
    is_writing_ = false;
    finish();
  }

  void OnCancel() override { end(grpc::Status::CANCELLED); }

  void OnDone() override {
    rings_.release(*this);
    delete this;
  }

 private:
  /// Not while it writes.
  void finish() {
    if (end_ && !is_writing_ && !is_finished_) {
      is_finished_ = true;
      Finish(*end_);
    }
  }

  HeldRings& rings_;
  const Orphan ring_;
  const v1::HeldRing message_;
  const Places::Place place_;
  std::mutex mutex_; // guards all below
  bool is_writing_ = true;
  bool is_finished_ = false;
  std::optional<grpc::Status> end_;
};

HeldRings::Stream* HeldRings::hold(const v1::HoldRingRequest& request, Backend& maker,
                                   Places::Place place) {
  ring::RingSpec spec = ring_of(request, *backend_.config());
  const ring::RingBirth birth = add(maker, spec, request.id());
  const Orphan ring{spec.id, birth}; // the id may be the switch's
  load_operators(request, maker, ring);
  return open(spec, ring, std::move(place));
}

/// All of them, or there is no ring.
void HeldRings::load_operators(const v1::HoldRingRequest& request, Backend& maker,
                               const Orphan& ring) {
  try {
    for (const std::string& text : request.operators()) {
      maker.load_operator(text, ring.id);
    }
  } catch (...) {
    withdraw(ring);
    throw;
  }
}

HeldRings::Stream* HeldRings::open(const ring::RingSpec& spec, const Orphan& ring,
                                   Places::Place place) {
  try {
    v1::HeldRing message;
    write(spec, *backend_.config(), *message.mutable_ring());
    auto holder = std::make_unique<Holder>(*this, ring, std::move(message), std::move(place));
    enter(*holder);
    return holder.release();
  } catch (...) { // no memory is left
    withdraw(ring);
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

void HeldRings::enter(Holder& holder) {
  const std::lock_guard lock(mutex_);
  holders_.insert(&holder);
  if (has_ended_) {
    holder.end({grpc::StatusCode::UNAVAILABLE, "the switch stops"});
  }
}

void HeldRings::release(Holder& holder) {
  {
    const std::lock_guard lock(mutex_);
    holders_.erase(&holder);
  }
  withdraw(holder.ring());
}

void HeldRings::withdraw(const Orphan& orphan) {
  try {
    backend_.remove_orphan(orphan.birth);
  } catch (const std::exception&) { // later, when the lcore that did not stop has gone on
    const std::lock_guard lock(mutex_);
    orphans_.push_back(orphan);
  }
}

void HeldRings::look_after() {
  std::list<Orphan> orphans;
  {
    const std::lock_guard lock(mutex_);
    orphans.swap(orphans_);
  }
  for (const Orphan& orphan : orphans) {
    withdraw(orphan);
  }
  end_calls_of(births_without_ring());
}

/// Asks without the lock, because the switch may take its time.
std::set<ring::RingBirth> HeldRings::births_without_ring() {
  std::set<ring::RingBirth> births;
  {
    const std::lock_guard lock(mutex_);
    for (const Holder* const holder : holders_) {
      births.insert(holder->ring().birth);
    }
  }
  std::erase_if(births, [this](ring::RingBirth birth) { return backend_.has_ring(birth); });
  return births;
}

void HeldRings::end_calls_of(const std::set<ring::RingBirth>& births) {
  const std::lock_guard lock(mutex_);
  for (Holder* const holder : holders_) {
    if (births.contains(holder->ring().birth)) {
      holder->end(
          {grpc::StatusCode::ABORTED, fmt::format("ring {} was withdrawn", holder->ring().id)});
    }
  }
}

void HeldRings::end() {
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  for (Holder* const holder : holders_) {
    holder->end({grpc::StatusCode::UNAVAILABLE, "the switch stops"});
  }
}

} // namespace weir::rpc
