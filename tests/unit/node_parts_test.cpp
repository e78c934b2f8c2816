// SPDX-License-Identifier: BSD-3-Clause

/// What ranks behind one NIC are made of, without a network: who shares one, how they meet, and the
/// fold in the memory that they share, step by step in random order.

#include "host/base/residence.hpp"
#include "host/node/node_map.hpp"
#include "host/node/node_meeting.hpp"
#include "host/node/node_memory.hpp"
#include "host/node/node_reducer.hpp"
#include "host/node/portion_queue.hpp"
#include "op/kernel.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <poll.h>
#include <random>
#include <sched.h>
#include <span>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace weir::host::node_parts_test {
namespace {

// ------------------------------------------------------------------------------- who shares one

/// By a NIC's number and an address's; NIC 0 is not known.
Resident resident(std::uint8_t nic, std::uint8_t address, std::uint32_t user = 1000) {
  Resident made{{.user = user}, {}};
  made.residence.nic.fill(nic);
  made.ip.bytes.fill(address);
  return made;
}

TEST(NodeMap, NumbersNodesByTheirFirstRanks) {
  const std::vector<Resident> residents{resident(1, 1), resident(2, 2), resident(1, 1),
                                        resident(3, 3), resident(2, 2)};
  const NodeMap nodes(residents);
  ASSERT_EQ(nodes.nodes(), 3);
  EXPECT_TRUE(nodes.is_shared());
  const std::array<std::uint16_t, 5> node_of{0, 1, 0, 2, 1};
  const std::array<std::uint16_t, 5> place_of{0, 0, 1, 0, 1};
  for (std::uint16_t rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(nodes.node_of(rank), node_of[rank]) << rank;
    EXPECT_EQ(nodes.place_of(rank), place_of[rank]) << rank;
    EXPECT_EQ(nodes.leads(rank), place_of[rank] == 0) << rank;
  }
  EXPECT_EQ(nodes.leader_of(2), 3);
  EXPECT_EQ(nodes.ranks_of(1), (std::vector<std::uint16_t>{1, 4}));
}

TEST(NodeMap, WhoIsNotKnownOrHasAnotherAddressSharesNothing) {
  for (const Resident& second : {resident(1, 2), resident(2, 1)}) {
    const std::vector<Resident> residents{resident(1, 1), second};
    EXPECT_FALSE(NodeMap(residents).is_shared());
  }
  const std::vector<Resident> unknown{resident(0, 1), resident(0, 1)};
  EXPECT_FALSE(NodeMap(unknown).is_shared());
}

TEST(NodeMap, RefusesRanksOfTwoUsersBehindOneNic) {
  const std::vector<Resident> residents{resident(1, 1), resident(2, 2, 7), resident(1, 1, 1001)};
  try {
    const NodeMap nodes(residents);
    FAIL() << "it was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::mismatch);
    EXPECT_EQ(error.rank(), 2);
    const std::string text = error.what();
    EXPECT_NE(text.find("with rank 0: found user 1001 and user 1000; allowed: one user"),
              std::string::npos)
        << text;
  }
}

TEST(Residence, TellsNicsAndNetworkNamespacesApart) {
  const Residence here = residence_with("eth0");
  EXPECT_TRUE(here.is_known());
  EXPECT_EQ(here.user, geteuid());
  EXPECT_EQ(residence_with("eth0").nic, here.nic);
  EXPECT_NE(residence_with("eth1").nic, here.nic);
  EXPECT_FALSE(residence_with("").is_known());
  std::optional<Residence> elsewhere;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) == 0) { // of this thread alone
      elsewhere = residence_with("eth0");
    }
  }).join();
  if (elsewhere) {
    EXPECT_TRUE(elsewhere->is_known());
    EXPECT_NE(elsewhere->nic, here.nic);
  }
}

// ------------------------------------------------------------------------------- how they meet

NodeWait wait_of(std::uint16_t rank, std::chrono::milliseconds time = std::chrono::seconds(20)) {
  return {.deadline = Clock::now() + time, .meanwhile = [] {}, .leader = 4, .rank = rank};
}

const std::vector<std::uint16_t> kRanks{4, 6, 9};
using Bytes = std::vector<std::uint8_t>;

const NodeGeometry kGeometry{.ranks = 3, .channels = 1, .slots = 2, .portion_bytes = 64};

