// SPDX-License-Identifier: BSD-3-Clause

/// The slot table of docs/protocol.md §4, row by row, and compared with a model under random
/// traffic.

#include "frame/frame.hpp"
#include "slot/slot_table.hpp"
#include "support/frame_builder.hpp"
#include "wire/crc32.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <memory_resource>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace weir::slot::slot_test {
namespace {

using test::Bytes;

constexpr std::uint16_t kMtu = 256;
constexpr std::size_t kPayloadAt = 54;

/// A frame whose payload is `skip` arbitrary bytes and the data.
struct Packet {
  explicit Packet(const Bytes& data, std::size_t skip = 0) : bytes(kPayloadAt + skip, 0xee) {
    bytes.insert(bytes.end(), data.begin(), data.end());
    frame.data = bytes.data();
    frame.length = static_cast<std::uint32_t>(bytes.size());
    frame.packet.payload_offset = kPayloadAt;
    frame.packet.payload_bytes = static_cast<std::uint16_t>(bytes.size() - kPayloadAt);
  }

  Packet(const Packet&) = delete;
  Packet& operator=(const Packet&) = delete;

  Bytes bytes;
  frame::Frame frame;
};

template <typename Element>
Bytes bytes_of(const std::vector<Element>& elements) {
  Bytes bytes(elements.size() * sizeof(Element));
  std::memcpy(bytes.data(), elements.data(), bytes.size());
  return bytes;
}

Bytes concatenated(Bytes first, const Bytes& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// One ring's table and the frames that are in it.
class Table {
 public:
  explicit Table(std::uint16_t world, std::uint32_t messages = 4, std::uint32_t packets = 2)
      : dimensions_{world, messages, packets, kMtu},
        table_(dimensions_, std::pmr::get_default_resource()) {}

  SlotTable* operator->() { return &table_; }

  /// The usual shape and 16 bytes of data; callers may change them.
  Contribution of(std::uint64_t message, std::uint32_t packet, std::uint16_t rank) const {
    const auto slot = static_cast<std::uint32_t>(message % dimensions_.messages *
                                                 dimensions_.packets_per_message) +
                      packet;
    return {.slot = slot,
            .message = message,
            .child = rank,
            .shape = {.data_bytes = 16, .operation = Operation::sum, .data_type = DataType::i32},
            .data_bytes = 16,
            .now = 0};
  }

  /// Gives the table a frame, which lives as long as this object.
  SlotEvent arrive(const Contribution& contribution, const Bytes& data = Bytes(16, 1),
                   std::size_t skip = 0) {
    packets_.push_back(std::make_unique<Packet>(data, skip));
    return table_.arrive(contribution, &packets_.back()->frame);
  }

  frame::Frame* last_frame() { return &packets_.back()->frame; }

  /// All ranks in order. The slot is ready afterwards.
  std::uint32_t make_ready(std::uint64_t message, std::uint32_t packet = 0) {
    for (std::uint16_t rank = 0; rank < table_.children(); ++rank) {
      const SlotEvent event = arrive(of(message, packet, rank));
      EXPECT_EQ(event, rank + 1 == table_.children() ? SlotEvent::completed : SlotEvent::stored);
    }
    const std::uint32_t slot = of(message, packet, 0).slot;
    reduce(slot);
    return slot;
  }

  /// The same, and the result leaves.
  SlotResult fill(std::uint64_t message, std::uint32_t packet = 0) {
    const std::uint32_t slot = make_ready(message, packet);
    table_.release(slot);
    return table_.result_of(slot);
  }

  static op::ReduceKernel sum_i32() {
    return op::find_kernel(DataType::i32, Operation::sum, op::CpuLevel::baseline);
  }

  /// Reduces the frames of a slot that arrive() just called completed, stores the result and lets
  /// it leave.
  SlotResult sum(std::uint32_t slot, std::size_t skip = 0, op::ReduceKernel kernel = sum_i32()) {
    reduce(slot, skip, kernel);
    table_.release(slot);
    return table_.result_of(slot);
  }

 private:
  void reduce(std::uint32_t slot, std::size_t skip = 0, op::ReduceKernel kernel = sum_i32()) {
    const Fold fold{kernel};
    table_.make_ready(slot,
                      fold_frames(table_.frames_of(slot), skip, fold, table_.result_room(slot)));
  }

  SlotTable::Dimensions dimensions_;
  SlotTable table_;
  std::vector<std::unique_ptr<Packet>> packets_;
};

const char* text_of(SlotEvent event) {
  switch (event) {
  case SlotEvent::stored:
    return "stored";
  case SlotEvent::completed:
    return "completed";
  case SlotEvent::total:
    return "total";
  case SlotEvent::total_early:
    return "total_early";
  case SlotEvent::repeat_held:
    return "repeat_held";
  case SlotEvent::repeat_complete:
    return "repeat_complete";
  case SlotEvent::stale:
    return "stale";
  case SlotEvent::window_violation:
    return "window_violation";
  case SlotEvent::disagree_operation:
    return "disagree_operation";
  case SlotEvent::disagree_type:
    return "disagree_type";
  case SlotEvent::disagree_length:
    return "disagree_length";
  case SlotEvent::disagree_collective:
    return "disagree_collective";
  case SlotEvent::disagree_root:
    return "disagree_root";
  case SlotEvent::disagree_payload:
    return "disagree_payload";
  }
  return "?";
}

// ---- The rows of §4. World 2, 2N = 4, L = 2: messages 1, 5, 9 share slot 2. ----

struct Row {
  const char* description;
  const char* slot_before; // empty, filling (message 5, rank 0), ready or complete (message 5)
  std::uint64_t message;
  std::uint16_t rank;
  const char* event;
  std::uint64_t held_after;
  std::uint32_t filling_after;
};

constexpr Row kRows[] = {
    {"empty: reclaim and store", "empty", 5, 0, "stored", 1, 1},
    {"empty: whichever rank comes first", "empty", 9, 1, "stored", 1, 1},
    {"filling, bit clear: the last bit", "filling", 5, 1, "completed", 2, 1},
    {"filling, bit set: a repeat", "filling", 5, 0, "repeat_held", 1, 1},
    {"filling, tag newer", "filling", 1, 0, "stale", 1, 1},
    {"filling, tag newer, the missing rank", "filling", 1, 1, "stale", 1, 1},
    {"filling, tag older: the sender broke its window", "filling", 9, 0, "window_violation", 1, 1},
    {"filling, tag older, the missing rank", "filling", 9, 1, "window_violation", 1, 1},
    {"ready: a repeat", "ready", 5, 0, "repeat_held", 2, 1},
    {"ready, tag newer", "ready", 1, 0, "stale", 2, 1},
    {"ready, tag older: the sender broke its window", "ready", 9, 0, "window_violation", 2, 1},
    {"complete: a repeat", "complete", 5, 0, "repeat_complete", 0, 0},
    {"complete: a repeat of the last rank", "complete", 5, 1, "repeat_complete", 0, 0},
    {"complete, tag newer", "complete", 1, 0, "stale", 0, 0},
    {"complete, tag older: reclaim and store", "complete", 9, 0, "stored", 1, 1},
    {"complete, tag far older", "complete", (std::uint64_t{1} << 32) + 5, 0, "stored", 1, 1},
};

TEST(SlotTable, FollowsTheTableOfThePage) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.description);
    Table table(2);
    if (row.slot_before == std::string("filling")) {
      ASSERT_EQ(table.arrive(table.of(5, 0, 0)), SlotEvent::stored);
    } else if (row.slot_before == std::string("ready")) {
      table.make_ready(5);
    } else if (row.slot_before == std::string("complete")) {
      table.fill(5);
    }
    EXPECT_STREQ(text_of(table.arrive(table.of(row.message, 0, row.rank))), row.event);
    EXPECT_EQ(table->held(), row.held_after);
    EXPECT_EQ(table->filling(), row.filling_after);
  }
}

