// SPDX-License-Identifier: BSD-3-Clause
#include "netsim/fold_servers.hpp"

#include "netsim/event_queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <deque>
#include <random>
#include <vector>

namespace weir::netsim {
namespace {

struct Arrival {
  std::uint64_t block = 0;
  std::uint32_t child = 0;
};

/// A block of which some packets have come.
struct Block {
  Time first_arrival = kNever;
  std::uint32_t taken = 0; // packets that servers have begun
  std::uint32_t done = 0;
  std::vector<Time> free_from;         // by buffer in use; not for tree
  std::vector<std::vector<char>> sums; // tree: by level and place, which sums are complete
};

class ServerRun {
 public:
  explicit ServerRun(const FoldServers& settings)
      : settings_(settings), random_(settings.seed),
        groups_(settings.servers / settings.servers_a_block), blocks_(settings.blocks) {
    for (Group& group : groups_) {
      group.idle = settings.servers_a_block;
    }
  }

  FoldServersResult run() {
    result_.packets = settings_.blocks * settings_.children;
    events_.push(0, {Step::Kind::arrival});
    while (!events_.empty()) {
      const auto entry = events_.pop();
      now_ = entry.time;
      dispatch(entry.event);
    }
    result_.duration = now_;
    result_.mean_block_latency = latency_ / settings_.blocks;
    return result_;
  }

 private:
  struct Group {
    std::uint32_t idle = 0;
    std::deque<Arrival> waiting;
  };

  struct Step {
    enum class Kind : std::uint8_t { arrival, sum_there };

    Kind kind{};
    Arrival packet;
    std::uint32_t level = 0; // tree: of the present sum
    std::uint32_t place = 0;
  };

  Group& group_of(std::uint64_t block) { return groups_[block % groups_.size()]; }

  void dispatch(const Step& step) {
    if (step.kind == Step::Kind::arrival) {
      arrive();
    } else if (settings_.design == FoldServers::Buffers::tree) {
      climb(step);
    } else {
      finish(step.packet.block);
    }
  }

  /// The ports bring a packet in turn.
  Arrival next_packet() const {
    const auto child = static_cast<std::uint32_t>(arrived_ % settings_.children);
    const std::uint64_t turn = arrived_ / settings_.children;
    const std::uint64_t ahead = settings_.sending == FoldServers::Sending::staggered
                                    ? child * settings_.blocks / settings_.children
                                    : 0;
    return {(turn + ahead) % settings_.blocks, child};
  }

  void arrive() {
    const Arrival packet = next_packet();
    if (++arrived_ != result_.packets) {
      events_.push(now_ + interval(), {Step::Kind::arrival});
    }
    result_.largest_queue = std::max(result_.largest_queue, ++present_);
    Block& block = blocks_[packet.block];
    block.first_arrival = std::min(block.first_arrival, now_);
    Group& group = group_of(packet.block);
    if (group.idle == 0) {
      group.waiting.push_back(packet);
    } else {
      --group.idle;
      serve(packet);
    }
  }

  /// Von Neumann's method for exponential numbers only compares uniform ones (NBS Applied
  /// Mathematics Series 12, 1951). So every machine draws the same numbers.
  Time interval() {
    if (settings_.arrivals == FoldServers::Arrivals::regular) {
      return settings_.spacing;
    }
    for (Time whole = 0;; whole += settings_.spacing) {
      const std::uint64_t first = random_() >> 32;
      std::uint64_t previous = first;
      bool is_odd = true;
      for (std::uint64_t next = random_() >> 32; next < previous; next = random_() >> 32) {
        previous = next;
        is_odd = !is_odd;
      }
      if (is_odd) {
        return whole + (first * settings_.spacing >> 32);
      }
    }
  }

  void serve(const Arrival& packet) {
    Block& block = blocks_[packet.block];
    if (settings_.design == FoldServers::Buffers::tree) {
      take_buffer();
      if (block.sums.empty()) {
        open_tree(block);
      }
      events_.push(now_ + settings_.copy_time, {Step::Kind::sum_there, packet, 0, packet.child});
      return;
    }
    Time& buffer = buffer_of(block);
    buffer = std::max(buffer, now_) + settings_.fold_time;
    Time end = buffer;
    if (++block.taken == settings_.children) { // it adds up the buffers
      end = *std::max_element(block.free_from.begin(), block.free_from.end()) +
            (block.free_from.size() - 1) * settings_.fold_time;
    }
    events_.push(end, {Step::Kind::sum_there, packet});
  }