/// What a rank sees of the memory that rank 4 hands out, if it gets it.
std::optional<std::uint64_t> seen_by(std::span<const std::uint8_t> invitation,
                                     std::uint16_t place) {
  try {
    NodeMemory memory(kGeometry, place, come_to_node(invitation, place, 3, wait_of(kRanks[place])));
    return memory.counters(0, 0).brought.load();
  } catch (const Error&) {
    return std::nullopt;
  }
}

TEST(NodeDoor, HandsTheMemoryToItsRanksAndToNobodyElse) {
  const NodeDoor door(4);
  NodeDescriptors made = make_node_descriptors(kGeometry);
  std::vector<std::uint8_t> wrong = door.invitation();
  wrong.back() ^= 1; // of the token
  const auto right = door.invitation();
  std::array<std::optional<std::uint64_t>, 3> seen;
  std::optional<std::uint64_t> seen_by_stranger;
  std::jthread leader([&] { door.hand_out(made, kRanks, wait_of(4)); });
  seen_by_stranger = seen_by(wrong, 1);
  EXPECT_FALSE(seen_by_stranger);
  std::jthread first([&] { seen[1] = seen_by(right, 1); });
  std::jthread second([&] { seen[2] = seen_by(right, 2); });
  first.join();
  second.join();
  leader.join();
  EXPECT_EQ(seen[1], 0U);
  EXPECT_EQ(seen[2], 0U);
  NodeMemory memory(kGeometry, 0, std::move(made));
}

TEST(NodeDoor, NamesTheRankThatDoesNotCome) {
  const NodeDoor door(4);
  const NodeDescriptors made = make_node_descriptors(kGeometry);
  const auto invitation = door.invitation();
  std::jthread rank_9([&] { seen_by(invitation, 2); });
  try {
    door.hand_out(made, kRanks, wait_of(4, std::chrono::milliseconds(300)));
    FAIL() << "rank 6 has come";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::rendezvous_timeout);
    EXPECT_EQ(error.rank(), 6);
  }
}

/// Runs the body as another user, which only root can; its result is the child's exit status.
std::jthread as_another_user(std::optional<int>& status, const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(setresuid(65534, 65534, 65534) == 0 ? body() : 100);
  }
  return std::jthread([&status, child] {
    int ended = 0;
    if (waitpid(child, &ended, 0) == child && WIFEXITED(ended)) {
      status = WEXITSTATUS(ended);
    }
  });
}

/// Only root can be another user for a while.
class NodeDoorAndAnotherUser : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "not root";
    }
  }
};

TEST_F(NodeDoorAndAnotherUser, IsClosed) {
  const NodeDoor door(4);
  const auto invitation = door.invitation();
  std::optional<int> status;
  as_another_user(status, [&] {
    try {
      come_to_node(invitation, 1, 3, wait_of(6));
    } catch (const Error& error) {
      const std::string text = error.what();
      return text.find("found another user as rank 4") != std::string::npos ? 0 : 1;
    }
    return 2;
  }).join();
  EXPECT_EQ(status, 0);
}

/// Whatever it sends.
TEST_F(NodeDoorAndAnotherUser, GetsNothing) {
  std::optional<NodeDoor> door(4);
  const auto invitation = door->invitation();
  const NodeDescriptors made = make_node_descriptors(kGeometry);
  std::optional<int> status;
  std::jthread child = as_another_user(status, [&] {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::string name = "weir-node-"; // node_meeting.hpp: a name in hexadecimal digits, and a token
    for (std::size_t at = 0; at < 16; ++at) {
      name += fmt::format("{:02x}", invitation[at]);
    }
    name.copy(address.sun_path + 1, name.size());
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    const int caller = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    Bytes request(invitation.begin() + 16, invitation.end());
    request.insert(request.end(), {0, 1}); // its place
    std::uint8_t answer = 0;
    if (connect(caller, reinterpret_cast<sockaddr*>(&address), bytes) != 0) {
      return 1;
    }
    send(caller, request.data(), request.size(), MSG_NOSIGNAL); // or it is closed already
    return recv(caller, &answer, 1, 0) > 0 ? 2 : 0;
  });
  EXPECT_THROW(door->hand_out(made, kRanks, wait_of(4, std::chrono::milliseconds(300))), Error);
  door.reset(); // so that it hears of no answer
  child.join();
  EXPECT_EQ(status, 0);
}

// -------------------------------------------------------------------------------- how they sleep

