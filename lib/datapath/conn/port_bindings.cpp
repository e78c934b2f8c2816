// SPDX-License-Identifier: BSD-3-Clause
#include "conn/port_bindings.hpp"

#include "conn/spin_lock.hpp"

#include <atomic>
#include <cassert>

namespace weir::conn {

PortBindings::PortBindings(const ring::CurrentRings& current)
    : current_(current), ports_(current->rings().size()), greeted_(current->rings().size()),
      receivers_(current->rings().size()), sources_(current->pairs()) {
  for (const std::uint16_t ring : current_->present()) {
    make_room_for(ring);
  }
  for (const std::uint16_t ring : current_->present()) {
    update_all(ring);
  }
}

void PortBindings::adopt(std::uint16_t ring) {
  const SpinLock lock(is_locked_);
  make_room_for(ring);
  update_all(ring);
}

void PortBindings::make_room_for(std::uint16_t ring) {
  const std::uint16_t senders = current_->rings()[ring].senders();
  ports_.resize(current_->rings().size());
  greeted_.resize(current_->rings().size());
  receivers_.resize(current_->rings().size());
  sources_.resize(current_->pairs());
  ports_[ring].assign(senders, std::nullopt);
  greeted_[ring].assign(senders, std::nullopt);
  receivers_[ring].assign(senders, std::nullopt);
}

void PortBindings::update_all(std::uint16_t ring) {
  for (std::uint16_t child = 0; child < greeted_[ring].size(); ++child) {
    update({ring, child});
  }
}

void PortBindings::bind(const ring::RingChild& child, std::uint16_t port) {
  const SpinLock lock(is_locked_);
  greeted_[child.ring][child.child] = port;
  update(child);
}

void PortBindings::update_configured(std::uint16_t ring) {
  const SpinLock lock(is_locked_);
  for (std::uint16_t child = 0; child < greeted_[ring].size(); ++child) {
    std::optional<std::uint16_t>& greeted = greeted_[ring][child];
    greeted = greeted ? bound_port_of({ring, child}) : greeted;
  }
  update_all(ring);
}

void PortBindings::release(std::uint16_t ring) {
  const SpinLock lock(is_locked_);
  for (std::uint16_t child = 0; child < greeted_[ring].size(); ++child) {
    greeted_[ring][child].reset();
    update({ring, child});
  }
}

std::optional<std::uint16_t> PortBindings::bound_port_of(const ring::RingChild& child) const {
  const auto configured = current_->rings()[child.ring].port_of(child.child);
  return configured ? configured : greeted_[child.ring][child.child];
}

/// What it sends goes to the next one, its acknowledgements to the one before it.
void PortBindings::update(const ring::RingChild& child) {
  const std::uint16_t before = current_->rings()[child.ring].sender_to(child.child);
  ports_[child.ring][child.child] = bound_port_of(child);
  receivers_[child.ring][before] = port_of(child);
  update_source(current_->pair_of(child));
  update_source(current_->reverse_of(current_->pair_of({child.ring, before})));
}

void PortBindings::update_source(std::uint16_t pair) {
  assert(pair != 0 && pair <= sources_.size());
  std::uint64_t source = 0;
  for (const ring::RingChild& sender : current_->senders(pair)) {
    if (const auto port = port_of(sender)) {
      source |= std::uint64_t{1} << *port;
    }
  }
  for (const ring::RingChild& sender : current_->senders(current_->reverse_of(pair))) {
    if (const auto port = receiver_port_of(sender)) {
      source |= std::uint64_t{1} << *port;
    }
  }
  std::atomic_ref(sources_[pair - 1u]).store(source, std::memory_order_relaxed);
}

} // namespace weir::conn
