// SPDX-License-Identifier: BSD-3-Clause

/// Trees of switches (docs/protocol.md §11): what passes between the switches and what the hosts
/// get. The expected frames come from what the hosts sent and docs/protocol.md §5.

#include "conn/hello_difference.hpp"
#include "ring/digest_difference.hpp"
#include "stage/ring_life.hpp"
#include "stage/snapshot.hpp"
#include "tree_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weir::stage::tree_test {
namespace {

using test::Bytes;
using test::JobSpec;
using test::RingJob;

constexpr std::ptrdiff_t kBth = 14 + 20 + 8; // of the hosts' frames
constexpr std::uint16_t kUp = 7;
constexpr std::size_t kRoot = 0;
constexpr std::size_t kA = 1; // ranks 0 and 1, behind the root's port 0
constexpr std::size_t kB = 2; // ranks 2, 3 and 4, behind its port 1

JobSpec spec_of_job() {
  JobSpec spec;
  spec.world = 5;
  spec.first_own_qp = 0x900;
  spec.ack_timeout = 14; // 67 ms
  return spec;
}

ring::Child rank(std::uint16_t number) {
  return {.ranks = {number, 1}, .port = {}, .name = {}};
}

ring::Child switch_below(ring::RankRange ranks, std::uint16_t port) {
  return {.ranks = ranks, .port = port, .kind = ring::ChildKind::switch_below, .name = "rack"};
}

/// Two racks below a root, of two ranks and of three.
class Tree : public testing::Test {
 protected:
  Tree() : job(spec_of_job()) {
    tree.add_switch({part({switch_below({0, 2}, 0), switch_below({2, 3}, 1)}, {})});
    tree.add_switch({part({rank(0), rank(1)}, ring::Parent{kUp, "root"})});
    tree.add_switch({part({rank(2), rank(3), rank(4)}, ring::Parent{kUp, "root"})});
    tree.join(kRoot, 0, kA, kUp);
    tree.join(kRoot, 1, kB, kUp);
    for (std::uint16_t rank = 0; rank < 5; ++rank) {
      tree.join_host(rank < 2 ? kA : kB, rank, rank);
    }
  }

  ring::RingSpec part(std::vector<ring::Child> children, std::optional<ring::Parent> parent) {
    ring::RingSpec spec = job.ring();
    spec.children = std::move(children);
    spec.parent = std::move(parent);
    return spec;
  }

  void say_hello() {
    for (std::uint16_t rank = 0; rank < 5; ++rank) {
      tree.from_host(rank, job.hello(rank).bytes);
    }
  }

  std::vector<test::Built> message(std::uint16_t rank, std::uint32_t id, const Bytes& data) {
    test::InaSpec ina = job.ina_of(rank, id, static_cast<std::uint32_t>(data.size()));
    ina.session = tree.session_of(tree.node_of(rank));
    return job.message(rank, ina, data);
  }

  static Bytes words(std::uint32_t first, std::size_t count) {
    Bytes data(4 * count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = static_cast<std::uint32_t>(first + 3 * i);
      std::memcpy(data.data() + 4 * i, &value, sizeof value);
    }
    return data;
  }

  static Bytes sum(const std::vector<Bytes>& all) {
    Bytes total(all.front().size());
    for (std::size_t at = 0; at < total.size(); at += 4) {
      std::uint32_t value = 0;
      for (const Bytes& one : all) {
        std::uint32_t word = 0;
        std::memcpy(&word, one.data() + at, sizeof word);
        value += word;
      }
      std::memcpy(total.data() + at, &value, sizeof value);
    }
    return total;
  }

  /// The hosts' hellos and their results.
  void begin() {
    say_hello();
    for (std::uint16_t rank = 0; rank < 5; ++rank) {
      ASSERT_GE(tree.received(rank).size(), 1u) << "rank " << rank;
    }
  }

