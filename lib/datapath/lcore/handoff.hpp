// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "lcore/happens_before.hpp"

#include <rte_errno.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace weir::lcore {

/// A queue of values from one lcore to one other: an rte_ring, single producer, single consumer. It
/// is first in, first out, so a connection's packets stay in order (protocol I7).
template <typename Value>
class Handoff {
  static_assert(std::is_trivially_copyable_v<Value> && sizeof(Value) % 4 == 0);

 public:
  /// `name` is unique in the process; `entries` is a power of two; `node` is the consumer's NUMA
  /// node. If EAL has no memory there, the queue is on another node. Throws std::runtime_error when
  /// EAL has no memory for it at all.
  Handoff(const std::string& name, unsigned entries, int node = SOCKET_ID_ANY)
      : ring_(make_ring(name, entries, node)), order_(entries) {
    if (!ring_ && node != SOCKET_ID_ANY) {
      ring_ = make_ring(name, entries, SOCKET_ID_ANY);
    }
    if (!ring_) {
      throw std::runtime_error("no memory for hand-off ring " + name + ": " +
                               rte_strerror(rte_errno));
    }
  }

  /// False when it is full. Producer only.
  bool push(const Value& value) { return push({&value, 1}) == 1; }

  /// Pushes the first values that fit; returns how many. Producer only.
  unsigned push(std::span<const Value> values) {
    const auto count = static_cast<unsigned>(values.size());
    order_.before_push(count);
    const unsigned pushed = rte_ring_sp_enqueue_burst_elem(
        ring_.get(), const_cast<Value*>(values.data()), sizeof(Value), count, nullptr);
    order_.after_push(pushed);
    return pushed;
  }

  /// Fills the front of `values`; returns how many it took. Consumer only.
  unsigned pop(std::span<Value> values) {
    const unsigned count = rte_ring_sc_dequeue_burst_elem(
        ring_.get(), values.data(), sizeof(Value), static_cast<unsigned>(values.size()), nullptr);
    order_.after_pop(count);
    return count;
  }

 private:
  struct Free {
    void operator()(rte_ring* ring) const { rte_ring_free(ring); }
  };

  using Ring = std::unique_ptr<rte_ring, Free>;

  static Ring make_ring(const std::string& name, unsigned entries, int node) {
    return Ring(rte_ring_create_elem(name.c_str(), sizeof(Value), entries, node,
                                     RING_F_SP_ENQ | RING_F_SC_DEQ));
  }

  Ring ring_;
  [[no_unique_address]] QueueOrder order_;
};

} // namespace weir::lcore