  /// An unused buffer, a new one, or the one that is free first; then the server waits for it.
  Time& buffer_of(Block& block) {
    const auto first = std::min_element(block.free_from.begin(), block.free_from.end());
    const std::uint32_t most =
        settings_.design == FoldServers::Buffers::multiple ? settings_.buffers : 1;
    const bool is_free = first != block.free_from.end() && *first <= now_;
    if (is_free || block.free_from.size() == most) {
      return *first;
    }
    take_buffer();
    return block.free_from.emplace_back(0);
  }

  void take_buffer() { result_.most_buffers = std::max(result_.most_buffers, ++buffers_); }

  void finish(std::uint64_t number) {
    Block& block = blocks_[number];
    if (++block.done == settings_.children) {
      assert(buffers_ >= block.free_from.size());
      buffers_ -= block.free_from.size();
      close(block);
    }
    free_server(number);
  }

  void open_tree(Block& block) const {
    for (std::size_t width = settings_.children;; width = (width + 1) / 2) {
      block.sums.emplace_back(width);
      if (width == 1) {
        return;
      }
    }
  }

  /// A sum is complete. If its neighbour is too, the server adds them; else it is free.
  void climb(const Step& step) {
    Block& block = blocks_[step.packet.block];
    std::uint32_t level = step.level;
    std::uint32_t place = step.place;
    block.sums[level][place] = 1;
    while (block.sums[level].size() != 1 && (place ^ 1U) >= block.sums[level].size()) {
      ++level; // it has no neighbour on this level
      place /= 2;
      block.sums[level][place] = 1;
    }
    if (block.sums[level].size() == 1) {
      assert(buffers_ != 0);
      --buffers_;
      close(block);
    } else if (block.sums[level][place ^ 1U] != 0) {
      assert(buffers_ != 0);
      --buffers_;
      events_.push(now_ + settings_.fold_time,
                   {Step::Kind::sum_there, step.packet, level + 1, place / 2});
      return;
    }
    free_server(step.packet.block);
  }

  void close(Block& block) {
    latency_ += now_ - block.first_arrival;
    block.free_from = {};
    block.sums = {};
  }

  void free_server(std::uint64_t block) {
    assert(present_ != 0);
    --present_;
    Group& group = group_of(block);
    if (group.waiting.empty()) {
      ++group.idle;
      return;
    }
    const Arrival next = group.waiting.front();
    group.waiting.pop_front();
    serve(next);
  }

  const FoldServers settings_;
  std::mt19937_64 random_; // the standard fixes its numbers
  std::vector<Group> groups_;
  std::vector<Block> blocks_;
  EventQueue<Step> events_;
  Time now_ = 0;
  std::uint64_t arrived_ = 0;
  std::uint64_t present_ = 0;
  std::uint64_t buffers_ = 0;
  Time latency_ = 0;
  FoldServersResult result_;
};

void require_sensible(const FoldServers& settings) {
  if (settings.servers_a_block == 0 || settings.servers < settings.servers_a_block ||
      settings.servers % settings.servers_a_block != 0) {
    throw SimulationError(
        fmt::format("found {} servers, {} a block; the first is a multiple of the "
                    "second",
                    settings.servers, settings.servers_a_block));
  }
  if (settings.children == 0 || settings.blocks == 0 || settings.buffers == 0) {
    throw SimulationError("a reduction has children, blocks and buffers");
  }
  if (settings.fold_time == 0 || settings.spacing == 0 || settings.spacing >> 32 != 0) {
    throw SimulationError(
        "folding and the spacing of packets take some time, the latter under 4 ms");
  }
}

} // namespace

FoldServersResult run_fold_servers(const FoldServers& settings) {
  require_sensible(settings);
  return ServerRun(settings).run();
}

} // namespace weir::netsim
