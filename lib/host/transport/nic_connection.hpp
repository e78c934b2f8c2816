// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/work.hpp"
#include "wire/address.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace weir::host {

/// What a NicConnection is made with. Both memories must be writable, and outlive it.
struct NicConnectionPlan {
  std::span<std::uint8_t> exposed; // which the peer may write and read
  std::span<std::uint8_t> staging; // of the connection's owner
  std::uint32_t path_mtu = 1024;
  std::uint32_t send_depth = 1;
  std::uint32_t receive_depth = 1;
  std::uint32_t reads = 1; // of max_rd_atomic and max_dest_rd_atomic
};

/// The other end, and how it is spoken to.
struct NicPeer {
  wire::IpAddress ip;
  std::uint32_t queue_pair = 0;
  std::uint32_t first_psn = 0;  // of its requests
  std::uint32_t own_psn = 0;    // of our first request
  std::uint8_t ack_timeout = 0; // exponent (IBTA §9.7.6.1.3)
  std::uint8_t retry_count = 7;
};

/// The end of a request, or of a receive.
struct NicCompletion {
  endpoint::CompletionKind kind = endpoint::CompletionKind::write;
  endpoint::Status status = endpoint::Status::success;
  std::uint32_t immediate = 0; // of a receive
  std::string device_said;     // of a status that is no success
};

/// A reliable connection of one queue pair of a NIC, for WRITEs and READs. Throws Error when the
/// device fails. One thread at a time.
class NicConnection {
 public:
  virtual ~NicConnection() = default;

  virtual wire::IpAddress ip() const = 0;
  virtual std::uint32_t queue_pair() const = 0;
  /// By which the peer names exposed memory.
  virtual std::uint32_t exposed_key() const = 0;
  /// Of one request, in bytes.
  virtual std::uint32_t longest_message() const = 0;
  /// The device's key for memory that it knows, callers' registered memory included.
  virtual std::optional<std::uint32_t> key_of(std::span<const std::uint8_t> bytes) const = 0;

  /// Call it once. Receives may be posted before.
  virtual void connect(const NicPeer& peer) = 0;
  /// A write or a read; not more than the depth of either queue at a time. `key`: the device's for
  /// its memory, whatever it is if there is none. A header is none.
  virtual void post(const endpoint::SendRequest& request, std::uint32_t key) = 0;
  /// For one immediate.
  virtual void post_receive() = 0;
  /// Some of those that have ended, in order, until the next call.
  virtual std::span<const NicCompletion> poll() = 0;
  /// When it returns, the device reads and writes neither memory any more, nor a request's. Then
  /// only the descriptor is left. Does not throw.
  virtual void close() = 0;

  /// Readable when poll() has something.
  virtual int descriptor() const = 0;
  /// Call it before sleeping on the descriptor. False: poll again first.
  virtual bool arm() = 0;
};

} // namespace weir::host