/// Two ranks' views of one memory.
struct TwoMemories {
  TwoMemories() {
    NodeDescriptors made = make_node_descriptors(geometry);
    NodeDescriptors other;
    other.memory = Socket([&] { return dup(made.memory.get()); });
    for (const Socket& bell : made.bells) {
      other.bells.emplace_back([&] { return dup(bell.get()); });
    }
    first.emplace(geometry, 0, std::move(made));
    second.emplace(geometry, 1, std::move(other));
  }

  static bool rings(const NodeMemory& memory) {
    pollfd entry{memory.bell(), POLLIN, 0};
    return poll(&entry, 1, 0) == 1;
  }

  const NodeGeometry geometry{.ranks = 2};
  std::optional<NodeMemory> first;
  std::optional<NodeMemory> second;
};

TEST(NodeMemory, NobodySleepsThroughNews) {
  TwoMemories two;
  EXPECT_FALSE(two.first->has_news());
  EXPECT_TRUE(two.first->may_sleep());
  EXPECT_FALSE(TwoMemories::rings(*two.first));
  two.second->announce();
  EXPECT_TRUE(TwoMemories::rings(*two.first));
  two.first->end_sleep();
  EXPECT_FALSE(TwoMemories::rings(*two.first)) << "it would end the next sleep too";
  EXPECT_TRUE(two.first->has_news());
  EXPECT_FALSE(two.first->has_news());
  two.second->announce(); // between the look and the sleep
  EXPECT_FALSE(two.first->may_sleep());
  EXPECT_TRUE(two.first->has_news());
  two.second->announce();
  EXPECT_FALSE(TwoMemories::rings(*two.first)) << "nobody sleeps";
}

TEST(NodeMemory, WhoHasGoneOnLooksAgain) {
  TwoMemories two;
  two.first->note_move();
  EXPECT_FALSE(two.first->may_sleep());
  EXPECT_TRUE(two.first->has_news());
  EXPECT_TRUE(two.first->may_sleep());
}

// -------------------------------------------------------------------------------- the portions

TEST(PortionQueue, CutsEachSegmentAnew) {
  PortionQueue queue(100);
  queue.add({.collective = Collective::broadcast, .segments = 2, .segment_bytes = 250});
  queue.add({.segment_bytes = 0});
  queue.add({.collective = Collective::barrier});
  queue.add({.segment_bytes = 8});
  ASSERT_EQ(queue.end(), 6 + 0 + 1 + 1U);

  struct Row {
    std::uint16_t segment;
    std::size_t offset;
    std::size_t bytes;
  };

  const std::vector<Row> rows{{0, 0, 100},   {0, 100, 100}, {0, 200, 50}, {1, 0, 100},
                              {1, 100, 100}, {1, 200, 50},  {0, 0, 0},    {0, 0, 8}};
  for (std::uint64_t number = 0; number < rows.size(); ++number) {
    const Portion found = queue.portion(number);
    EXPECT_EQ(found.segment, rows[number].segment) << number;
    EXPECT_EQ(found.offset, rows[number].offset) << number;
    EXPECT_EQ(found.bytes, rows[number].bytes) << number;
  }
  EXPECT_EQ(queue.bytes_before(4), 350U);
  queue.finish_before(5);
  EXPECT_EQ(queue.finished(), 0U);
  queue.finish_before(6); // and the one without portions
  EXPECT_EQ(queue.finished(), 2U);
  queue.finish_before(8);
  EXPECT_EQ(queue.finished(), 4U);
  EXPECT_TRUE(queue.is_empty());
}

// -------------------------------------------------------------------------------- step by step

/// What leaders do between nodes: when all have begun a slice, and not before it is asked, it is
/// folded in the order of the nodes.
class Between {
 public:
  explicit Between(std::uint16_t nodes) : begun_(nodes) {}

  class End : public Reducer {
   public:
    End(Between& between, std::uint16_t node) : between_(between), node_(node) {}

    void begin(const Slice& slice) override { between_.begun_[node_].push_back(slice); }

    std::optional<OutgoingMessage> next() override { return std::nullopt; }

    Arrival accept(const IncomingMessage&) override { return Arrival::ignored; }

    void complete() override {}

    std::uint64_t finished() const override { return between_.finished_; }

    std::size_t bytes_done() const override { return 0; }

    bool is_idle() const override { return between_.begun_[node_].size() == finished(); }

    std::string describe() const override { return "between"; }

   private:
    Between& between_;
    const std::uint16_t node_;
  };