TEST(SlotTable, ARepeatLeavesTheHeldCopyAlone) {
  Table table(2);
  table.arrive(table.of(1, 0, 0), bytes_of<std::int32_t>({1, 2, 3, 4}));
  const frame::Frame* first = table.last_frame();
  ASSERT_EQ(table.arrive(table.of(1, 0, 0), bytes_of<std::int32_t>({9, 9, 9, 9})),
            SlotEvent::repeat_held);
  ASSERT_EQ(table.arrive(table.of(1, 0, 1), bytes_of<std::int32_t>({10, 20, 30, 40})),
            SlotEvent::completed);
  const auto frames = table->frames_of(table.of(1, 0, 0).slot);
  EXPECT_EQ(frames[0], first);
  EXPECT_EQ(frames[1], table.last_frame());
  const SlotResult result = table.sum(table.of(1, 0, 0).slot);
  EXPECT_EQ(Bytes(result.data.begin(), result.data.end()),
            bytes_of<std::int32_t>({11, 22, 33, 44}));
}

TEST(SlotTable, TheResultStaysUntilReclaimed) {
  Table table(3);
  const auto of = [&](const SlotResult& result) {
    return Bytes(result.data.begin(), result.data.end());
  };
  const Bytes reduced = of(table.fill(1, 1));
  ASSERT_EQ(table.arrive(table.of(1, 1, 2), Bytes(16, 0x77)), SlotEvent::repeat_complete);
  ASSERT_EQ(table.arrive(table.of(1, 0, 2)), SlotEvent::stored) << "another packet's slot";
  EXPECT_EQ(of(table->result_of(table.of(1, 1, 0).slot)), reduced);
  EXPECT_EQ(reduced, Bytes(16, 3));
}

