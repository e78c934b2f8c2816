// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::host {

/// What a transport tells its owner.
class TransportListener {
 public:
  virtual ~TransportListener() = default;
  /// The predecessor's next message lies whole in our inbox: INA header, then data. The slot is
  /// free again when the call returns.
  virtual void arrived(std::size_t lane, std::uint32_t immediate,
                       std::span<const std::uint8_t> message) = 0;
  /// The oldest message of the lane that was still unacknowledged is not so any more.
  virtual void completed(std::size_t lane) = 0;
};

/// One outgoing message. Its bytes stay unchanged until it is completed, but for data that an
/// arriving result overwrites in place: the switch never reads a repeat of those (docs/protocol.md
/// §4).
struct OutgoingMessage {
  std::uint64_t number = 0; // 0, 1, 2, … on its lane; immediate and inbox slot follow from it
  std::span<const std::uint8_t> header;
  std::span<const std::uint8_t> data;
};

struct TransportStatistics {
  std::optional<std::uint64_t> retransmitted_packets; // none: the transport does not know
  std::optional<std::uint64_t> ack_timeouts;
  std::uint64_t frames_lost_on_purpose = 0;
};

/// Reliable connections from the predecessor and to the successor, one of each per lane (a lane is
/// a ring of the job). A message is an RDMA WRITE WITH IMMEDIATE into the successor's inbox; each
/// lane has one, of equal slots, gone round in the order of messages. Throws weir::Error with the
/// neighbour's rank and the cause when a connection fails. One thread at a time.
class Transport {
 public:
  virtual ~Transport() = default;

  /// What the neighbours need in order to connect.
  virtual std::vector<std::uint8_t> address() const = 0;
  /// The number of the lane's queue pair to the successor, to which acknowledgements come back.
  virtual std::uint32_t queue_pair(std::size_t lane) const = 0;
  /// Once, with the neighbours' address(); the same blob twice when there are two ranks.
  virtual void connect(std::span<const std::uint8_t> predecessor,
                       std::span<const std::uint8_t> successor) = 0;

  /// Gives up the connections for new queue pairs with first PSNs of their own, which wait to be
  /// connected. Messages are numbered from 0 again.
  virtual void renew() = 0;

  /// False when as many messages as the lane's send queue is deep are not completed yet.
  virtual bool post(std::size_t lane, const OutgoingMessage& message) = 0;
  /// Moves frames and reports what came of it; true when anything did.
  virtual bool poll(TransportListener& listener) = 0;
  /// Returns when poll may have something to do, after `timeout` at the latest.
  virtual void wait(std::chrono::microseconds timeout) = 0;

  virtual TransportStatistics statistics() const = 0;
};

/// Without end where we or Linux's soft-RoCE count the retries, seven where an HCA does.
inline constexpr std::uint8_t kMostRetries = 7;

/// What every transport is built from.
struct TransportPlan {
  std::uint16_t rank = 0; // our own, for errors
  std::uint16_t world = 0;
  std::size_t lanes = 1;
  std::uint32_t slots = 0;      // of each inbox; also the depth of the send queue
  std::uint32_t slot_bytes = 0; // longest message
  std::uint32_t path_mtu = 1024;
  std::uint32_t window = 1; // messages that may be under way
  std::chrono::milliseconds ack_timeout{67};
  std::uint8_t retry_count = kMostRetries;

  /// The least exponent whose timeout, 4.096 µs x 2^e, reaches ack_timeout (IBTA §9.7.6.1.3).
  std::uint8_t ack_timeout_exponent() const;
  /// That timeout: what a queue pair is told and tells.
  std::chrono::nanoseconds exact_ack_timeout() const;

  std::uint16_t successor() const { return static_cast<std::uint16_t>((rank + 1u) % world); }

  std::uint16_t predecessor() const {
    return static_cast<std::uint16_t>((rank + world - 1u) % world);
  }
};

} // namespace weir::host