  /// Data of all ranks for a message of some packets.
  std::vector<Bytes> data_of(std::uint32_t id, std::size_t count) {
    std::vector<Bytes> data;
    for (std::uint32_t rank = 0; rank < 5; ++rank) {
      data.push_back(words(1000 * id + 100'000 * rank, count));
    }
    return data;
  }

  /// What rank's successor must receive for the packets that rank sent.
  std::vector<Bytes> results_for(std::uint16_t sender, const std::vector<test::Built>& packets,
                                 const Bytes& total) {
    std::vector<Bytes> results;
    std::size_t at = 0;
    const std::uint32_t session = tree.session_of(tree.node_of(job.successor_of(sender)));
    for (const test::Built& packet : packets) {
      const std::size_t bytes = test::data_of(packet).size();
      const Bytes part(total.begin() + static_cast<std::ptrdiff_t>(at),
                       total.begin() + static_cast<std::ptrdiff_t>(at + bytes));
      test::Built result = test::result_of(packet, part);
      if (test::starts_message(result)) {
        test::put32(result.bytes, result.payload + test::kInaSessionAt, session);
        test::seal(result);
      }
      results.push_back(result.bytes);
      at += bytes;
    }
    return results;
  }

  /// All ranks send a message; every one gets the sum.
  void all_reduce(std::uint32_t id, std::size_t count) {
    const auto data = data_of(id, count);
    const Bytes total = sum(data);
    std::vector<std::vector<test::Built>> sent;
    for (std::uint16_t rank = 0; rank < 5; ++rank) {
      sent.push_back(message(rank, id, data[rank]));
      for (const test::Built& packet : sent.back()) {
        tree.from_host(rank, packet.bytes);
      }
    }
    for (std::uint16_t rank = 0; rank < 5; ++rank) {
      const std::uint16_t next = job.successor_of(rank);
      EXPECT_EQ(tree.received(next), results_for(rank, sent[rank], total)) << "rank " << next;
    }
  }

  /// The same, where links lose frames and the switches need time to mend it. The hosts answer as
  /// responders do, and take each packet once.
  void all_reduce_with_losses(std::uint32_t id, std::size_t count) {
    const auto data = data_of(id, count);
    const Bytes total = sum(data);
    std::vector<std::vector<test::Built>> sent;
    for (std::uint16_t rank = 0; rank < 5; ++rank) {
      sent.push_back(message(rank, id, data[rank]));
    }
    for (std::uint16_t rank = 0; rank < 5; ++rank) {
      for (const test::Built& packet : sent[rank]) {
        tree.from_host(rank, packet.bytes);
      }
    }
    tree.wait(20'000'000);
    for (std::uint16_t rank = 0; rank < 5; ++rank) {
      const std::uint16_t next = job.successor_of(rank);
      EXPECT_EQ(transport_of(std::exchange(taken[next], {})),
                transport_of(results_for(rank, sent[rank], total)))
          << "message " << id << " at rank " << next << ": " << tree.drops();
    }
  }

  /// From BTH to payload. A packet that leaves again, or before a stall, differs in what is left
  /// out here: AckReq, IP identification, and the checks.
  static std::vector<Bytes> transport_of(std::vector<Bytes> frames) {
    for (Bytes& frame : frames) {
      frame[kBth + 8] &= 0x7f;
      frame = Bytes(frame.begin() + kBth, frame.end() - 4);
    }
    return frames;
  }

  /// Makes the hosts answer: an ACK for the next packet and for one that comes again, and a NAK for
  /// the first one behind a gap.
  void let_hosts_answer() {
    tree.answer = [this](std::uint16_t rank, const Bytes& bytes) -> Bytes {
      if (bytes[kBth] >= 0x10) {
        acknowledged[rank].push_back(bytes[kBth + 12]);
        return {};
      }
      const auto sender = static_cast<std::uint16_t>((rank + 4) % 5);
      const std::uint32_t psn = test::get32(bytes, kBth + 8) & 0xffffff;
      std::uint32_t& expected =
          expected_psn.try_emplace(rank, job.first_psn_of(sender)).first->second;
      const auto ahead = static_cast<std::int32_t>((psn - expected) << 8);
      if (ahead > 0) {
        return test::build(job.answer_to(sender, 0x60, expected)).bytes;
      }
      if (ahead == 0) {
        taken[rank].push_back(bytes);
        expected = (expected + 1) & 0xffffff;
      }
      return test::build(job.answer_to(sender, 0x1f, expected - 1)).bytes;
    };
  }

  std::map<std::uint16_t, std::uint32_t> expected_psn;
  std::map<std::uint16_t, std::vector<Bytes>> taken;               // by rank, in order
  std::map<std::uint16_t, std::vector<std::uint8_t>> acknowledged; // syndromes, by requester
  RingJob job;
  TreeFixture tree;
};

TEST_F(Tree, BeginsFromTheRootDownwards) {
  for (std::uint16_t rank = 0; rank < 4; ++rank) {
    tree.from_host(rank, job.hello(rank).bytes);
    EXPECT_FALSE(tree.nodes[kRoot]->inside.worker().incarnations().incarnation_of(0));
  }
  EXPECT_EQ(tree.sent(kA, kUp), 1u) << "one hello for its two ranks";
  EXPECT_EQ(tree.sent(kB, kUp), 0u);
  EXPECT_FALSE(tree.nodes[kA]->inside.worker().incarnations().incarnation_of(0));
  tree.from_host(4, job.hello(4).bytes);
  for (const auto& node : tree.nodes) {
    EXPECT_TRUE(node->inside.worker().incarnations().incarnation_of(0)) << tree.drops();
  }
  for (std::uint16_t rank = 0; rank < 5; ++rank) {
    const std::uint16_t next = job.successor_of(rank);
    const std::uint32_t session = tree.session_of(tree.node_of(next));
    const auto expected = test::result_of(job.hello(rank), {}, session);
    EXPECT_EQ(tree.received(next), std::vector<Bytes>{expected.bytes}) << "rank " << next;
  }
  EXPECT_NE(tree.session_of(kA), tree.session_of(kRoot)) << "sessions go hop by hop";
}

TEST_F(Tree, GivesEveryRankTheSumOfAll) {
  begin();
  all_reduce(1, 10);
  all_reduce(2, 200);
  all_reduce(3, 1);
}

/// docs/protocol.md §11.9, 7.
TEST_F(Tree, SendsOnePacketUpAndOneDownForEachOfOneRank) {
  begin();
  const std::uint64_t hellos = 1;
  all_reduce(1, 200);
  const std::uint64_t packets = message(0, 1, words(0, 200)).size();
  ASSERT_GT(packets, 2u);
  for (const std::size_t node : {kA, kB}) {
    EXPECT_EQ(tree.sent(node, kUp), hellos + packets);
  }
  for (const std::uint16_t port : {0, 1}) {
    EXPECT_EQ(tree.sent(kRoot, port), hellos + packets);
  }
}

/// Rack B has its partial sums 600 us before rack A, which gets its totals at once. Of the packets
/// that are on their way together, the first is timed.
TEST_F(Tree, TimesOneSumAtATimeUpAndBack) {
  begin();
  const auto data = data_of(1, 200);
  for (const std::uint16_t rank : {2, 3, 4, 0, 1}) {
    if (rank == 0) {
      tree.wait(600'000);
    }
    for (const test::Built& packet : message(rank, 1, data[rank])) {
      tree.from_host(rank, packet.bytes);
    }
  }
  const std::uint64_t packets = message(0, 1, data[0]).size();
  ASSERT_GT(packets, 2u);
  const auto& in_b = tree.nodes[kB]->inside.worker().counters_of(0);
  EXPECT_EQ(in_b.partial_sums, packets);
  EXPECT_EQ(in_b.totals, 1 + packets) << "the hello's, too";
  EXPECT_EQ(in_b.total_time_ns.counts[20], 1u) << "524,288 to 1,048,575 ns";
  const auto& in_a = tree.nodes[kA]->inside.worker().counters_of(0);
  EXPECT_EQ(in_a.total_time_ns.counts[0], packets);
}

/// Who sends on each ring's connection of a switch, as people are told.
std::multiset<std::string> senders_on(const TreeNode& node, frame::Instant now) {
  const Worker& worker = node.inside.worker();
  std::vector<ConnectionSnapshot> connections;
  snapshot_connections(worker, node.inside.rings(),
                       {0, worker.incarnations().connections().places()}, now, connections);
  std::multiset<std::string> senders;
  for (const ConnectionSnapshot& connection : connections) {
    EXPECT_EQ(connection.ring_id, std::optional(spec_of_job().ring));
    senders.insert(connection.sender);
  }
  return senders;
}

TEST_F(Tree, NamesTheSendersOfConnectionsByTheirRanks) {
  begin();
  using Names = std::multiset<std::string>;
  EXPECT_EQ(senders_on(*tree.nodes[kRoot], tree.now), (Names{"0-1", "2-4"}));
  EXPECT_EQ(senders_on(*tree.nodes[kA], tree.now), (Names{"0", "1", "parent"}));
  EXPECT_EQ(senders_on(*tree.nodes[kB], tree.now), (Names{"2", "3", "4", "parent"}));
}

/// Rank 4 has not sent. Its own switch waits for it, the root for that switch, and the other rack
/// for the root.
TEST_F(Tree, WaitsForWhoeverIsNextOnTheWayToALateRank) {
  begin();
  const auto data = data_of(1, 16);
  for (const std::uint16_t rank : {0, 1, 2, 3}) {
    tree.from_host(rank, message(rank, 1, data[rank])[0].bytes);
  }
  tree.now = frame::Instant{tree.now.ns + 1000};
  const auto waited_for = [this](std::size_t node) {
    const RingSnapshot ring = snapshot_ring(tree.nodes[node]->inside.worker(), 0, tree.now);
    EXPECT_EQ(ring.waiting_ns, 1000u);
    EXPECT_EQ(ring.waiting_since_ns, tree.now.ns - 1000);
    EXPECT_EQ(life_of(tree.nodes[node]->inside.worker(), 0, {}, tree.now).waited_for,
              ring.waited_for);
    return ring.waited_for;
  };
  using Senders = std::vector<std::uint16_t>;
  EXPECT_EQ(waited_for(kRoot), Senders{1});
  EXPECT_EQ(waited_for(kA), Senders{2}) << "the parent, behind two children";
  EXPECT_EQ(waited_for(kB), Senders{2}) << "the last of three";
  tree.from_host(4, message(4, 1, data[4])[0].bytes);
  for (const auto& node : tree.nodes) {
    EXPECT_TRUE(snapshot_ring(node->inside.worker(), 0, tree.now).waited_for.empty());
  }
}

/// Each link between switches loses each packet of a message once, in each direction. The switches
/// mend it: no host repeats anything.
TEST_F(Tree, MendsALossBetweenTheSwitches) {
  let_hosts_answer();
  begin();
  taken.clear();
  acknowledged.clear();
  const std::size_t packets = message(0, 1, words(0, 200)).size();
  std::uint32_t id = 1;
  for (const auto& [from, port] :
       {std::pair{kA, kUp}, {kB, kUp}, {kRoot, std::uint16_t{0}}, {kRoot, std::uint16_t{1}}}) {
    for (std::size_t lost = 0; lost < packets; ++lost) {
      std::size_t seen = 0;
      tree.loses = [&, from = from, port = port](const OnLink& frame) {
        const bool is_message = frame.bytes[kBth] < 0x10;
        return frame.from == from && frame.port == port && is_message && seen++ == lost;
      };
      all_reduce_with_losses(id++, 200);
      EXPECT_GT(seen, packets) << "it was sent again";
    }
  }
  for (const auto& [rank, syndromes] : acknowledged) {
    EXPECT_EQ(std::ranges::count(syndromes, 0x60), 0)
        << "rank " << rank << " was asked for nothing";
  }
}

/// Only the root's second packet comes: no other frame tells switch A that it is to ask again. It
/// does so after T, and after twice that.
TEST_F(Tree, AsksTheSwitchAboveAgainWhereNothingMoreComes) {
  let_hosts_answer();
  begin();
  taken.clear();
  std::vector<std::uint64_t> asked;
  std::size_t seen = 0;
  tree.loses = [&](const OnLink& frame) {
    const bool is_message = frame.bytes[kBth] < 0x10;
    if (frame.from == kA && frame.port == kUp && !is_message && frame.bytes[kBth + 12] == 0x60) {
      asked.push_back(tree.now.ns);
    }
    const bool is_total = frame.from == kRoot && frame.port == 0 && is_message;
    seen += is_total ? 1 : 0;
    return is_total && seen != 2 && asked.size() < 3;
  };
  all_reduce_with_losses(1, 200);
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_EQ(asked[2] - asked[1], 2 * (asked[1] - asked[0]));
}

// ---- What one packet makes other switches send. ----

/// Rack B has sent sums that nobody can total, since rank 0 stays away.
class TreeWaits : public Tree {
 protected:
  TreeWaits() {
    let_hosts_answer();
    begin();
    tree.answer = [](std::uint16_t, const Bytes&) { return Bytes(); };
    for (std::uint16_t rank = 1; rank < 5; ++rank) {
      for (const test::Built& packet : message(rank, 1, words(rank, 200))) {
        tree.from_host(rank, packet.bytes);
      }
    }
    tree.loses = [this](const OnLink& frame) {
      sums_of_b_ += frame.from == kB && frame.port == kUp && frame.bytes[kBth] < 0x10 ? 1 : 0;
      return false;
    };
  }

  /// Of rank 0, which is rank 4's receiver, for what rank 4's switch alone has.
  Bytes nak() { return answer(0x60); }

  Bytes answer(std::uint8_t syndrome) {
    return test::build(job.answer_to(4, syndrome, job.first_psn_of(4) + 1)).bytes;
  }

  std::size_t sums_of_b_ = 0; // packets since rank 4's
};

TEST_F(TreeWaits, ARanksNakMakesNoOtherRackSend) {
  for (int asked = 0; asked < 100; ++asked) {
    tree.from_host(0, nak());
    tree.wait(10'000);
  }
  EXPECT_EQ(sums_of_b_, 0u);
}

/// docs/protocol.md §11.6: the pauses double from 30 us to 15 ms, so in 100 ms there are some 14.
TEST_F(TreeWaits, ASwitchThatAsksWithoutEndIsAnsweredMoreAndMoreRarely) {
  const std::size_t packets = message(0, 1, words(0, 200)).size();
  for (int asked = 0; asked < 10'000; ++asked) {
    tree.into(kB, kUp, nak());
    tree.wait(10'000);
  }
  EXPECT_GE(sums_of_b_, 10 * packets);
  EXPECT_LE(sums_of_b_, 16 * packets);
}

/// As a receiver without a buffer makes it do. Seven times that ends the pause.
TEST_F(TreeWaits, OneThatSaysRnrNakBeforeEachAskGetsNoMoreInTheEnd) {
  const std::size_t packets = message(0, 1, words(0, 200)).size();
  for (int asked = 0; asked < 2'000; ++asked) {
    tree.into(kB, kUp, answer(0x21));
    tree.wait(30'000);
    tree.into(kB, kUp, nak());
    tree.wait(20'000);
  }
  EXPECT_GE(sums_of_b_, 7 * packets);
  EXPECT_LE(sums_of_b_, 23 * packets);
}

// ---- What is dropped by name, and changes nothing. ----

class TreeDrops : public Tree {
 protected:
  /// A hello on the connection of this rank, changed.
  template <typename Change>
  Bytes hello(std::uint16_t sender, Change&& change) const {
    test::InaSpec ina = job.ina_of(sender, 0, 0);
    ina.collective = 1;
    ina.session = job.spec().nonce;
    ina.ack_timeout = job.spec().ack_timeout;
    ina.qp = job.own_qp_of(sender);
    change(ina);
    test::FrameSpec frame = job.frame_of(sender);
    frame.opcode = test::opcode_of(job.spec().verb, 0, 1);
    frame.psn = job.first_psn_of(sender);
    frame.payload = test::encode(ina);
    return test::build(frame).bytes;
  }

  /// As a switch below that has the ring says it.
  static void climbing(test::InaSpec& ina, std::uint32_t digest, std::uint16_t first_rank) {
    ina.flags = kInaFlagPartial;
    ina.message = digest;
    ina.root = first_rank;
  }

  void expect_dropped(std::size_t node, std::uint16_t port, const Bytes& frame, DropReason reason) {
    const std::uint64_t before = tree.nodes[node]->dropped(reason);
    const auto incarnation = tree.nodes[node]->inside.worker().incarnations().incarnation_of(0);
    tree.into(node, port, frame);
    EXPECT_EQ(tree.nodes[node]->dropped(reason), before + 1) << name_of(reason) << tree.drops();
    EXPECT_EQ(tree.nodes[node]->inside.worker().incarnations().incarnation_of(0), incarnation);
  }

  std::uint32_t digest() const { return tree.nodes[kRoot]->inside.rings().rings()[0].digest(); }
};

TEST_F(TreeDrops, FlagsThatDoNotFitTheirSender) {
  const auto raw = [](test::InaSpec&) {};
  const auto partial = [&](test::InaSpec& ina) { climbing(ina, digest(), 0); };
  const auto result = [](test::InaSpec& ina) { ina.flags = kInaFlagResult; };
  expect_dropped(kRoot, 0, hello(1, raw), DropReason::raw_from_switch);
  expect_dropped(kRoot, 0, hello(1, result), DropReason::result_flag);
  expect_dropped(kA, 1, hello(1, partial), DropReason::partial_flag);
  expect_dropped(kA, 1, hello(1, result), DropReason::result_flag);
  expect_dropped(kA, kUp, hello(4, raw), DropReason::raw_from_parent);
  expect_dropped(kA, kUp, hello(4, partial), DropReason::raw_from_parent);
}

TEST_F(TreeDrops, HellosOfASwitchThatHasAnotherRing) {
  expect_dropped(kRoot, 0, hello(1, [&](auto& ina) { climbing(ina, digest() + 1, 0); }),
                 DropReason::ring_differs);
  expect_dropped(kRoot, 0, hello(1, [&](auto& ina) { climbing(ina, digest(), 1); }),
                 DropReason::range_differs);
  expect_dropped(kRoot, 1, hello(1, [&](auto& ina) { climbing(ina, digest(), 0); }),
                 DropReason::wrong_port);
}

// ---- What the switch above says of one that has another ring. ----

class TreeDiffers : public TreeDrops {
 protected:
  /// The root's ring as it is, but for what `change` makes of it.
  template <typename Change>
  std::uint32_t digest_with(Change&& change) const {
    ring::RingSpec spec = job.ring();
    change(spec);
    return ring::digest_of(spec);
  }

  /// What a switch says of the one hello that it has refused since the last call.
  std::string told(std::size_t node) {
    const InlineSwitch& inside = tree.nodes[node]->inside;
    auto all = inside.refused_hellos().all();
    std::ranges::copy(inside.worker().refused_hellos().all(), std::back_inserter(all));
    std::erase_if(all, [this](const auto& hello) { return hello.at_ns < tree.now.ns; });
    tree.now = frame::Instant{tree.now.ns + 1};
    if (all.size() != 1) {
      return fmt::format("{} hellos", all.size());
    }
    const auto what = conn::tell(all.front(), inside.rings(),
                                 [](std::uint16_t port) { return fmt::format("p{}", port); });
    return fmt::format("{} at p{}: {}", what.hop, all.front().port,
                       conn::text_of(what.differences));
  }

  /// Of a hello on rank 1's connection, by rack A's port of the root.
  template <typename Change>
  std::string told_at_root(Change&& change, std::uint16_t port = 0) {
    tree.into(kRoot, port, hello(1, [&](test::InaSpec& ina) {
                climbing(ina, digest(), 0);
                change(ina);
              }));
    return told(kRoot);
  }

  template <typename Change>
  std::string told_of_ring(Change&& change) {
    return told_at_root([&](test::InaSpec& ina) { ina.message = digest_with(change); });
  }
};

TEST_F(TreeDiffers, InNumbersThatTheDigestTells) {
  EXPECT_EQ(told_of_ring([](auto& ring) { ring.mtu = 4096; }),
            "rack, the switch below at p0: mtu 4096 (here 256)");
  EXPECT_EQ(told_of_ring([](auto& ring) { ring.window = 64; }),
            fmt::format("rack, the switch below at p0: window 64 (here {})", job.ring().window));
  EXPECT_EQ(told_of_ring([](auto& ring) { ring.max_message_bytes = 123'456; }),
            fmt::format("rack, the switch below at p0: max_message_bytes 123456 (here {})",
                        job.ring().max_message_bytes));
  EXPECT_EQ(told_of_ring([](auto& ring) { ring.mtu = 512, ring.window = 1; }),
            fmt::format("rack, the switch below at p0: mtu 512 (here 256), window 1 (here {})",
                        job.ring().window));
}

TEST_F(TreeDiffers, InMembersThatTheDigestDoesNotTell) {
  const auto swapped = [](ring::RingSpec& ring) { std::swap(ring.members[3], ring.members[4]); };
  EXPECT_EQ(told_of_ring(swapped),
            fmt::format("rack, the switch below at p0: digest (of the members, or of several "
                        "numbers) {:08x} (here {:08x})",
                        digest_with(swapped), digest()));
}

TEST_F(TreeDiffers, InRanks) {
  EXPECT_EQ(told_at_root([](auto& ina) { ina.root = 1; }),
            "rack, the switch below at p0: ranks 1-1 (here 0-1)");
  EXPECT_EQ(told_at_root([](auto& ina) { ina.world = 6; }),
            "rack, the switch below at p0: members 6 ranks (here 5 ranks)");
  tree.into(kRoot, 1, hello(3, [&](auto& ina) { climbing(ina, digest(), 2); }));
  EXPECT_EQ(told(kRoot), "rack, the switch below at p1: ranks 2-3 (here 2-4)");
}

TEST_F(TreeDiffers, InTheRingsNumber) {
  EXPECT_EQ(told_at_root([](auto& ina) { ina.ring = 99; }), "rack at p0: ring 99 (here none)");
  EXPECT_EQ(told_at_root([](auto& ina) { ina.ring = 99; }, 3), "0 hellos")
      << "no switch is behind that port";
}

TEST_F(TreeDiffers, InMembersAddresses) {
  RingJob others({.world = 5, .first_own_qp = 0x900, .network_id = 9});
  test::InaSpec ina = others.ina_of(1, 0, 0);
  climbing(ina, digest(), 0);
  ina.collective = 1;
  ina.session = 5;
  test::FrameSpec frame = others.frame_of(1);
  frame.opcode = test::opcode_of(others.spec().verb, 0, 1);
  frame.payload = test::encode(ina);
  tree.into(kRoot, 0, test::build(frame).bytes);
  const auto address = [](const RingJob& of, std::uint16_t rank) {
    return to_string(of.ring().members[rank].ip);
  };
  EXPECT_EQ(told(kRoot),
            fmt::format("rack, the switch below at p0: members rank 1 at {} (here {}), members "
                        "rank 2 at {} (here {})",
                        address(others, 1), address(job, 1), address(others, 2), address(job, 2)));
}

TEST_F(TreeDiffers, InWhereTheCableIs) {
  EXPECT_EQ(told_at_root([](auto&) {}, 1), "rack, the switch below at p1: port p1 (here p0)");
  EXPECT_EQ(told_at_root([](auto&) {}, 6), "nobody of the ring at p6: port p6 (here p0)");
}

/// Hellos alone tell where the ranks of this tree are.
TEST_F(TreeDiffers, InWhatARankAtNoConfiguredPortSays) {
  tree.from_host(0, hello(0, [](auto& ina) { ina.qp = 0; }));
  EXPECT_EQ(told(kA), "rank 0, by its address, at p0: queue pair not told (here needed in a tree)");
  begin();
  const auto newer = [](auto& ina) { ina.session = 0x7777, ina.epoch += 1; };
  tree.into(kA, 4, hello(0, newer));
  EXPECT_EQ(told(kA), "rank 0, by its address, at p4: bound port p4 (here another, by its last "
                      "hello; the cable back there, or `reset ring`, mends it)");
}

TEST_F(TreeDiffers, InWhoAddsUp) {
  tree.into(kRoot, 0, hello(1, [](auto&) {}));
  EXPECT_EQ(told(kRoot),
            fmt::format("rack, the switch below at p0: ring none, or withdrawn (here {})",
                        job.ring().id));
  tree.into(kA, 1, hello(1, [&](auto& ina) { climbing(ina, digest(), 0); }));
  EXPECT_EQ(told(kA), "nobody of the ring at p1: children a switch (here rank 1)");
  tree.into(kA, kUp, hello(4, [](auto&) {}));
  EXPECT_EQ(told(kA), "root, the switch above at p7: parent no switch above (here root)");
}

/// Nobody can fill the table with what is not so, nor with more than one port's share.
TEST_F(TreeDiffers, InNothingThatIsDamagedOrOrdinary) {
  Bytes damaged = hello(1, [&](auto& ina) { climbing(ina, digest() + 1, 0); });
  damaged[damaged.size() - 1] ^= 1;
  tree.into(kRoot, 0, damaged);
  EXPECT_EQ(told(kRoot), "0 hellos");
  for (std::uint32_t ring = 100; ring < 150; ++ring) {
    told_at_root([ring](auto& ina) { ina.ring = ring; });
  }
  const auto& refused = tree.nodes[kRoot]->inside.refused_hellos();
  const auto& by_worker = tree.nodes[kRoot]->inside.worker().refused_hellos();
  EXPECT_EQ(refused.all().size() + by_worker.all().size(), conn::RefusedHellos::kRingsOfPort);
  EXPECT_EQ(refused.count() + by_worker.count(), 50u);
  begin();
  EXPECT_EQ(told(kRoot), "0 hellos");
}

TEST_F(TreeDrops, HellosThatDoNotTellTheirQueuePair) {
  expect_dropped(kA, 1, hello(1, [](auto& ina) { ina.qp = 0; }), DropReason::queue_pair_untold);
  expect_dropped(kA, 1, hello(1, [](auto& ina) { ina.qp = 0x1000000; }),
                 DropReason::queue_pair_untold);
}

TEST_F(TreeDrops, ResultsFromAboveThatNobodyHereWaitsFor) {
  const auto result = [&](test::InaSpec& ina) {
    ina.flags = kInaFlagResult;
    ina.message = job.spec().nonce;
    ina.session = 77;
  };
  expect_dropped(kA, kUp, hello(4, result), DropReason::total_without_set);
  tree.from_host(0, job.hello(0).bytes);
  expect_dropped(kA, kUp, hello(4, result), DropReason::total_without_set);
  tree.from_host(1, job.hello(1).bytes);
  tree.into(kA, kUp, hello(4, result));
  EXPECT_TRUE(tree.nodes[kA]->inside.worker().incarnations().incarnation_of(0)) << "but now";
}

TEST_F(TreeDrops, PartialSumsOfRingsThatThisSwitchDoesNotAddUp) {
  const auto of_another = [&](test::InaSpec& ina) {
    climbing(ina, digest(), 0);
    ina.ring = 99;
  };
  expect_dropped(kRoot, 0, hello(1, of_another), DropReason::partial_of_unknown_ring);
  RingJob strangers({.ring = 99, .world = 2, .network_id = 3});
  test::InaSpec ina = strangers.ina_of(0, 1, 0);
  ina.flags = kInaFlagPartial;
  tree.into(kRoot, 3, strangers.message(0, ina, {}).front().bytes);
  EXPECT_EQ(tree.nodes[kRoot]->dropped(DropReason::partial_of_unknown_ring), 2u);
}

TEST_F(TreeDrops, TotalsOfSumsThatHaveNotLeft) {
  begin();
  const std::uint32_t from_above = tree.session_of(kRoot);
  test::InaSpec ina = job.ina_of(4, 1, 8);
  ina.flags = kInaFlagResult;
  ina.session = from_above;
  expect_dropped(kA, kUp, job.message(4, ina, Bytes(8, 9)).front().bytes, DropReason::total_early);
  ina.session = from_above + 1;
  expect_dropped(kA, kUp, job.message(4, ina, Bytes(8, 9)).front().bytes,
                 DropReason::wrong_session);
}

// ---- What the switch above asks for. ----

/// The root asks again and again where a rank is late. The rank, whose tries would end, must not
/// hear of it: also where a second claim of its queue pair makes its own switch silent. What the
/// switch has in its cache it sends again even then.
TEST_F(TreeDrops, WhatTheSwitchAboveAsksForBeforeTheRankHearsOfIt) {
  begin();
  tree.from_host(1, hello(1, [](auto& ina) { ina.session = 0x777; })); // the same queue pair
  const auto asked = [&](std::uint32_t packet) {
    return test::build(job.answer_to(1, 0x60, job.first_psn_of(1) + packet)).bytes;
  };
  tree.received(1);
  for (int i = 0; i < 8; ++i) {
    expect_dropped(kA, kUp, asked(1), DropReason::nak_mended);
  }
  for (std::uint16_t rank = 0; rank < 2; ++rank) {
    tree.from_host(rank, message(rank, 1, words(rank, 4)).front().bytes);
  }
  const std::uint64_t sent = tree.sent(kA, kUp);
  expect_dropped(kA, kUp, asked(1), DropReason::nak_mended);
  EXPECT_GT(tree.sent(kA, kUp), sent);
  EXPECT_TRUE(tree.received(1).empty());
}

/// The acknowledgement of a rank's message is lost between the switches, and the rank waits for it
/// before it sends on. It does not obey its switch, which may know less than the rank has heard,
/// and whose asks start its timer anew each time. The sum goes up again, so the acknowledgement
/// comes again.
TEST_F(Tree, RaisesASumAgainForARankThatIsLate) {
  let_hosts_answer();
  begin();
  taken.clear();
  tree.loses = [&](const OnLink& frame) {
    return frame.from == kRoot && frame.port == 0 && frame.bytes[kBth] == 0x11;
  };
  all_reduce_with_losses(1, 1);
  tree.loses = [](const OnLink&) { return false; };
  const auto acknowledgements = [&] {
    return std::ranges::count_if(tree.received(1), [&](const Bytes& frame) {
      const std::uint32_t psn = test::get32(frame, kBth + 8) & 0xffffff;
      return frame[kBth] == 0x11 && frame[kBth + 12] == 0x1f && psn == job.first_psn_of(1) + 1;
    });
  };
  EXPECT_EQ(acknowledgements(), 0);
  tree.from_host(0, message(0, 2, words(0, 1)).front().bytes);
  tree.wait(10'000'000);
  EXPECT_EQ(acknowledgements(), 0);
  tree.wait(20'000'000);
  EXPECT_EQ(acknowledgements(), 1) << tree.drops();
}

// ---- Hellos. ----

/// A hello that is lost on its way up is said again by the switch, and its ranks are kept alive.
TEST_F(Tree, ClimbsAgainUntilTheRingBegins) {
  unsigned lost = 0;
  tree.loses = [&](const OnLink& frame) { return frame.from == kA && lost++ < 3; };
  say_hello();
  EXPECT_EQ(lost, 1u);
  tree.wait(200'000'000); // three quarters of 67 ms
  EXPECT_TRUE(tree.nodes[kRoot]->inside.worker().incarnations().incarnation_of(0));
  for (std::uint16_t rank = 0; rank < 5; ++rank) {
    EXPECT_FALSE(tree.received(rank).empty());
  }
}

/// A run that may have begun above already goes on waiting when an older one begins here.
TEST_F(Tree, KeepsASetThatHasClimbedAndIsNewer) {
  std::vector<OnLink> late;
  tree.loses = [&](const OnLink& frame) {
    const bool is_late = frame.from == kRoot && frame.port == 0 && late.empty();
    if (is_late) {
      late.push_back(frame);
    }
    return is_late;
  };
  RingJob first = job;
  say_hello();
  ASSERT_EQ(late.size(), 1u) << "the root has begun the first run, and A does not know it";
  tree.loses = [](const OnLink& frame) { return frame.from == kRoot && frame.port == 0; };
  job.restart(2);
  say_hello();
  ASSERT_EQ(tree.nodes[kRoot]->inside.worker().incarnations().incarnation_of(0)->epoch, 2u);
  tree.into(kA, kUp, late.front().bytes);
  const auto& incarnations = tree.nodes[kA]->inside.worker().incarnations();
  EXPECT_EQ(incarnations.incarnation_of(0)->epoch, 1u);
  EXPECT_EQ(incarnations.waiting_hellos(), 2u) << "of the second run";
  tree.loses = [](const OnLink&) { return false; };
  tree.wait(100'000'000); // it climbs again, which the root answers
  EXPECT_EQ(incarnations.incarnation_of(0)->epoch, 2u) << tree.drops();
}

// ---- A link that is down. ----

/// A switch whose way to another one is down speaks for nobody of that ring: the hosts' timers
/// tell.
TEST_F(Tree, IsSilentWhileALinkToAnotherSwitchIsDown) {
  let_hosts_answer();
  begin();
  const auto data = data_of(1, 10);
  tree.from_host(0, message(0, 1, data[0]).front().bytes);
  tree.wait(100'000'000);
  EXPECT_FALSE(tree.received(0).empty()) << "kept alive";
  tree.nodes[kA]->inside.set_ports_down(l2::PortSet{1} << kUp, tree.now);
  tree.wait(1'000'000'000);
  tree.received(0);
  tree.wait(1'000'000'000);
  EXPECT_TRUE(tree.received(0).empty());
  tree.nodes[kA]->inside.set_ports_down(0, tree.now);
  tree.wait(100'000'000);
  EXPECT_FALSE(tree.received(0).empty()) << "kept alive again";
}

// ---- What collectives make of a tree. ----

TEST_F(Tree, BroadcastsTheRootsData) {
  begin();
  for (std::uint16_t root = 0; root < 5; ++root) {
    const std::uint32_t id = root + 1u;
    const auto data = data_of(id, 4);
    std::vector<std::vector<test::Built>> sent;
    for (std::uint16_t rank = 0; rank < 5; ++rank) {
      test::InaSpec ina = job.ina_of(rank, id, 16);
      ina.session = tree.session_of(tree.node_of(rank));
      ina.collective = 2;
      ina.root = root;
      sent.push_back(job.message(rank, ina, data[rank]));
      tree.from_host(rank, sent.back().front().bytes);
    }
    for (std::uint16_t rank = 0; rank < 5; ++rank) {
      EXPECT_EQ(tree.received(job.successor_of(rank)), results_for(rank, sent[rank], data[root]));
    }
  }
}

// ---- What the bridge makes of it. ----

/// Not of a ring.
Bytes ethernet_of(const wire::MacAddress& source) {
  Bytes frame(60, 0xff);
  std::copy(source.bytes.begin(), source.bytes.end(), frame.begin() + 6);
  test::put16(frame, 12, 0x0806);
  return frame;
}

TEST_F(Tree, WhatComesFromASwitchOfTheTreeTeachesTheBridgeNothing) {
  const auto known_at = [&](std::size_t node, std::uint16_t rank) {
    return tree.nodes[node]->inside.stations().port_of(job.mac_of(rank), tree.now.ms());
  };
  begin();
  all_reduce(1, 200);
  all_reduce(2, 200); // by the shortcut of packets that are expected
  for (std::uint16_t rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(known_at(kRoot, rank), std::nullopt) << rank;
    EXPECT_EQ(known_at(kA, rank), rank < 2 ? std::optional(rank) : std::nullopt) << rank;
    EXPECT_EQ(known_at(kB, rank), rank < 2 ? std::nullopt : std::optional(rank)) << rank;
  }
  tree.nodes[kA]->send(ethernet_of(job.mac_of(4)), kUp, tree.now);
  EXPECT_EQ(known_at(kA, 4), kUp) << "where other frames say";
}

} // namespace
} // namespace weir::stage::tree_test