/// What results in order (protocol I7) ask of a slot.
TEST(SlotTable, AReadySlotCountsAsFillingUntilItsFramesLeave) {
  Table table(2);
  const std::uint32_t slot = table.of(5, 0, 0).slot;
  const auto states = [&](std::uint64_t message) {
    return std::string(table->is_filling(slot, message) ? "filling" : "") +
           (table->is_ready(slot, message) ? "ready" : "") +
           (table->is_complete(slot, message) ? "complete" : "");
  };
  EXPECT_EQ(states(5), "");
  table.arrive(table.of(5, 0, 1));
  EXPECT_EQ(states(5), "filling");
  table->flush([](const frame::Frame&) {});
  EXPECT_EQ(states(5), "");
  table.make_ready(5);
  EXPECT_EQ(states(5), "ready");
  EXPECT_EQ(states(1), "") << "another message";
  EXPECT_TRUE(table->waiting().empty()) << "it waits for no packet";
  EXPECT_TRUE(table->holds(0));
  EXPECT_EQ(table->held(), 2u);
  const auto frames = table->release(slot);
  EXPECT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[1], table.last_frame());
  EXPECT_EQ(states(5), "complete");
  EXPECT_FALSE(table->holds(0));
  EXPECT_EQ(table->held(), 0u);
}

/// docs/protocol.md §11.6. Where the switch may not speak for the receiver, nothing else brings a
/// lost partial sum back.
TEST(SlotTable, ARepeatOfTheLastChildGetsThePartialSumAgain) {
  const Table like(2);
  SlotTable table(
      {.children = 2, .messages = 4, .packets_per_message = 2, .mtu = kMtu, .has_parent = true},
      std::pmr::get_default_resource());
  Packet first(Bytes(16, 1));
  Packet last(Bytes(16, 2));
  Packet repeat(Bytes(16, 3));
  const std::uint32_t slot = like.of(1, 0, 0).slot;
  EXPECT_EQ(table.arrive(like.of(1, 0, 0), &first.frame), SlotEvent::stored);
  EXPECT_EQ(table.arrive(like.of(1, 0, 1), &last.frame), SlotEvent::completed);
  EXPECT_EQ(table.arrive(like.of(1, 0, 1), &repeat.frame), SlotEvent::repeat_held);
  table.make_ready(slot, 0);
  EXPECT_EQ(&table.release_partial(slot), &last.frame);
  EXPECT_EQ(table.arrive(like.of(1, 0, 1), &repeat.frame), SlotEvent::repeat_complete);
  EXPECT_EQ(table.arrive(like.of(1, 0, 0), &repeat.frame), SlotEvent::repeat_held)
      << "its total has not come";
}

