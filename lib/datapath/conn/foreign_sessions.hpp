// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/port_memory.hpp"
#include "frame/frame.hpp"
#include "wire/keyed_hash.hpp"

#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

namespace weir::conn {

using wire::HashKey;

/// The hosts and sessions of rings on other switches: hosts whose hello another switch has
/// answered, with the session of that answer. An answer counts only if its nonce is that of a hello
/// which passed here before, and it comes by the port that this hello left by. A host's entries
/// belong to the port that its hello came by, so frames from other ports, whatever they say, make
/// nobody forget them. All lcores share it without locks.
class ForeignSessions {
 public:
  /// The ports that a frame will leave by: a set of bits. `now` is in milliseconds.
  using WaysOut = std::function<std::uint64_t(const frame::Frame&, std::uint64_t now)>;

  ForeignSessions(const HashKey& hash_key, WaysOut ways_out)
      : hash_key_(hash_key), ways_out_(std::move(ways_out)) {}

  /// Notes a hello that is forwarded, or the result of one. `now` is in milliseconds.
  void note(const frame::Frame& frame, const wire::InaHeader& hello, std::uint64_t now) {
    (hello.flags & kInaFlagResult) == 0 ? note_hello(frame, hello, now)
                                        : note_result(frame, hello, now);
  }

  /// Whether the sender of this message has such a session.
  bool has(const frame::Frame& frame, const wire::InaHeader& message) const {
    return sessions_.has(frame.ingress, session_of(frame.source(), message));
  }

 private:
  /// In place of a port: the hello was flooded, so that its answer may come from anywhere.
  static constexpr std::uint16_t kAnyPort = kMostPorts;

  void note_hello(const frame::Frame& frame, const wire::InaHeader& hello, std::uint64_t now) {
    const std::uint64_t ports = ways_out_(frame, now);
    if (ports != 0) {
      const std::uint16_t way_out = only_port_of(ports).value_or(kAnyPort);
      hellos_.note(frame.ingress,
                   name_of_hello(frame.source(), hello, hello.session.get(), way_out), now);
    }
  }

  /// Its host's hello came in where the result goes out.
  void note_result(const frame::Frame& frame, const wire::InaHeader& result, std::uint64_t now) {
    const std::optional<std::uint16_t> port = only_port_of(ways_out_(frame, now));
    if (port && (has_hello(*port, frame, result, frame.ingress) ||
                 has_hello(*port, frame, result, kAnyPort))) {
      sessions_.note(*port, session_of(frame.destination(), result), now);
    }
  }

  bool has_hello(std::uint16_t port, const frame::Frame& frame, const wire::InaHeader& result,
                 std::uint16_t way_out) const {
    return hellos_.has(
        port, name_of_hello(frame.destination(), result, result.message_id.get(), way_out));
  }

  static std::optional<std::uint16_t> only_port_of(std::uint64_t ports) {
    return std::has_single_bit(ports)
               ? std::optional(static_cast<std::uint16_t>(std::countr_zero(ports)))
               : std::nullopt;
  }

  std::uint64_t name_of_hello(const wire::IpAddress& host, const wire::InaHeader& ina,
                              std::uint32_t nonce, std::uint16_t way_out) const {
    const std::uint64_t run = std::uint64_t{ina.epoch.get()} << 32 | nonce;
    const std::uint64_t ring = std::uint64_t{ina.ring_id.get()} << 32 | way_out;
    return keyed_hash(hash_key_, keyed_hash(hash_key_, name_of(host), run), ring);
  }

  std::uint64_t session_of(const wire::IpAddress& host, const wire::InaHeader& ina) const {
    const std::uint64_t session = std::uint64_t{ina.ring_id.get()} << 32 | ina.session.get();
    return keyed_hash(hash_key_, name_of(host), session);
  }

  std::uint64_t name_of(const wire::IpAddress& host) const {
    const auto [high, low] = host.words();
    return keyed_hash(hash_key_, high, low);
  }

  HashKey hash_key_;
  WaysOut ways_out_;
  PortMemory hellos_;   // by the port that they came by
  PortMemory sessions_; // likewise
};

} // namespace weir::conn
