// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "netsim/frame_network.hpp"
#include "netsim/message_list.hpp"
#include "netsim/queue_pair.hpp"

#include <cstdint>
#include <vector>

namespace weir::netsim {

/// A rank's part of one ring: a queue pair to its successor, one from its predecessor, and when the
/// next message may be sent.
struct Worker {
  enum class End : std::uint8_t { arrived, arrived_and_acknowledged };
  enum class Gate : std::uint8_t { open, closed };

  Worker(const HostTraits& traits, const MessageList& outgoing, const MessageList& incoming)
      : sender(traits, outgoing), receiver(incoming), to_send(outgoing.count()),
        to_receive(incoming.count()) {}

  /// Posts up to `lead` messages more than have arrived, and `room` more than are acknowledged.
  void post_all() {
    while (gate == Gate::open && sender.posted() < to_send &&
           sender.posted() < receiver.arrived() + lead &&
           sender.posted() < sender.acknowledged() + room) {
      sender.post();
    }
  }

  bool has_everything() const { return receiver.arrived() == to_receive; }

  bool is_done() const {
    return has_everything() && (end == End::arrived || sender.acknowledged() == to_send);
  }

  Sender sender;
  Receiver receiver;
  std::uint32_t to_send;
  std::uint32_t to_receive;
  std::uint32_t lead = 0;
  std::uint32_t room = 0;
  Gate gate = Gate::open;        // closed: nothing is posted
  std::uint32_t opens = kNobody; // the worker whose gate opens when this one has everything
  End end = End::arrived;
  std::uint32_t ring = 0;
  std::uint32_t rank = 0;
  plan::LinkId uplink = plan::kNone;
  std::vector<plan::LinkId> way;      // of data; empty where switches choose it
  std::vector<plan::LinkId> way_back; // of answers to the predecessor
  Time timer = kNever;                // the time of its pending event
  bool was_done = false;
};

} // namespace weir::netsim