TEST(SlotTable, AFlushGivesBackWhatIsReady) {
  Table table(2);
  table.make_ready(5);
  std::size_t released = 0;
  table->flush([&](const frame::Frame&) { ++released; });
  EXPECT_EQ(released, 2u);
  EXPECT_FALSE(table->is_ready(table.of(5, 0, 0).slot, 5));
}

TEST(SlotTable, KnowsWhatHasCome) {
  Table table(2);
  const std::uint32_t slot = table.of(5, 0, 0).slot;
  EXPECT_FALSE(table->has_come(slot, 5, 0)) << "empty";
  table.arrive(table.of(5, 0, 0));
  EXPECT_TRUE(table->has(slot, 0));
  EXPECT_FALSE(table->has(slot, 1));
  EXPECT_TRUE(table->has_come(slot, 5, 0));
  EXPECT_FALSE(table->has_come(slot, 5, 1));
  EXPECT_TRUE(table->has_come(slot, 1, 1)) << "a slot is reclaimed only when all have come";
  EXPECT_FALSE(table->has_come(slot, 9, 0)) << "a later message";
  table.fill(1, 1);
  EXPECT_TRUE(table->has_come(table.of(1, 1, 0).slot, 1, 1)) << "complete";
  table->flush([](const frame::Frame&) {});
  EXPECT_FALSE(table->has_come(slot, 5, 0)) << "flushed";
  EXPECT_FALSE(table->has_come(slot, 1, 0));
}

// ---- Disagreement. ----

TEST(SlotTable, NamesWhatDisagrees) {
  struct Disagreement {
    const char* description;
    std::function<void(Contribution&)> change;
    const char* event;
  };

  const std::vector<Disagreement> rows{
      {"operation", [](Contribution& c) { c.shape.operation = Operation::max; },
       "disagree_operation"},
      {"type", [](Contribution& c) { c.shape.data_type = DataType::f32; }, "disagree_type"},
      {"length", [](Contribution& c) { c.shape.data_bytes = 20; }, "disagree_length"},
      {"collective", [](Contribution& c) { c.shape.collective = Collective::hello; },
       "disagree_collective"},
      {"root", [](Contribution& c) { c.shape.root = 1; }, "disagree_root"},
      {"payload size", [](Contribution& c) { c.data_bytes = 12; }, "disagree_payload"},
      {"everything: the first is named",
       [](Contribution& c) {
         c.shape = {20, 1, Operation::max, DataType::f32, Collective::hello};
         c.data_bytes = 20;
       },
       "disagree_operation"},
  };
  for (const Disagreement& row : rows) {
    for (const bool is_complete : {false, true}) {
      // A repeat that disagrees is dropped for the disagreement.
      for (const std::uint16_t rank : {0, 1}) {
        SCOPED_TRACE(std::string(row.description) + (is_complete ? ", complete" : ", filling") +
                     ", rank " + std::to_string(rank));
        Table table(2);
        if (is_complete) {
          table.fill(1);
        } else {
          table.arrive(table.of(1, 0, 0));
        }
        Contribution contribution = table.of(1, 0, rank);
        row.change(contribution);
        EXPECT_STREQ(text_of(table.arrive(contribution)), row.event);
        EXPECT_EQ(table->held(), is_complete ? 0u : 1u);
        contribution = table.of(1, 0, 1); // it was not mixed in
        EXPECT_EQ(table.arrive(contribution),
                  is_complete ? SlotEvent::repeat_complete : SlotEvent::completed);
      }
    }
  }
}

TEST(SlotTable, ANewMessageMayHaveAnotherShape) {
  Table table(2);
  table.fill(1);
  Contribution next = table.of(5, 0, 1);
  next.shape = {7, 3, Operation::max, DataType::u8, Collective::all_reduce};
  next.data_bytes = 7;
  EXPECT_EQ(table.arrive(next, Bytes(7, 9)), SlotEvent::stored);
  next.child = 0;
  EXPECT_EQ(table.arrive(next, Bytes(7, 200)), SlotEvent::completed);
  const SlotResult result = table.sum(
      next.slot, 0, op::find_kernel(DataType::u8, Operation::max, op::CpuLevel::baseline));
  EXPECT_EQ(Bytes(result.data.begin(), result.data.end()), Bytes(7, 200));
}

