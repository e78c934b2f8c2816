// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/classifier.hpp"
#include "packet.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace weir::fabric {

/// What receivers have acknowledged, seen at their own ends: every answer counts when its host
/// sends it, even if it is lost on the way. The switch may say no more in their names (I9), and
/// must answer itself the NAKs that its cache can answer (I10).
class AnswerWatch {
 public:
  struct Requester {
    std::uint16_t ring = 0;
    std::uint16_t rank = 0;
    std::uint32_t generation = 0;
    std::uint16_t host = 0;
    std::uint32_t qp = 0;
    std::uint32_t first_psn = 0;
    std::uint64_t patience_ms = 0; // of the ring
  };

  /// A rank's queue pair to its successor begins.
  void expect(const Requester& requester);

  /// The switch has lost the ring's state, or its connections have ended.
  void forget(std::uint16_t ring);

  /// A host sends an acknowledgement.
  void sends(const Packet& answer);

  /// A result of the rank leaves the switch.
  void result_leaves(const Packet& result);

  /// An answer of the switch's own leaves. Throws Violation I9.
  void made(const Packet& answer) const;

  /// A host's answer passes the switch. Throws Violation I10, except where the switch may not
  /// speak: two hellos claim one queue pair, or its patience may be over.
  void passes(const Packet& answer, const conn::Classifier& classifier) const;

  /// Whether the frame is an ACK or NAK.
  static bool is_answer(const Packet& packet);

 private:
  struct Record {
    Requester requester;
    std::uint32_t acknowledged = 0; // all PSNs below it
    std::uint32_t released = 0;     // likewise: their results have left
    bool is_known = false;          // the switch has admitted it, and has not forgotten it since
    bool is_reused = false; // the queue pair number belonged to an earlier run: docs/protocol.md §9
  };

  struct Answer {
    std::uint16_t host = 0; // destination
    std::uint32_t qp = 0;   //
    std::uint32_t psn = 0;
    std::uint8_t syndrome = 0;

    /// The PSN below which it acknowledges all.
    std::uint32_t acknowledges() const;
  };

  static std::optional<Answer> read(const Packet& packet);
  const Record* record_of(const Answer& answer) const;

  std::map<std::pair<std::uint16_t, std::uint16_t>, Record> records_; // by ring and rank
};

} // namespace weir::fabric
