// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/error.hpp"
#include "host/base/event_waiter.hpp"
#include "host/transport/message.hpp"
#include "wire/address.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::host {

/// Events of a transport.
class TransportListener {
 public:
  virtual ~TransportListener() = default;
  /// The predecessor's next message is here. The transport's memory for it is free again when the
  /// call returns.
  virtual Arrival arrived(std::size_t channel, const IncomingMessage& message) = 0;
  /// The channel's oldest unacknowledged message has been acknowledged.
  virtual void completed(std::size_t channel) = 0;

  /// The channel's connection from or to a neighbour is lost, whose rank the error has. May come
  /// again until the channel is closed.
  virtual void failed(std::size_t /*channel*/, const Error& error) { throw error; }

  /// Ranks that share the NIC have gone on with a call.
  virtual void moved() {}
};

/// A rank to which a connection leads, or from which one comes.
struct Neighbour {
  std::uint16_t rank = 0;                // for errors
  std::span<const std::uint8_t> address; // its Transport::address()
};

struct TransportStatistics {
  std::optional<std::uint64_t> received_packets;      // of all queue pairs; none: not known
  std::optional<std::uint64_t> retransmitted_packets; // none: the transport does not know
  std::optional<std::uint64_t> ack_timeouts;
  std::uint64_t frames_lost_on_purpose = 0;
};

/// How messages travel.
enum class Delivery : std::uint8_t {
  /// SEND WITH IMMEDIATE. For a switch: each message of ours is answered by one of the
  /// predecessor's, whose data may go to where our message says.
  by_send,
  /// RDMA WRITE WITH IMMEDIATE into the successor's inbox, at any time.
  by_write,
};

/// The IP address with which every transport's address() begins. Throws Error (mismatch) about
/// `rank` for fewer bytes.
wire::IpAddress ip_of(std::span<const std::uint8_t> address, std::uint16_t rank);

/// Reliable connections from the predecessor and to the successor, one of each per channel (a
/// channel is a ring of the job). Each channel has an inbox of equal slots, used in turn. Messages
/// go by_send until renew() says otherwise. Throws Error when the device fails. One thread at a
/// time.
class Transport {
 public:
  virtual ~Transport() = default;

  /// What the neighbours need in order to connect.
  virtual std::vector<std::uint8_t> address() const = 0;
  /// The number of the channel's queue pair to the successor. It receives the acknowledgements.
  virtual std::uint32_t queue_pair(std::size_t channel) const = 0;
  /// Call once. In a ring of two ranks both are the other one.
  virtual void connect(const Neighbour& predecessor, const Neighbour& successor) = 0;

  /// Replaces the connections by new queue pairs with new first PSNs, to be connected again.
  /// Messages are numbered from 0 again.
  virtual void renew(Delivery delivery) = 0;

  /// False when the channel's send queue is full of messages that are not completed.
  virtual bool post(std::size_t channel, const OutgoingMessage& message) = 0;
  /// Ends the channel's connections, until renew(). Nothing is posted there or reported of it any
  /// more; what a neighbour still sends is dropped. Not while poll() reports. Does not throw.
  virtual void close(std::size_t channel) = 0;
  /// Ends the connections. When it returns, nothing reads or writes callers' memory any more. Only
  /// statistics(), describe() and another quiesce(), which does nothing, may follow. Does not
  /// throw.
  virtual void quiesce() = 0;
  /// Moves frames and reports events; true when there were any.
  virtual bool poll(TransportListener& listener) = 0;
  /// Readable when poll() has work. Of the transport's whole life. kNoDescriptor: only poll() can
  /// tell.
  virtual int descriptor() const = 0;
  /// Call it before sleeping on the descriptor. False: poll again first.
  virtual bool arm() = 0;
  /// When poll() has work even if nothing comes. The clock's maximum: never.
  virtual Deadline due() const = 0;

  virtual TransportStatistics statistics() const = 0;

  /// False where the device knows that nothing is at its other end.
  virtual bool has_link() const { return true; }

  /// Where the channel's connections stand, for an error's text; empty when that is not known.
  virtual std::string describe(std::size_t channel) const = 0;
};

/// Polls in vain before a transport lets its caller sleep: a NIC's answer comes sooner than a sleep
/// and a waking take.
class Spins {
 public:
  /// Yields the CPU; false when it is time to sleep.
  bool spin();

  void restart() { left_ = kMost; }

 private:
  static constexpr unsigned kMost = 256;

  unsigned left_ = kMost;
};

/// Retries: without limit where we or Linux soft-RoCE count them, seven on an HCA.
inline constexpr std::uint8_t kMostRetries = 7;

/// The parameters of every transport.
struct TransportPlan {
  std::uint16_t rank = 0; // our own, for errors
  std::size_t channels = 1;
  std::uint32_t slots = 0;      // of each inbox; also the depth of the send queue
  std::uint32_t slot_bytes = 0; // longest message
  std::uint32_t path_mtu = 1024;
  std::uint32_t window = 1; // messages that may be under way
  std::chrono::milliseconds ack_timeout{67};
  std::uint8_t retry_count = kMostRetries;
  std::vector<std::uint32_t> rings; // of the configuration, by channel; for errors
  bool has_operators = false;       // of the users' own, by which a switch may fold

  /// What it means when a neighbour says that it cannot go on (IBTA §9.7.5.2.8).
  Error remote_failure(std::uint16_t neighbour) const;

  /// What it means when a neighbour refuses the channel's messages, sent by Delivery::by_send: the
  /// switch says so in its name, because another run has begun on the ring (docs/protocol.md §2a).
  Error ring_taken(std::size_t channel) const;

  /// The same, because the ring was reset or withdrawn.
  Error ring_given_up() const;

  /// The smallest exponent e with 4.096 µs x 2^e >= ack_timeout (IBTA §9.7.6.1.3).
  std::uint8_t ack_timeout_exponent() const;
  /// The timeout of that exponent, which queue pairs use and announce.
  std::chrono::nanoseconds exact_ack_timeout() const;

  /// Bytes of an inbox or outbox.
  std::size_t slots_bytes() const { return std::size_t{slots} * slot_bytes; }

  /// Where the message's slot begins, in bytes.
  std::size_t slot_offset(std::uint64_t number) const { return (number % slots) * slot_bytes; }

  /// The message's slot of an inbox or outbox.
  std::span<std::uint8_t> slot_of(std::span<std::uint8_t> memory, std::uint64_t number) const {
    return memory.subspan(slot_offset(number), slot_bytes);
  }
};

} // namespace weir::host
