// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/transport/verbs_nic.hpp"
#include "host/transport/verbs_objects.hpp"
#include "host/transport/verbs_port.hpp"
#include "wire/address.hpp"

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>

namespace weir::host {

/// What a reliable connection's queue pair is made with.
struct QueuePairShape {
  ibv_cq* completions = nullptr; // of both queues; each request has one
  std::uint32_t send_depth = 1;
  std::uint32_t receive_depth = 1;
  std::uint32_t pieces = 1;       // of a request's memory, at most
  int peers_access = 0;           // to our memory: an OR of IBV_ACCESS_REMOTE_*
  std::uint32_t inline_bytes = 0; // wanted
};

struct MadeQueuePair {
  verbs::QueuePair queue_pair;    // in INIT
  std::uint32_t inline_bytes = 0; // of a request, at most
};

/// Throws Error.
MadeQueuePair make_queue_pair(const VerbsNic& nic, const QueuePairShape& shape);

/// A connection's other end, and how we speak to it.
struct QueuePairPeer {
  wire::IpAddress ip;
  std::uint32_t number = 0;
  std::uint32_t psn = 0;     // of its first request
  std::uint32_t own_psn = 0; // of ours
  std::uint8_t reads = 1;    // max_rd_atomic and max_dest_rd_atomic
  std::uint8_t rnr_timer = 0;
  std::uint8_t ack_timeout = 0; // exponent (IBTA §9.7.6.1.3)
  std::uint8_t retry_count = 7;
};

/// INIT to RTR to RTS. Throws Error.
void bring_up(const VerbsNic& nic, const VerbsPort& port, ibv_qp& queue_pair,
              const QueuePairPeer& peer);

/// The error state ends each request; a request that has ended touches no memory. None: no effect.
void end_requests(ibv_qp* queue_pair);

/// A piece of a request's memory. `key`: the device's for it.
ibv_sge piece_of(std::span<const std::uint8_t> bytes, std::uint32_t key);

} // namespace weir::host
