// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/transport/message.hpp"
#include "wire/headers.hpp"
#include "wire/operator_table.hpp"

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::host {

struct WindowConfig {
  std::uint32_t ring = 0;
  std::uint16_t rank = 0;
  std::uint16_t world = 2;
  std::uint32_t window = 1; // N
  std::uint32_t message_bytes = 0;
  std::uint32_t epoch = 0;
  std::uint32_t nonce = 1;       // of this run of the job: random, not 0, equal on all ranks
  std::uint32_t qp = 0;          // our queue pair for acknowledgements; 0: not given
  std::uint8_t ack_timeout = 0;  // its local ACK timeout, 4.096 us x 2^x (IBTA §9.9); 0: not given
  wire::OperatorTable operators; // that the hello names; empty: the run has none

  /// Tensor bytes of a full message. A multiple of 8, so that no element lies in two messages.
  std::size_t data_bytes() const { return (message_bytes - kInaHeaderBytes) / 8 * 8; }

  std::uint16_t predecessor() const {
    return static_cast<std::uint16_t>((rank + world - 1u) % world);
  }
};

/// One ring's share of docs/protocol.md §7: which message may be sent, its header, and whether an
/// arrived message is its result. No I/O, no clock, no tensor.
///
/// Messages are numbered in 64 bits; the hello is 0. Headers carry the low 32.
class MessageWindow {
 public:
  enum class State : std::uint8_t {
    greeting, // the hello has no answer yet
    idle,
    working, // calls are on their way
  };

  /// The answer to the hello.
  enum class Answer : std::uint8_t {
    none,
    aggregated, // by the switch, which sent its session
    plain,      // the predecessor's own hello came unchanged: nobody aggregates
  };

  /// What the messages of one call are for: segments of equal length, each cut into messages of its
  /// own. Segment k of several is a broadcast by rank k.
  struct Work {
    Collective collective = Collective::all_reduce;
    DataType type = DataType::f32;
    Operation operation = Operation::sum; // 0 in a broadcast and a barrier
    std::uint16_t root = 0;               // of the first segment of a broadcast; 0 otherwise
    std::uint16_t root_step = 0;          // from one segment's to the next's
    std::uint16_t segments = 1;
    std::size_t segment_bytes = 0;
  };

  /// The part of a segment that a message carries, or that a result is for.
  struct Piece {
    std::uint64_t work = 0; // 0, 1, 2, … in the order of begin()
    std::uint16_t segment = 0;
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };

  struct Outgoing {
    std::uint64_t number = 0;
    std::span<const std::uint8_t> header; // valid until the message is completed
    Piece piece;
    std::span<const std::uint8_t> table; // of a hello: its data
  };

  explicit MessageWindow(const WindowConfig& config);

  /// Appends the messages of a call; not while greeting. Empty segments have none, a barrier has
  /// one. They follow those of the calls before without a gap.
  void begin(const Work& work);

  /// The next message that may be sent now: first the hello, then message m once the result of m-N
  /// is here.
  std::optional<Outgoing> next();

  /// Checks an arrived message and returns the place for its data. Throws Error:
  /// not_aggregated when data comes without RESULT (for a hello the answer becomes `plain`
  /// instead); mismatch or transport_failure when it is not the result that is due. RC keeps
  /// results in the order of sending. While greeting, messages of another run's hello are ignored:
  /// a late result of a dead run would bring a wrong session.
  Piece accept(const IncomingMessage& message);

  /// The oldest message under way has been acknowledged.
  void complete();

  State state() const;

  /// Whether a message of the work has gone out.
  bool has_begun(std::uint64_t work) const { return work < finished_ || entry(work).first < next_; }

  /// Works of which all results are here and all messages acknowledged, since the beginning. They
  /// finish in their order.
  std::uint64_t finished() const { return finished_; }

  Answer answer() const { return answer_; }

  /// What it means that nobody aggregates, for an error's text.
  std::string explain_plain() const;
  /// Where to look when no answer has come: the switch can give none.
  std::string explain_silence() const;

  /// The switch's session; valid after greeting.
  std::uint32_t session() const { return session_; }

  /// The operators that all switches on the way have, by place in the table; valid after greeting.
  std::bitset<kMostOperators> operators() const { return operators_; }

  std::uint64_t sent() const { return next_; }

  std::uint64_t arrived() const { return arrived_; }

  std::uint64_t completed() const { return completed_; }

  /// What this window waits for, for an error's text.
  std::string describe() const;

 private:
  std::size_t slot_of(std::uint64_t number) const {
    return static_cast<std::size_t>(number % headers_.size());
  }

  /// A work and its messages' numbers.
  struct Entry {
    Work work;
    std::uint64_t messages_per_segment = 1;
    std::uint64_t first = 0;
    std::uint64_t end = 0;
  };

  Piece take_plain_hello();
  void skip_to(std::uint64_t number, std::uint64_t& work) const;

  const Entry& entry(std::uint64_t work) const { return entries_[work - finished_]; }

  Piece piece_of(std::uint64_t number, std::uint64_t work) const;
  void write_hello();
  void write_header(std::uint64_t number, const Piece& piece);
  wire::InaHeader common_header(std::uint64_t number) const;
  void take_table(std::span<const std::uint8_t> bytes);
  void check_result(const wire::InaHeader& found, std::uint64_t number) const;
  void settle();

  const WindowConfig config_;
  std::vector<wire::InaHeader> headers_; // of the last 2N messages sent, by number mod 2N
  bool is_greeting_ = true;
  Answer answer_ = Answer::none;
  std::deque<Entry> entries_;       // of the works that are not finished
  std::uint64_t finished_ = 0;      // works
  std::uint64_t sending_ = 0;       // the work of message next_
  std::uint64_t receiving_ = 0;     // the work of result arrived_
  std::uint64_t others_hellos_ = 0; // number ignored
  std::uint64_t end_ = 1;           // end of all messages so far
  std::uint64_t next_ = 0;          // next to send
  std::uint64_t arrived_ = 0;       // results so far
  std::uint64_t completed_ = 0;     // acknowledged so far
  std::uint32_t session_ = 0;
  std::bitset<kMostOperators> operators_;
};

} // namespace weir::host
