// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/connection_table.hpp"
#include "recovery/answer_template.hpp"
#include "ring/ring_set.hpp"
#include "wire/syndrome.hpp"

#include <cstdint>
#include <optional>

namespace weir::stage {

/// Why a run is over, as a NAK says it (docs/protocol.md §2a, "Told", and §12.4).
inline constexpr wire::NakCode kGivenUp = wire::NakCode::invalid_request;
inline constexpr wire::NakCode kTakenOver = wire::NakCode::remote_access;
inline constexpr wire::NakCode kDisagreed = wire::NakCode::remote_operational;

/// How the switch reaches a sender of a run that is over, and what it may say to it
/// (docs/protocol.md §2a, "Told").
struct Farewell {
  recovery::AnswerTemplate answers;
  conn::QueuePair connection;                   // that its packets name
  conn::QueuePair acknowledgements;             // that those of its packets name
  std::optional<std::uint16_t> acknowledged_by; // the port that those come by
  std::uint32_t unacknowledged = 0;             // a
  std::uint32_t released = 0;                   // s, when the run ended
  std::uint32_t reach = 0;                      // packets of two windows
  std::uint32_t ring_id = 0;                    // the sender's ring
  ring::RingChild sender;                       // its index may be another ring's by now
  std::uint16_t port = 0;                       // that its packets came by
  std::uint64_t claim = 0;                      // conn::QueuePairClaims' name of its own queue pair
  std::uint8_t syndrome = 0;                    // the NAK that says why its run is over
  std::uint64_t since_ns = 0;                   // the run's end
  std::uint64_t told_at_ns = 0;                 // that its run is over
  std::uint64_t acknowledged_at_ns = 0;
};

/// Those of one worker. Where there is no room for one more, the one whose run ended first goes.
class Farewells {
 public:
  Farewells(std::uint32_t senders, const conn::HashKey& hash_key);

  /// In place of an older one of the same connection. Of two with the same acknowledgements, these
  /// are for the later one.
  void put(const Farewell& farewell);

  /// The connection has begun to live again.
  void forget(const conn::QueuePair& connection);

  /// nullptr when there is none.
  Farewell* find(const conn::QueuePair& connection);

  /// By what acknowledgements name. nullptr when there is none.
  Farewell* find_acknowledged(const conn::QueuePair& acknowledgements);

 private:
  /// One ring that begins anew again and again is not to displace what all others are told.
  static constexpr std::uint32_t kRunsPerSender = 4;

  struct Name {
    conn::QueuePair connection;
    std::uint64_t since_ns = 0;
  };

  conn::BucketTable<Farewell> farewells_; // by connection
  conn::BucketTable<Name> names_;         // by acknowledgements; what they name may be gone
};

} // namespace weir::stage
