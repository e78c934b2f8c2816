// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/collective/ring_blocks.hpp"
#include "host/collective/slice.hpp"
#include "host/transport/transport.hpp"
#include "op/kernel.hpp"
#include "wire/big_endian.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::host {

/// The content of a message between hosts.
enum class RingContent : std::uint16_t {
  partial = 0, // the fold so far
  result = 1,
};

/// The first bytes of a message between hosts when nobody aggregates. As long as an INA header,
/// with another magic.
struct RingHeader {
  wire::be32 magic;
  wire::be32 ring_id;
  wire::be32 epoch;
  wire::be16 content; // RingContent
  CallBody call;      // the sender's
  wire::be64 block;   // of the job, over all tensors
  wire::be32 bytes;
};

static_assert(sizeof(RingHeader) == kInaHeaderBytes);
inline constexpr std::uint32_t kRingMagic = 0x57524e47; // "WRNG"

struct RingReducerConfig {
  std::uint32_t ring = 0;
  std::uint16_t rank = 0;
  std::uint16_t world = 2;
  std::uint32_t epoch = 0;
  std::uint32_t slots = 4;    // of the transport's inboxes, at least 4
  std::size_t data_bytes = 8; // capacity of a message without its header; a multiple of 8
};

/// One all-reduce after the other, without a switch, with bit for bit the switch's result. A
/// block's fold starts at one rank with that rank's data. It goes round the ring; each rank adds
/// its own data, until the last rank has the result. The result goes on round the ring to all other
/// ranks. So each block crosses 2(H-1) links. For a tensor of S bytes and H ranks:
///
/// | schedule        | starts at               | busiest link carries                            |
/// |-----------------|-------------------------|-------------------------------------------------|
/// | reduce_scatter  | rank b mod H            | 2(H-1)/H S, the least of any all-reduce         |
/// | chain           | rank 0                  | S for H = 2, else 2 S; the mean is 2(H-1)/H S   |
/// | chain, narrow Σ | rank 0, partials in f32 | (w+1) S (w S for H = 2), w = 4 / element bytes  |
///
/// reduce_scatter is the ring of Patarasuk and Yuan (Bandwidth optimal all-reduce algorithms for
/// clusters of workstations, JPDC 69, 2009): reduce-scatter, then all-gather. Here a rank has every
/// H-th block and not one H-th of the tensor, so that both halves overlap. Its order of folding
/// differs from block to block. Integers give the same result in any order. Floats do not for sums,
/// for products, and where two zeros are compared (docs/protocol.md §2); they use the chain. Sums
/// and products of f16, bf16 and f8 are rounded once at the end, so partials are f32.
///
/// Flow control is the lemma of docs/protocol.md §4. With W blocks under way, a rank adds its data
/// to block b only when it has finished block b-W and all before. So a rank that has a result of b
/// knows that all ranks have finished b-W. A rank that sends for block b has the result of b-W, so
/// its successor has finished b-2W. Each block has two messages and fewer than 2W blocks are in
/// use: 4W inbox slots and 2W blocks of staging are enough. That holds from one tensor to the next,
/// so a rank needs not know whether its neighbours have begun. A message tells its sender's call:
/// data of different calls never meet.
class RingReducer {
 public:
  explicit RingReducer(const RingReducerConfig& config);

  /// Only when idle. Throws Error, as accept does: a message of the tensor may be here already.
  void begin(const Slice& slice);
  std::optional<OutgoingMessage> next();
  void accept(const IncomingMessage& message);
  void complete();

  std::size_t bytes_done() const { return bytes_done_; }

  bool is_idle() const { return finished_ == end_; }

  std::string describe() const;

 private:
  enum class Stage : std::uint8_t {
    waiting, // nothing came, or it is not our turn
    held,    // the partial is here, without our data
    joined,
    done, // the result is here; messages may be unacknowledged
  };

  /// One block under way.
  struct Block {
    Stage stage = Stage::waiting;
    std::uint32_t unacknowledged = 0;  // messages, those not sent yet included
    CallBody call{};                   // of the partial as it came
    std::vector<std::uint8_t> partial; // as it came, then with our data
  };

  struct Departure {
    std::uint64_t block = 0;
    RingContent content = RingContent::partial;
  };

  Block& block(std::uint64_t number) { return blocks_[number % blocks_.size()]; }

  std::uint64_t window() const { return blocks_.size() / 2; }

  RingBlocks::Piece piece(std::uint64_t number) const { return plan_.piece(number - first_); }

  /// Hops from the rank where the block's fold starts to ours.
  std::uint16_t place(std::uint64_t number) const;

  bool is_last(std::uint64_t number) const { return place(number) + 1u == config_.world; }

  void join_if_due(std::uint64_t number);
  void start_fold(std::uint64_t number);
  void fold_ours(std::uint64_t number);
  std::span<const std::uint8_t> ours(std::uint64_t number);
  void put_result(std::uint64_t number, std::span<const std::uint8_t> result);
  void take_partial(const RingHeader& header, std::span<const std::uint8_t> data);
  void take_result(const RingHeader& header, std::span<const std::uint8_t> data);
  void send(std::uint64_t number, RingContent content);
  void add_data(OutgoingMessage& message, const Departure& departure);
  OutgoingMessage write(const Departure& departure);
  void check(const RingHeader& header, std::uint32_t immediate, std::size_t message_bytes) const;
  void check_call(const CallBody& theirs) const;
  std::uint16_t predecessor() const;
  void expect_due(std::string_view field, std::uint64_t have, std::uint64_t want) const;
  void retire();

  const RingReducerConfig config_;
  std::vector<Block> blocks_;           // 2W, by number mod 2W
  std::vector<RingHeader> headers_;     // by message number mod slots
  std::deque<Departure> ready_;         // to send
  std::deque<std::uint64_t> under_way_; // the block of each unacknowledged message
  std::vector<std::uint8_t> widened_;   // our share of a block in f32
  std::vector<std::uint8_t> folded_;
  Slice slice_;
  RingBlocks plan_;
  std::size_t bytes_done_ = 0;
  op::ReduceKernel reduce_ = nullptr; // of partials
  op::Conversions conversions_;       // none: partials are of the tensor's type
  std::uint64_t first_ = 0;           // the tensor's first block
  std::uint64_t end_ = 0;             // end of the tensor's blocks
  // Blocks before this one have their result and all acknowledgements.
  std::uint64_t finished_ = 0;
  std::uint64_t next_message_ = 0;
  std::uint64_t next_arrival_ = 0;
};

} // namespace weir::host
