// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/connection_table.hpp"
#include "conn/message_history.hpp"
#include "conn/ring_directory.hpp"
#include "weir/reasons.hpp"
#include "wire/packet.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace weir::conn {

/// What is to become of a message packet between ring neighbours.
struct Verdict {
  enum class Step : std::uint8_t {
    forward,       // somebody else's, or plain
    forward_stale, // a ring's repeat of a message that everybody has
    contribute,    // to slot record->first_slot + packet of the ring
    drop,
  };
  Step step = Step::forward;
  DropReason drop{};                      // for drop
  std::optional<ForeignReason> foreign{}; // for forward: an INA header that belongs to no ring here
  std::optional<std::uint16_t> flushed_ring{}; // a newer epoch began: its slots are void
  std::uint16_t ring = 0;                      // for contribute and forward_stale
  std::uint16_t rank = 0;                      //
  const MessageRecord* record = nullptr;       //
  std::uint32_t packet = 0;                    // k
};

/// One member's connection as a person would ask for it.
struct MemberStatus {
  bool connected = false;
  std::uint32_t qp = 0;
  std::uint64_t newest_message = 0;
  std::uint64_t packets = 0;
};

/// The classification of docs/protocol.md §3 for the rings of one worker: connection table, message
/// histories, epochs. Times are milliseconds of any one clock.
class Classifier {
 public:
  struct Settings {
    std::uint32_t session = 1;       // this switch's own number, not 0
    std::uint32_t plain_entries = 0; // room for queue pairs that are not the rings'
    std::uint64_t aging = 600'000;   // milliseconds
  };

  /// `rings` lists the indices in the directory that this worker owns; the directory outlives the
  /// classifier.
  Classifier(const RingDirectory& directory, const std::vector<std::uint16_t>& rings,
             const Settings& settings);

  /// For frames whose `pair` is not 0 and that parse took for message or malformed. Verifies the
  /// ICRC of a FIRST or ONLY; a contribution's other packets may come unverified.
  Verdict classify(wire::Frame& frame, std::uint64_t now);

  /// Gives the ring's connections up as dead; only a newer epoch is admitted from then on.
  void reset(std::uint16_t ring);

  std::optional<std::uint32_t> epoch_of(std::uint16_t ring) const;
  MemberStatus status_of(std::uint16_t ring, std::uint16_t rank) const;

  const ConnectionTable& connections() const { return connections_; }

 private:
  struct RingState {
    std::optional<std::uint32_t> epoch;
    bool closed = false;                   // reset: this epoch is over
    std::vector<MessageRecord> records;    // H histories of 2N
    std::vector<MessageHistory> histories; // by rank
    std::vector<Connection*> members;      // by rank; nullptr: not admitted
  };

  /// A FIRST or ONLY whose INA header belongs to a ring here.
  struct Opening {
    const wire::Frame& frame;
    const wire::InaHeader& ina;
    std::uint16_t ring;
    std::uint16_t rank;
    std::uint32_t packets;
  };

  Verdict start_of_message(wire::Frame& frame, std::uint64_t now);
  Verdict inside_message(const wire::Frame& frame, std::uint64_t now);
  Verdict inside_ring_message(const wire::Frame& frame, const Connection& connection);
  Verdict plain_start(const wire::Frame& frame, std::uint64_t now);
  std::optional<ForeignReason> why_foreign(const wire::Frame& frame, const wire::InaHeader& ina,
                                           std::uint16_t& ring) const;
  std::optional<DropReason> why_unacceptable(const Opening& opening) const;
  Verdict ring_start(const Opening& opening, std::uint64_t now);
  Verdict hello(const Opening& opening, std::uint64_t now);
  Verdict data_start(const Opening& opening, std::uint64_t now);
  Verdict enter_history(const Opening& opening);
  bool is_admitted(const Connection* connection, const Opening& opening) const;
  void admit(Connection& connection, const Opening& opening);
  void disconnect(RingState& state);

  const RingDirectory& directory_;
  std::uint32_t session_;
  ConnectionTable connections_;
  std::vector<std::optional<RingState>> rings_; // by directory index; set for this worker's
};

} // namespace weir::conn
