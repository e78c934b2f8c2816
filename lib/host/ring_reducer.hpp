// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "agg/kernel.hpp"
#include "host/reducer.hpp"
#include "wire/big_endian.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::host {

/// First bytes of a message that hosts send each other when nobody aggregates. As long as an INA
/// header, and never taken for one.
struct RingHeader {
  wire::be32 magic;
  wire::be32 ring_id;
  wire::be32 epoch;
  wire::be16 origin; // the rank whose data this is
  wire::be16 hop;    // how many ranks have passed it on
  wire::be64 block;  // of the job, over all tensors
  wire::be32 bytes;
  std::array<std::uint8_t, 12> reserved;
};

static_assert(sizeof(RingHeader) == kInaHeaderBytes);
inline constexpr std::uint32_t kRingMagic = 0x57524e47; // "WRNG"

struct RingConfig {
  std::uint32_t ring = 0;
  std::uint16_t rank = 0;
  std::uint16_t world = 2;
  std::uint32_t epoch = 0;
  std::uint32_t slots = 2;         // of the transport's inboxes, at least 2(H-1)
  std::size_t block_bytes = 8;     // tensor bytes of a full message, a multiple of 8
  std::uint64_t first_message = 1; // the next one's number on the connection
};

/// All-reduce without a switch, to the switch's very bits: every rank's block goes once around the
/// ring, and each rank folds all of them in rank order. That costs (H-1) times the tensor on every
/// link; a reduce-scatter would cost less but fold every block in another order, which floating
/// point notices, and round f16, bf16 and f8 at every step.
///
/// Flow control is docs/protocol.md §4's lemma: with W blocks under way, a rank that starts block b
/// has finished b-W, so its successor had started b-W, so that one had finished b-2W. Hence 2W
/// blocks of staging and 2W(H-1) inbox slots are enough.
class RingReducer : public Reducer {
 public:
  explicit RingReducer(const RingConfig& config);

  void begin(const Slice& slice) override;
  std::optional<OutgoingMessage> next() override;
  void accept(std::uint32_t immediate, std::span<const std::uint8_t> message) override;
  void complete() override;

  std::size_t bytes_done() const override { return bytes_done_; }

  bool is_idle() const override { return finished_ == end_; }

  std::string describe() const override;

 private:
  struct Contribution {
    std::uint64_t block = 0;
    std::uint16_t origin = 0;
    std::uint16_t hop = 0;
  };

  enum class Stage : std::uint8_t {
    waiting, // ours is not in: others' are kept, not passed on
    started,
    folded, // the result is out; messages may still be unacknowledged
  };

  /// One block while it is under way.
  struct Block {
    Stage stage = Stage::waiting;
    std::vector<std::uint8_t> data;    // every rank's, in rank order
    std::vector<std::uint32_t> bytes;  // by rank
    std::vector<Contribution> arrived; // in order of arrival
    std::uint32_t acknowledged = 0;    // of H-1 messages
  };

  Block& block(std::uint64_t number) { return blocks_[number % blocks_.size()]; }

  std::span<std::uint8_t> data_of(Block& block, std::uint16_t origin) {
    return std::span(block.data).subspan(origin * config_.block_bytes, config_.block_bytes);
  }

  std::size_t offset_of(std::uint64_t number) const {
    return static_cast<std::size_t>(number - first_) * config_.block_bytes;
  }

  std::size_t bytes_of_block(std::uint64_t number) const;
  void start_block();
  void pass_on(const Contribution& contribution);
  OutgoingMessage write(const Contribution& contribution);
  void check(const RingHeader& header, std::uint32_t immediate, std::size_t message_bytes) const;
  void fold_if_whole(std::uint64_t number);
  void retire();

  const RingConfig config_;
  std::vector<Block> blocks_;           // 2W, by number mod 2W
  std::vector<RingHeader> headers_;     // by message number mod slots
  std::deque<Contribution> ready_;      // to be sent
  std::deque<std::uint64_t> under_way_; // the block of each message that is not acknowledged
  Slice slice_;
  std::size_t bytes_done_ = 0;
  agg::ReduceKernel reduce_ = nullptr;
  std::uint64_t first_ = 0;    // the tensor's first block
  std::uint64_t end_ = 0;      // past its last
  std::uint64_t next_ = 0;     // to be started
  std::uint64_t finished_ = 0; // folded and acknowledged, and so is every earlier one
  std::uint64_t next_message_;
  std::uint64_t next_arrival_;
};

} // namespace weir::host