  /// True if there was one. Its leaders are then to be told, as a transport does.
  bool exchange() {
    for (const std::vector<Slice>& slices : begun_) {
      if (slices.size() <= finished_) {
        return false;
      }
    }
    const Slice& first = begun_[0][finished_];
    Bytes total(first.segment_bytes);
    if (first.collective == Collective::broadcast) {
      std::copy_n(begun_[first.root][finished_].in, total.size(), total.begin());
    } else if (first.collective == Collective::all_reduce) {
      std::vector<const std::byte*> inputs;
      for (const std::vector<Slice>& slices : begun_) {
        inputs.push_back(reinterpret_cast<const std::byte*>(slices[finished_].in));
      }
      op::reference_kernel(first.type, first.operation)(
          reinterpret_cast<std::byte*>(total.data()), inputs.data(),
          static_cast<unsigned>(inputs.size()), total.size(), {});
    }
    for (const std::vector<Slice>& slices : begun_) {
      const Slice& slice = slices[finished_];
      EXPECT_EQ(slice.segment_bytes, first.segment_bytes);
      EXPECT_EQ(slice.root, first.root);
      std::ranges::copy(total, slice.out);
    }
    ++finished_;
    return true;
  }

 private:
  std::vector<std::vector<Slice>> begun_; // by node
  std::uint64_t finished_ = 0;
};

/// The calls of a job, by the ranks' data, and what must come of them by plain loops.
struct PlannedCall {
  Call call;
  std::vector<Bytes> in;  // by rank
  std::vector<Bytes> out; // by rank, as the reducers leave them
  std::vector<Bytes> due;
};

class Job {
 public:
  Job(std::vector<std::uint16_t> node_of, std::size_t slots, std::size_t portion_bytes,
      std::uint64_t seed)
      : node_of_(std::move(node_of)), dice_(seed) {
    std::vector<Resident> residents;
    for (const std::uint16_t node : node_of_) {
      residents.push_back(
          resident(static_cast<std::uint8_t>(node + 1), static_cast<std::uint8_t>(node + 1)));
    }
    nodes_ = NodeMap(residents);
    between_.emplace(nodes_.nodes());
    for (std::uint16_t node = 0; node < nodes_.nodes(); ++node) {
      geometry_.push_back({.ranks = static_cast<std::uint16_t>(nodes_.ranks_of(node).size()),
                           .channels = 1,
                           .slots = slots,
                           .portion_bytes = portion_bytes});
      descriptors_.push_back(make_node_descriptors(geometry_.back()));
    }
    for (std::uint16_t rank = 0; rank < world(); ++rank) {
      add_rank(rank);
    }
  }

  std::uint16_t world() const { return static_cast<std::uint16_t>(node_of_.size()); }

  void plan(Call call) {
    PlannedCall planned{call, {}, {}, {}};
    const CallRow& row = call.row();
    const std::size_t share = call.has_data() ? call.count * element_size(call.type) : 0;
    const auto bytes = [&](Amount amount) {
      return amount == Amount::share_of_each ? share * world() : share;
    };
    for (std::uint16_t rank = 0; rank < world(); ++rank) {
      Bytes data(bytes(row.brings));
      for (std::size_t at = 0; at + 4 <= data.size(); at += 4) { // also for floats: none is a NaN
        const auto value = static_cast<float>(std::uniform_real_distribution(-1e3, 1e3)(dice_));
        std::memcpy(data.data() + at, &value, 4);
      }
      planned.in.push_back(data);
      planned.out.emplace_back(bytes(row.gets), std::uint8_t{0xee});
    }
    planned.due = planned.out;
    add_due(planned, share);
    calls_.push_back(std::move(planned));
  }

  /// Until all ranks have all results, or nothing moves any more. `frozen` stands after so many
  /// steps of its own.
  void run(std::optional<std::uint16_t> frozen = std::nullopt, int steps = 0) {
    for (int idle = 0; idle < 1000;) {
      const auto rank = static_cast<std::uint16_t>(dice_() % world());
      const bool stands = frozen == rank && steps-- <= 0;
      idle = (!stands && step(rank)) || exchange_sometimes() ? 0 : idle + 1;
    }
  }

  std::uint64_t finished(std::uint16_t rank) const { return reducers_[rank]->finished(); }

  std::size_t calls() const { return calls_.size(); }

  /// The results of all calls that the rank has finished are right.
  void check(std::uint16_t rank) const {
    for (std::size_t call = 0; call < reducers_[rank]->finished(); ++call) {
      EXPECT_EQ(calls_[call].out[rank], calls_[call].due[rank])
          << "call " << call << ", " << host::describe(calls_[call].call) << ", rank " << rank;
    }
  }