// ---- Results. ----

TEST(SlotTable, ResultsAreTheFoldInRankOrder) {
  std::mt19937 random(11);
  for (const std::uint16_t world : {2, 3, 64, 65, 128, 255, 256}) {
    for (const std::size_t skip : {0, 40}) {
      SCOPED_TRACE(std::to_string(world) + " ranks, skip " + std::to_string(skip));
      Table table(world, 4, 1);
      const std::size_t elements = (kMtu - skip) / sizeof(float);
      std::vector<std::vector<float>> inputs(world, std::vector<float>(elements));
      for (auto& input : inputs) { // very different magnitudes: another order gives another sum
        for (float& value : input) {
          value = std::ldexp(static_cast<float>(random()) / 4e9f - 0.5f,
                             static_cast<int>(random() % 40));
        }
      }
      std::vector<float> expected = inputs[0];
      for (std::size_t rank = 1; rank < world; ++rank) {
        for (std::size_t i = 0; i < elements; ++i) {
          expected[i] = expected[i] + inputs[rank][i];
        }
      }
      std::vector<std::uint16_t> order(world);
      std::iota(order.begin(), order.end(), std::uint16_t{0});
      std::shuffle(order.begin(), order.end(), random);
      std::size_t arrived = 0;
      for (const std::uint16_t rank : order) {
        Contribution contribution = table.of(2, 0, rank);
        contribution.data_bytes = static_cast<std::uint32_t>(elements * sizeof(float));
        contribution.shape.data_type = DataType::f32;
        contribution.shape.data_bytes = contribution.data_bytes;
        ASSERT_EQ(table.arrive(contribution, bytes_of(inputs[rank]), skip),
                  ++arrived == world ? SlotEvent::completed : SlotEvent::stored);
        ASSERT_EQ(table->held(), arrived);
      }
      const auto slot = table.of(2, 0, 0).slot;
      EXPECT_EQ(table->frames_of(slot).size(), world);
      const SlotResult result = table.sum(
          slot, skip, op::find_kernel(DataType::f32, Operation::sum, op::CpuLevel::baseline));
      const Bytes data(result.data.begin(), result.data.end());
      EXPECT_EQ(data, bytes_of(expected));
      for (const frame::Frame* frame : table->frames_of(slot)) {
        EXPECT_EQ(Bytes(frame->data + kPayloadAt, frame->data + frame->length),
                  concatenated(Bytes(skip, 0xee), data));
      }
      EXPECT_EQ(result.crc, wire::crc32_reference(0, data));
      EXPECT_EQ(table->held(), 0u);
      EXPECT_EQ(table->filling(), 0u);
      const SlotResult cached = table->result_of(slot);
      EXPECT_EQ(cached.data.data(), result.data.data());
      EXPECT_EQ(cached.crc, result.crc);
    }
  }
}

TEST(SlotTable, AMessageOfNoDataNeedsNoKernel) { // a hello
  Table table(2);
  Contribution hello = table.of(0, 0, 0);
  hello.shape = {.collective = Collective::hello};
  hello.data_bytes = 0;
  ASSERT_EQ(table.arrive(hello, {}, 40), SlotEvent::stored);
  hello.child = 1;
  ASSERT_EQ(table.arrive(hello, {}, 40), SlotEvent::completed);
  const SlotResult result = table.sum(hello.slot, 40, nullptr);
  EXPECT_TRUE(result.data.empty());
  EXPECT_EQ(result.crc, 0u);
  EXPECT_EQ(table->held(), 0u);
}

// ---- Flush. ----

