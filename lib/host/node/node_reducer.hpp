// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/collective/reducer.hpp"
#include "host/node/node_map.hpp"
#include "host/node/node_memory.hpp"
#include "host/node/portion_queue.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::host {

/// A rank among those that share a NIC. Ranks bring what others need of their input to the memory
/// that they share, fold it there in the order of the ranks, each a share of it, and take the
/// result. Between the fold and the result the leader exchanges the node's sum with the other
/// nodes' by another reducer, which sees a ring of nodes. So a sum is the fold over the nodes, in
/// the order of their leaders, of the folds over their ranks.
///
/// Portion n of a channel goes, in every rank, through these steps. A step of a rank comes after
/// its own step before it, and after the same step of portion n-1:
///
/// | step     | waits for                           | what becomes of what               |
/// |----------|-------------------------------------|------------------------------------|
/// | bring    | our take of n-S                     | input, but for our share: our area |
/// | fold     | if we have a share: everybody's n   | our share of the sum               |
/// | exchange | everybody's n, and all shares of it | the leader makes the sum the total |
/// | take     | the exchange; of one node: all that | the total: the caller's result     |
///
/// With S slots no area is written that somebody still reads: who folds n knows that all have
/// brought n, so that all have taken n-S; and who brings n has taken n-S, so that all have folded
/// it. In a broadcast the root's share is everything, and in a barrier nobody has one. Ranks that
/// call different things never fold (docs/host.md).
class NodeReducer : public Reducer {
 public:
  /// `between`: of a leader where there are other nodes, else null. Calls begin after join().
  NodeReducer(const NodeMap& nodes, std::uint16_t rank, std::unique_ptr<Reducer> between);

  /// `memory` outlives this object. `channel` is the one there.
  void join(NodeMemory& memory, std::size_t channel);

  void begin(const Slice& slice) override;

  bool has_begun(std::uint64_t number) const override {
    return number < queue_.finished() || queue_.begin_of(number) < brought_;
  }

  void replace(std::uint64_t number, const Slice& slice) override { queue_.replace(number, slice); }

  std::optional<OutgoingMessage> next() override;
  Arrival accept(const IncomingMessage& message) override;
  void complete() override;

  std::uint64_t finished() const override { return queue_.finished(); }

  std::size_t bytes_done() const override { return queue_.bytes_before(taken_); }

  bool is_idle() const override;
  std::string describe() const override;

 private:
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;

    bool is_empty() const { return begin == end; }
  };

  std::uint16_t ranks() const { return static_cast<std::uint16_t>(ranks_.size()); }

  bool is_brought(std::uint64_t number) const;
  bool all_mean(const Portion& portion, std::uint64_t number) const;
  bool lacks_share(const Portion& portion, std::uint64_t number, std::uint16_t place) const;
  bool is_folded(const Portion& portion, std::uint64_t number) const;
  bool is_whole(const Portion& portion, std::uint64_t number) const;
  Range share_of(const Portion& portion, std::uint16_t place) const;
  void go_on();
  void bring();
  void fold();
  void exchange();
  void take();
  void note_exchanged();
  void finish();
  std::uint8_t* own_area(std::uint64_t number) const;
  static void copy_input(const Portion& portion, const Range& range, std::uint8_t* area);
  const std::uint8_t* input_of(const Portion& portion, std::uint64_t number, const Range& share,
                               std::uint16_t place) const;
  void fold_share(const Portion& portion, std::uint64_t number, const Range& share) const;
  std::span<std::uint8_t> own_place(const Portion& portion, const Range& share) const;
  void store(const Portion& portion, std::uint64_t number, const Range& range) const;
  Slice slice_between(const Portion& portion, std::uint64_t number) const;
  template <typename Body>
  auto with_ranks(Body&& body) const;

  const NodeMap nodes_;
  const std::uint16_t rank_;
  const std::uint16_t node_;
  const std::vector<std::uint16_t>& ranks_; // of the node
  const std::uint16_t place_;
  std::unique_ptr<Reducer> between_;
  NodeMemory* memory_ = nullptr;
  std::size_t channel_ = 0;
  std::vector<NodeMemory::Counters*> counters_; // by place
  PortionQueue queue_{1};
  std::uint64_t brought_ = 0; // portions
  std::uint64_t folded_ = 0;
  std::uint64_t begun_ = 0; // between nodes
  std::uint64_t taken_ = 0;
  bool has_news_ = false; // for the others
  bool has_moved_ = false;
};

} // namespace weir::host