 private:
  void add_rank(std::uint16_t rank) {
    const std::uint16_t node = node_of_[rank];
    NodeDescriptors own;
    own.memory = Socket([&] { return dup(descriptors_[node].memory.get()); });
    for (const Socket& bell : descriptors_[node].bells) {
      own.bells.emplace_back([&] { return dup(bell.get()); });
    }
    memories_.push_back(
        std::make_unique<NodeMemory>(geometry_[node], nodes_.place_of(rank), std::move(own)));
    const bool exchanges = nodes_.leads(rank) && nodes_.nodes() > 1;
    reducers_.push_back(std::make_unique<NodeReducer>(
        nodes_, rank, exchanges ? std::make_unique<Between::End>(*between_, node) : nullptr));
    reducers_.back()->join(*memories_.back(), 0);
    begun_.push_back(0);
  }

  /// The fold over the nodes of the folds over their ranks, f32, element by element.
  Bytes nested_sum(const std::vector<Bytes>& in) const {
    Bytes total(in[0].size());
    for (std::size_t at = 0; at < total.size(); at += 4) {
      float sum = 0;
      for (std::uint16_t node = 0; node < nodes_.nodes(); ++node) {
        float partial = 0;
        bool is_first = true;
        for (std::uint16_t rank = 0; rank < world(); ++rank) {
          if (node_of_[rank] == node) {
            float value = 0;
            std::memcpy(&value, in[rank].data() + at, 4);
            partial = std::exchange(is_first, false) ? value : partial + value;
          }
        }
        sum = node == 0 ? partial : sum + partial;
      }
      std::memcpy(total.data() + at, &sum, 4);
    }
    return total;
  }

  void add_due(PlannedCall& planned, std::size_t share) const {
    const Call& call = planned.call;
    for (std::uint16_t rank = 0; rank < world(); ++rank) {
      Bytes& due = planned.due[rank];
      switch (call.kind) {
      case CallKind::all_reduce:
        due = nested_sum(planned.in);
        break;
      case CallKind::reduce:
        due = rank == call.root ? nested_sum(planned.in) : due;
        break;
      case CallKind::reduce_scatter: {
        const Bytes all = nested_sum(planned.in);
        std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(rank * share), share, due.begin());
        break;
      }
      case CallKind::broadcast:
        due = planned.in[call.root];
        break;
      case CallKind::all_gather:
        for (std::uint16_t from = 0; from < world(); ++from) {
          std::ranges::copy(planned.in[from],
                            due.begin() + static_cast<std::ptrdiff_t>(from * share));
        }
        break;
      default:
        break;
      }
    }
  }

  bool step(std::uint16_t rank) {
    NodeReducer& reducer = *reducers_[rank];
    if (begun_[rank] < calls_.size() && dice_() % 4 == 0) {
      PlannedCall& planned = calls_[begun_[rank]++];
      // A broadcast's memory is one, with the root's data where it is the root's.
      if (planned.call.kind == CallKind::broadcast && rank == planned.call.root) {
        planned.out[rank] = planned.in[rank];
      }
      const CallBuffers buffers{.in = planned.in[rank].data(), .out = planned.out[rank].data()};
      reducer.begin(slice_of(planned.call, {rank, world()}, buffers, {}));
      return true;
    }
    reducer.next();
    return memories_[rank]->has_news() || begun_[rank] < calls_.size();
  }

  bool exchange_sometimes() {
    if (nodes_.nodes() == 1 || dice_() % 3 != 0 || !between_->exchange()) {
      return false;
    }
    for (std::uint16_t node = 0; node < nodes_.nodes(); ++node) {
      reducers_[nodes_.leader_of(node)]->complete();
    }
    return true;
  }

  const std::vector<std::uint16_t> node_of_;
  std::mt19937_64 dice_;
  NodeMap nodes_;
  std::optional<Between> between_;
  std::vector<NodeGeometry> geometry_;
  std::vector<NodeDescriptors> descriptors_;
  std::vector<std::unique_ptr<NodeMemory>> memories_;  // by rank
  std::vector<std::unique_ptr<NodeReducer>> reducers_; // by rank
  std::vector<std::size_t> begun_;                     // calls, by rank
  std::deque<PlannedCall> calls_;
};