TEST(SlotTable, FlushGivesEachHeldFrameBackOnce) {
  for (const std::uint16_t world : {2, 3, 64, 65, 256}) {
    Table table(world);
    std::set<const frame::Frame*> held;
    for (const std::uint64_t message : {0u, 1u, 2u}) {
      for (std::uint16_t rank = 0; rank + 1 < world; ++rank) {
        table.arrive(table.of(message, message % 2, rank));
        held.insert(table.last_frame());
      }
    }
    table.fill(3);
    ASSERT_EQ(table->held(), held.size());
    EXPECT_EQ(table->filling(), 3u);
    std::multiset<const frame::Frame*> released;
    table->flush([&](const frame::Frame& frame) { released.insert(&frame); });
    EXPECT_EQ(released, std::multiset<const frame::Frame*>(held.begin(), held.end()));
    EXPECT_EQ(table->held(), 0u);
    EXPECT_EQ(table->filling(), 0u);
    table->flush([&](const frame::Frame&) { ADD_FAILURE() << "released twice"; });
    // Every slot is empty, whatever its tag was: an older message is stored, not stale.
    EXPECT_EQ(table.arrive(table.of(0, 0, 0)), SlotEvent::stored);
    EXPECT_EQ(table.arrive(table.of(3, 0, 0)), SlotEvent::stored) << "the cached result is void";
  }
}

// ---- What waits longest. ----

TEST(SlotTable, KnowsWhoseFramesFillIt) {
  Table table(2);
  EXPECT_FALSE(table->holds(0));
  table.arrive(table.of(1, 0, 0));
  EXPECT_TRUE(table->holds(0));
  EXPECT_FALSE(table->holds(1));
  table.arrive(table.of(1, 1, 1)); // another packet's slot
  EXPECT_TRUE(table->holds(1));
  table.arrive(table.of(1, 1, 0));
  table.sum(table.of(1, 1, 0).slot);
  EXPECT_FALSE(table->holds(1)) << "complete: the frames have left";
  EXPECT_TRUE(table->holds(0)) << "the first slot still fills";
  table->flush([](const frame::Frame&) {});
  EXPECT_FALSE(table->holds(0));
}

/// A broadcast: signalling NaNs of every payload are bits like any others.
TEST(SlotTable, ACopyOfTheRootsDataKeepsEveryBit) {
  const op::ReduceKernel bits =
      op::find_kernel(DataType::u8, Operation::bitwise_or, op::CpuLevel::baseline);
  const Bytes roots{0x01, 0x00, 0x80, 0x7f, 0xff, 0xff, 0xff, 0xff,
                    0x00, 0x00, 0x00, 0x80, 0x55, 0xaa, 0xa0, 0x7f};
  for (const std::uint16_t root : {0, 1, 2}) {
    Table table(3);
    for (std::uint16_t rank = 0; rank < 3; ++rank) {
      table.arrive(table.of(1, 0, rank), rank == root ? roots : Bytes(16, 0xff));
    }
    const std::uint32_t slot = table.of(1, 0, 0).slot;
    const auto frames = table->frames_of(slot);
    fold_frames(frames, 0, Fold::copy_of(root, bits), table->result_room(slot));
    const auto room = table->result_room(slot);
    EXPECT_EQ(Bytes(room.begin(), room.end()), roots) << root;
    for (const frame::Frame* frame : frames) {
      EXPECT_TRUE(std::equal(roots.begin(), roots.end(), frame->payload())) << root;
    }
  }
}

TEST(SlotTable, NamesWhatWaitsLongest) {
  Table table(3);
  const auto at = [&](std::uint64_t message, std::uint32_t packet, std::uint16_t rank,
                      std::uint64_t now) {
    Contribution contribution = table.of(message, packet, rank);
    contribution.now = now;
    table.arrive(contribution);
  };
  EXPECT_TRUE(table->longest_waiting(10, 0).empty());
  at(1, 1, 2, 500);
  at(2, 0, 0, 300);
  at(2, 0, 1, 900); // the first counts
  at(5, 0, 1, 400);
  table.fill(3);
  const auto waiting = table->longest_waiting(10, 1000);
  ASSERT_EQ(waiting.size(), 3u);
  EXPECT_EQ(waiting[0].message, 2u);
  EXPECT_EQ(waiting[0].packet, 0u);
  EXPECT_EQ(waiting[0].waiting_ns, 700u);
  EXPECT_EQ(waiting[0].missing, (std::vector<std::uint16_t>{2}));
  EXPECT_EQ(waiting[1].message, 5u);
  EXPECT_EQ(waiting[1].missing, (std::vector<std::uint16_t>{0, 2}));
  EXPECT_EQ(waiting[2].message, 1u);
  EXPECT_EQ(waiting[2].packet, 1u);
  EXPECT_EQ(waiting[2].missing, (std::vector<std::uint16_t>{0, 1}));
  const auto first = table->longest_waiting(1, 1000);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].message, 2u);
  EXPECT_TRUE(table->longest_waiting(0, 1000).empty());
}

