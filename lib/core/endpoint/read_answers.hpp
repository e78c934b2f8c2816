// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/config.hpp"
#include "endpoint/fixed_queue.hpp"
#include "endpoint/packet_writer.hpp"
#include "endpoint/read_packets.hpp"

#include <cstdint>
#include <optional>

namespace weir::endpoint {

/// A response that is due, and where its payload lies.
struct ReadPiece {
  ReadResponseHeader header;
  std::uint32_t remote_key = 0;
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
};

/// The last max_dest_rd_atomic READs of the peer, and which responses are due. They leave in PSN
/// order. A repeat is answered by reading again (IBTA C9-105 and what follows it): from its PSN on,
/// the rest or a part of it.
class ReadAnswers {
 public:
  explicit ReadAnswers(const QueuePairConfig& config);

  /// Whether the peer may have one more READ unanswered.
  bool has_room() const;
  /// A new READ. `message_sequence` counts it.
  void accept(const ReadRequest& request, std::uint32_t message_sequence);
  /// A READ below the expected PSN. False: it is not one of those, nor a part of one.
  bool repeat(const ReadRequest& request);

  std::optional<ReadPiece> next() const;
  /// The response of next() has been sent.
  void sent();
  /// No response is due any more.
  void clear();

 private:
  /// Packets count from the READ's first.
  struct Read {
    ReadRequest request;
    std::uint32_t message_sequence = 0;
    std::uint32_t packets = 0;
    std::uint32_t answered = 0; // as far as it was ever answered
    std::uint32_t from = 0;     // of the answer that is due: its first packet,
    std::uint32_t next = 0;     // the next one to send,
    std::uint32_t end = 0;      // behind its last,
    std::uint32_t bytes = 0;    // and the end of its bytes, counted from the READ's first
    std::uint32_t least = 0;    // soft_roce: repeats of what is before it are dropped

    bool is_due() const { return next != end; }
  };

  /// The number of the newest READ with this PSN, or reads_.end(). Long ones may go round all PSNs.
  std::uint64_t find(std::uint32_t psn) const;
  wire::Opcode opcode_of(const Read& read) const;
  void answer(std::uint64_t number, std::uint32_t from, std::uint32_t bytes);
  void skip_answered();

  bool is_soft_roce() const { return config_.stack == Stack::soft_roce; }

  const QueuePairConfig& config_;
  FixedQueue<Read> reads_;
  std::uint64_t due_ = 0; // the number of the oldest with a response due, or reads_.end()
};

} // namespace weir::endpoint