struct Shape {
  std::vector<std::uint16_t> node_of; // by rank
  std::size_t slots;
  std::size_t portion_bytes;
  std::size_t count; // elements of a call
};

/// Its errors are about ranks of the ring, which are nodes.
class Failing : public Reducer {
 public:
  void begin(const Slice&) override {}

  std::optional<OutgoingMessage> next() override { return std::nullopt; }

  Arrival accept(const IncomingMessage&) override {
    throw Error(ErrorCode::mismatch, 1, "result 3 from rank 1: found what is wrong");
  }

  void complete() override {}

  std::uint64_t finished() const override { return 0; }

  std::size_t bytes_done() const override { return 0; }

  bool is_idle() const override { return true; }

  std::string describe() const override { return "ring 7"; }
};

TEST(NodeReducer, ItsErrorsAreAboutRanksOfTheGroup) {
  const std::vector<Resident> residents{resident(1, 1), resident(1, 1), resident(1, 1),
                                        resident(2, 2), resident(2, 2)};
  NodeReducer reducer(NodeMap(residents), 0, std::make_unique<Failing>());
  try {
    reducer.accept({});
    FAIL() << "it was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.rank(), 3);
    EXPECT_STREQ(error.what(),
                 "result 3 from rank 1: found what is wrong (the ring's rank 1 is rank 3)");
  }
}

/// Short portions are folded by leaders, those of 16 KiB and more by all.
const std::vector<Shape> kShapes{{{0, 0, 0}, 2, 64, 150},
                                 {{0, 0, 1, 1, 1}, 2, 64, 150},
                                 {{0, 1, 0, 2, 1}, 3, 104, 99},
                                 {{0, 0}, 2, 16'400, 21'000},
                                 {{0, 1, 1, 0, 1}, 2, 16'400, 9'000}};

void plan_every_call(Job& job, std::size_t count) {
  const auto last = static_cast<std::uint16_t>(job.world() - 1);
  for (const std::size_t some : {count, std::size_t{1}, std::size_t{0}}) {
    job.plan({.kind = CallKind::all_reduce, .count = some});
    job.plan({.kind = CallKind::reduce, .count = some, .root = last});
    job.plan({.kind = CallKind::broadcast, .count = some, .root = last});
    job.plan({.kind = CallKind::barrier});
    job.plan({.kind = CallKind::all_gather, .count = some});
    job.plan({.kind = CallKind::reduce_scatter, .count = some});
  }
  for (int again = 0; again < 5; ++again) { // alike but for the data
    job.plan({.kind = CallKind::all_reduce, .count = 1});
  }
}

TEST(NodeReducer, IsExactInWhateverOrderTheRanksGoOn) {
  for (const Shape& shape : kShapes) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      Job job(shape.node_of, shape.slots, shape.portion_bytes, seed);
      plan_every_call(job, shape.count);
      job.run();
      for (std::uint16_t rank = 0; rank < job.world(); ++rank) {
        ASSERT_EQ(job.finished(rank), job.calls()) << "seed " << seed << ", rank " << rank;
        job.check(rank);
      }
    }
  }
}

/// Its data are missing, so nobody may get what needs them; what is there is right.
TEST(NodeReducer, ARankThatStandsHoldsUpTheOthers) {
  for (const Shape& shape : kShapes) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      Job job(shape.node_of, shape.slots, shape.portion_bytes, seed);
      plan_every_call(job, shape.count);
      const auto frozen = static_cast<std::uint16_t>(seed % job.world());
      job.run(frozen, static_cast<int>(seed * 3));
      ASSERT_LT(job.finished(frozen), job.calls());
      for (std::uint16_t rank = 0; rank < job.world(); ++rank) {
        EXPECT_LT(job.finished(rank), job.calls()) << "seed " << seed << ", rank " << rank;
        job.check(rank);
      }
    }
  }
}

/// No data would show that somebody went on too soon.
TEST(NodeReducer, ABarrierWaitsForEverybody) {
  for (const Shape& shape : kShapes) {
    for (std::uint16_t frozen = 0; frozen < shape.node_of.size(); ++frozen) {
      Job job(shape.node_of, shape.slots, shape.portion_bytes, frozen);
      job.plan({.kind = CallKind::barrier});
      job.run(frozen);
      for (std::uint16_t rank = 0; rank < job.world(); ++rank) {
        EXPECT_EQ(job.finished(rank), 0U) << "rank " << rank << " without rank " << frozen;
      }
    }
  }
}

} // namespace
} // namespace weir::host::node_parts_test