// ---- Memory. ----

/// Counts what it allocates.
class CountingMemory : public std::pmr::memory_resource {
 public:
  std::size_t bytes = 0;

 private:
  void* do_allocate(std::size_t count, std::size_t alignment) override {
    bytes += count;
    return std::pmr::get_default_resource()->allocate(count, alignment);
  }

  void do_deallocate(void* block, std::size_t count, std::size_t alignment) override {
    std::pmr::get_default_resource()->deallocate(block, count, alignment);
  }

  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

TEST(SlotTable, TakesTheMemoryThatItSays) {
  CountingMemory memory;
  const SlotTable::Dimensions dimensions{3, 4, 2, 256};
  EXPECT_EQ(dimensions.slots(), 8u);
  EXPECT_EQ(dimensions.held_frames(), 16u);
  SlotTable table(dimensions, &memory);
  EXPECT_EQ(memory.bytes, dimensions.bytes());
  EXPECT_EQ(table.slots(), 8u);
  Packet packet(Bytes(16, 1));
  table.arrive({.slot = 0, .data_bytes = 16}, &packet.frame);
  table.flush([](frame::Frame&) {});
  EXPECT_EQ(memory.bytes, dimensions.bytes()) << "nothing more on the packet path";
}

// ---- Against a model. ----

/// The table of docs/protocol.md in the simplest way: one map entry for each slot.
struct ModelSlot {
  std::uint64_t tag = 0;
  std::map<std::uint16_t, std::int32_t> values;
  bool complete = false;
};

TEST(SlotTable, EqualsAModelUnderRandomTraffic) {
  std::mt19937 random(12);
  for (const std::uint16_t world : {2, 3, 5}) {
    Table table(world, 6, 1); // N = 3, no power of two
    std::map<std::uint32_t, ModelSlot> model;
    std::uint64_t base = 0;
    for (int round = 0; round < 6000; ++round) {
      base += random() % 4 == 0 ? 1 : 0;
      const std::uint64_t message = base + random() % 9;
      const auto rank = static_cast<std::uint16_t>(random() % world);
      const auto value = static_cast<std::int32_t>(random());
      const Contribution contribution = table.of(message, 0, rank);
      const SlotEvent event =
          table.arrive(contribution, bytes_of<std::int32_t>({value, value, value, value}));
      const auto [found, is_new] =
          model.try_emplace(contribution.slot, ModelSlot{message, {}, false});
      ModelSlot& slot = found->second;
      const char* expected = "";
      if (slot.tag > message) {
        expected = "stale";
      } else if (slot.tag < message && !slot.complete) {
        expected = "window_violation";
      } else {
        if (slot.tag < message) {
          slot = {message, {}, false};
        }
        if (slot.complete) {
          expected = "repeat_complete";
        } else if (!slot.values.emplace(rank, value).second) {
          expected = "repeat_held";
        } else {
          slot.complete = slot.values.size() == world;
          expected = slot.complete ? "completed" : "stored";
        }
      }
      ASSERT_STREQ(text_of(event), expected) << "round " << round;
      if (event == SlotEvent::completed) {
        table.sum(contribution.slot);
      }
      if (slot.complete) {
        std::uint32_t sum = 0;
        for (const auto& [_, term] : slot.values) {
          sum += static_cast<std::uint32_t>(term);
        }
        const auto element = static_cast<std::int32_t>(sum);
        const auto data = table->result_of(contribution.slot).data;
        ASSERT_EQ(Bytes(data.begin(), data.end()),
                  bytes_of<std::int32_t>({element, element, element, element}));
      }
      std::size_t held = 0;
      for (const auto& [_, each] : model) {
        held += each.complete ? 0 : each.values.size();
      }
      ASSERT_EQ(table->held(), held);
    }
  }
}

} // namespace
} // namespace weir::slot::slot_test
