// SPDX-License-Identifier: BSD-3-Clause

/// What the log tells of rings, and how often. Each test is a story of looks; the lines are what an
/// operator should read.

#include "events/background_sink.hpp"
#include "events/event_log.hpp"
#include "events/hello_watch.hpp"
#include "events/resource_watch.hpp"
#include "events/ring_watch.hpp"
#include "events/tree_link_watch.hpp"
#include "support/ring_job.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <gmock/gmock.h>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::events::events_test {
namespace {

using testing::ElementsAre;

constexpr std::uint64_t kSecond = 1'000'000'000;

constexpr std::size_t index_of(DropReason reason) {
  return static_cast<std::size_t>(reason);
}

/// One ring of four ranks, and who looks at it.
class Story {
 public:
  Story() {
    snapshot_.children.resize(4);
    snapshot_.incarnation = conn::Incarnation{.epoch = 5, .nonce = 1};
  }

  stage::RingSnapshot& ring() { return snapshot_; }

  std::vector<std::string> at(std::uint64_t second) { return lines({{snapshot_}}, second); }

  std::vector<std::string> without_the_ring(std::uint64_t second) { return lines({}, second); }

  /// Since that second the ring has waited for these children.
  void waits_for(std::vector<std::uint16_t> children, std::uint64_t since, std::uint64_t now) {
    snapshot_.waited_for = std::move(children);
    snapshot_.waiting_ns = (now - since) * kSecond;
    snapshot_.waiting_since_ns = since * kSecond;
  }

  void goes_on() {
    snapshot_.waited_for.clear();
    snapshot_.waiting_ns = 0;
    snapshot_.waiting_since_ns = 0;
  }

 private:
  std::vector<std::string> lines(const std::vector<stage::RingSnapshot>& rings,
                                 std::uint64_t second) {
    std::vector<std::string> lines;
    for (const Event& event : watch_.look(set_, rings, {}, second * kSecond + ++late_ns_)) {
      lines.push_back(line_of(event));
    }
    return lines;
  }

  test::RingJob job_{{.ring = 7, .world = 4}};
  ring::RingSet set_{{job_.ring()}};
  stage::RingSnapshot snapshot_;
  RingWatch watch_;
  std::uint64_t late_ns_ = 0; // the looking thread's clock goes on after the stop
};

/// Names come from the configuration, certificates and the network. None of them begins a line or
/// a field.
TEST(EventLine, IsOneLineWhateverItsTextsHold) {
  EXPECT_EQ(line_of({EventKind::port_down,
                     "port \x1b[2Jp0\nweir: all is well: down",
                     {{"port", "p0 severity=0]\n"}}}),
            "port \\x1b[2Jp0\\x0aweir: all is well: down "
            "[port_down port=p0\\x20severity=0]\\x0a]");
}

TEST(RingWatch, TellsOnceThatAJobHasBegunAndThatItWasGivenUp) {
  Story story;
  EXPECT_THAT(story.at(100),
              ElementsAre("ring 7: a job of 4 ranks has begun [job_began ring=7 ranks=4 epoch=5]"));
  EXPECT_THAT(story.at(101), ElementsAre());
  story.ring().incarnation->nonce = 2; // the same epoch: it is another run all the same
  EXPECT_THAT(story.at(102),
              ElementsAre("ring 7: a job of 4 ranks has begun [job_began ring=7 ranks=4 epoch=5]"));
  story.ring().incarnation.reset();
  EXPECT_THAT(story.at(103),
              ElementsAre("ring 7: its job is given up; new hellos begin the next one [job_reset "
                          "ring=7 epoch=5]"));
}

TEST(RingWatch, TellsWithTheJobWhoseAddressesItDoesNotPin) {
  Story story;
  story.ring().unpinned = {0, 2};
  EXPECT_THAT(story.at(100),
              ElementsAre("ring 7: a job of 4 ranks has begun [job_began ring=7 ranks=4 epoch=5]",
                          "ring 7: the MAC address of ranks 0, 2 was heard at another port too; it "
                          "is not pinned [mac_not_pinned ring=7 ranks=0,2]"));
  EXPECT_THAT(story.at(101), ElementsAre());
}

TEST(RingWatch, TellsWithTheJobWhichOfItsOperatorsAreNotHere) {
  Story story;
  wire::OperatorEntry entry{.number = 129, .reserved = {}, .digest = {0xab, 0x01}};
  story.ring().ungranted = {entry};
  const std::string digest = "ab01" + std::string(60, '0');
  EXPECT_THAT(story.at(100),
              ElementsAre("ring 7: a job of 4 ranks has begun [job_began ring=7 ranks=4 epoch=5]",
                          "ring 7: its job's operator 1 (number 129) has the digest " + digest +
                              ", which is not loaded here; no switch folds by it [operator_missing "
                              "ring=7 number=129 digest=" +
                              digest + "]"));
  EXPECT_THAT(story.at(101), ElementsAre());
}

TEST(RingWatch, ForgetsARingThatIsGone) {
  Story story;
  story.at(100);
  EXPECT_THAT(story.without_the_ring(101), ElementsAre());
  EXPECT_EQ(story.at(102).size(), 1u) << "another ring of this id: its job begins";
}

TEST(RingWatch, NamesAStragglerOnceAndSaysWhenItCame) {
  Story story;
  story.at(100);
  story.waits_for({1, 3}, 100, 109);
  EXPECT_THAT(story.at(109), ElementsAre()) << "nine seconds are nothing";
  story.waits_for({1, 3}, 100, 110);
  EXPECT_THAT(
      story.at(110),
      ElementsAre("ring 7: has waited 10.0 s for ranks 1, 3; `show ring 7 stuck` tells more "
                  "[straggler ring=7 ranks=1,3 waited_s=10.0]"));
  story.waits_for({3}, 100, 150);
  EXPECT_THAT(story.at(150), ElementsAre()) << "told";
  story.goes_on();
  EXPECT_THAT(
      story.at(151),
      ElementsAre("ring 7: goes on; for 51.0 s it had waited for rank 3 [straggler_came ring=7 "
                  "ranks=3 waited_s=51.0]"));
  story.waits_for({2}, 152, 163);
  EXPECT_EQ(story.at(163).size(), 1u) << "the next one is told of again";
}

TEST(RingWatch, SeesThatAnotherSlotWaitsNow) {
  Story story;
  story.at(100);
  story.waits_for({1}, 100, 111);
  EXPECT_EQ(story.at(111).size(), 1u);
  story.waits_for({1}, 111, 112); // the next packets of the same rank
  EXPECT_THAT(story.at(112),
              ElementsAre(testing::HasSubstr("[straggler_came ring=7 ranks=1 waited_s=12.0]")));
  story.waits_for({1}, 111, 121);
  EXPECT_THAT(story.at(121),
              ElementsAre(testing::HasSubstr("[straggler ring=7 ranks=1 waited_s=10.0]")));
}

TEST(RingWatch, TellsWhoseHelloIsMissing) {
  Story story;
  story.ring().incarnation.reset();
  story.ring().children[0].waiting_hellos = 1;
  story.ring().children[2].waiting_hellos = 1;
  EXPECT_THAT(story.at(100), ElementsAre());
  EXPECT_THAT(story.at(102), ElementsAre());
  EXPECT_THAT(story.at(103),
              ElementsAre("ring 7: no hello of ranks 1, 3, for which the others have waited 3.0 s "
                          "[hello_missing ring=7 ranks=1,3 waited_s=3.0]"));
  EXPECT_THAT(story.at(131), ElementsAre());
  story.ring().children[3].waiting_hellos = 1;
  EXPECT_THAT(story.at(140), ElementsAre(testing::HasSubstr("no hello of rank 1,")));
  for (conn::ChildStatus& child : story.ring().children) {
    child.waiting_hellos = 0;
  }
  EXPECT_THAT(story.at(141), ElementsAre());
  story.ring().children[0].waiting_hellos = 1;
  EXPECT_THAT(story.at(150), ElementsAre()) << "a new wait begins";
}

TEST(RingWatch, TellsOfLossOnALinkAtMostOnceAMinute) {
  Story story;
  story.at(100);
  story.ring().children[3].recovery.naks = 2;
  story.ring().children[2].recovery.mended = 1; // of results for rank 3
  EXPECT_THAT(story.at(101),
              ElementsAre("ring 7: 2 times packets from rank 3 are repeated: lost or late [loss "
                          "ring=7 rank=3 direction=from packets=2]",
                          "ring 7: 1 times packets to rank 3 are repeated: lost, or not "
                          "acknowledged in time [loss ring=7 rank=3 direction=to packets=1]"));
  story.ring().children[3].recovery.naks = 12;
  EXPECT_THAT(story.at(102), ElementsAre());
  story.ring().children[3].recovery.rnr_naks = 5;
  EXPECT_THAT(story.at(160), ElementsAre());
  EXPECT_THAT(story.at(161),
              ElementsAre(testing::HasSubstr("[loss ring=7 rank=3 direction=from packets=15]")));
  EXPECT_THAT(story.at(300), ElementsAre()) << "no news";
}

TEST(RingWatch, CountsAgainAfterARingHasBegunToCountAnew) {
  Story story;
  story.ring().children[0].recovery.naks = 50;
  story.at(100);
  story.ring().children[0].recovery.naks = 3;
  EXPECT_THAT(story.at(200), ElementsAre(testing::HasSubstr("packets=3]")));
}

TEST(RingWatch, TellsOfDropsButNotOfRepeats) {
  Story story;
  story.at(100);
  story.ring().counters.dropped[index_of(DropReason::repeat_held)] = 9;
  EXPECT_THAT(story.at(101), ElementsAre());
  story.ring().counters.dropped[index_of(DropReason::disagree_type)] = 1;
  EXPECT_THAT(
      story.at(102),
      ElementsAre("ring 7: 1 packets dropped: data type differs from the other ranks' [ring_drops "
                  "ring=7 reason=disagree_type packets=1]"));
}

TEST(RingWatch, NamesAtMostEightRanks) {
  test::RingJob job({.ring = 1, .world = 12});
  const ring::RingSet set({job.ring()});
  stage::RingSnapshot snapshot{.waited_for = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
                               .waiting_ns = 20 * kSecond};
  snapshot.children.resize(12);
  RingWatch watch;
  const auto events = watch.look(set, {{snapshot}}, {}, 100 * kSecond);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_THAT(events[0].text, testing::HasSubstr("ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more;"));
  EXPECT_EQ(events[0].fields[1].value, "0,1,2,3,4,5,6,7,8,9") << "programs get them all";
}

TEST(RingWatch, NamesASwitchBelowByItsRanks) {
  const test::RingJob job({.ring = 1, .world = 6});
  ring::RingSpec spec = job.ring();
  spec.children = {
      {.ranks = {2, 1}},
      {.ranks = {3, 2}, .port = 1, .kind = ring::ChildKind::switch_below, .name = "b"}};
  spec.parent = {.port = 2, .name = "a"};
  const ring::RingSet set({spec});
  const auto told_of = [&set](std::vector<std::uint16_t> senders) {
    stage::RingSnapshot snapshot{.waited_for = std::move(senders), .waiting_ns = 20 * kSecond};
    snapshot.children.resize(3);
    const std::vector<PortLink> ports{{"p0"}, {"p1"}, {"up0"}};
    const auto events = RingWatch().look(set, {{snapshot}}, ports, 100 * kSecond);
    return events.size() == 1 ? line_of(events[0]) : "";
  };
  EXPECT_THAT(told_of({0}), testing::HasSubstr("20.0 s for rank 2;"));
  EXPECT_THAT(told_of({1}), testing::HasSubstr("20.0 s for ranks 3-4 (b at port p1);"));
  EXPECT_THAT(told_of({1}), testing::HasSubstr("ranks=3-4 waited_s=20.0 switch=b port=p1]"));
  EXPECT_THAT(told_of({0, 1}), testing::HasSubstr("20.0 s for ranks 2, 3-4 (b at port p1);"));
  EXPECT_THAT(told_of({2}), testing::HasSubstr("20.0 s for the switch above, a at port up0;"));
  EXPECT_THAT(told_of({2}), testing::HasSubstr("ranks=parent waited_s=20.0 switch=a port=up0]"));
}

/// Ring 7 has rank 0, a switch below at port p1 and one above at port up0.
ring::RingSpec ring_of_a_tree(std::uint32_t id, const std::string& parent = "spine") {
  ring::RingSpec spec = test::RingJob({.ring = id, .world = 4}).ring();
  spec.children = {
      {.ranks = {0, 1}},
      {.ranks = {1, 2}, .port = 1, .kind = ring::ChildKind::switch_below, .name = "rack"}};
  spec.parent = {.port = 2, .name = parent};
  return spec;
}

const std::vector<PortLink> kAllUp{{"p0", "up"}, {"p1", "up"}, {"up0", "up"}};

TEST(RingWatch, TellsThatTheSwitchAboveDoesNotAnswerHellos) {
  const ring::RingSet set({ring_of_a_tree(7)});
  stage::RingSnapshot snapshot{.climbing_ns = 0};
  snapshot.children.assign(2, {.waiting_hellos = 1});
  RingWatch watch;
  const auto lines_at = [&](std::uint64_t second) {
    std::vector<std::string> lines;
    for (const Event& event : watch.look(set, {{snapshot}}, kAllUp, second * kSecond)) {
      lines.push_back(line_of(event));
    }
    return lines;
  };
  EXPECT_THAT(lines_at(100), ElementsAre());
  EXPECT_THAT(lines_at(102), ElementsAre());
  EXPECT_THAT(lines_at(103),
              ElementsAre("ring 7: no answer to the hellos here of the switch above, spine at port "
                          "up0, for 3.0 s; `show ring 7` there tells more [hello_missing ring=7 "
                          "ranks=parent waited_s=3.0 switch=spine port=up0]"));
  EXPECT_THAT(lines_at(140), ElementsAre());
  snapshot.children[1].waiting_hellos = 0;
  snapshot.climbing_ns.reset();
  EXPECT_THAT(
      lines_at(141),
      ElementsAre("ring 7: no hello of ranks 1-2 (rack at port p1), for which the others have "
                  "waited 41.0 s [hello_missing ring=7 ranks=1-2 waited_s=41.0 switch=rack "
                  "port=p1]"));
}

/// A hello that climbs from the switch "rack", which has ranks 1 and 2, by `port`.
conn::RefusedHello refused_hello(std::uint32_t ring, std::uint32_t digest, std::uint16_t port,
                                 std::uint64_t second) {
  const ring::RingSpec spec = ring_of_a_tree(ring);
  conn::RefusedHello hello{.source = spec.members[2].ip,
                           .destination = spec.members[3].ip,
                           .port = port,
                           .reason = DropReason::ring_differs,
                           .at_ns = second * kSecond,
                           .count = 1};
  hello.header.ring_id.set(ring);
  hello.header.flags = kInaFlagPartial;
  hello.header.world.set(4);
  hello.header.rank.set(2);
  hello.header.root.set(1);
  hello.header.message_id.set(digest);
  return hello;
}

TEST(HelloWatch, TellsOnceInWhatASwitchDiffers) {
  const ring::RingSet set({ring_of_a_tree(7)});
  ring::RingSpec other = ring_of_a_tree(7);
  other.window += 3;
  const auto line = fmt::format(
      "ring 7: rack, the switch below at port p1 has it otherwise: window {} (here {}); no job "
      "begins [hello_refused ring=7 port=p1 reason=ring_differs field=window theirs={} ours={}]",
      other.window, other.window - 3, other.window, other.window - 3);
  HelloWatch watch;
  std::vector<conn::RefusedHello> refused;
  const auto at = [&](std::uint64_t second, std::uint32_t digest, std::uint16_t port = 1) {
    refused.push_back(refused_hello(7, digest, port, second));
    std::vector<std::string> lines;
    for (const Event& event : watch.look(set, refused, kAllUp)) {
      lines.push_back(line_of(event));
    }
    return lines;
  };
  EXPECT_TRUE(watch.look(set, {}, kAllUp).empty());
  EXPECT_THAT(at(100, ring::digest_of(other)), ElementsAre(line));
  EXPECT_THAT(at(101, ring::digest_of(other)), ElementsAre());
  other.window += 1;
  EXPECT_THAT(at(102, ring::digest_of(other)), ElementsAre(testing::HasSubstr("window")));
  EXPECT_THAT(at(160, ring::digest_of(other)), ElementsAre());
  EXPECT_THAT(at(221, ring::digest_of(other)), ElementsAre(testing::HasSubstr("window")))
      << "none had come for a minute";
  EXPECT_THAT(at(222, ring::digest_of(ring_of_a_tree(7)), 2),
              ElementsAre("port up0: a hello for ring 7 has come by it, from rack, the switch "
                          "below, and belongs to port p1; is the cable in the right port? "
                          "[wrong_cable port=up0 ring=7 "
                          "right_port=p1]"));
}

TEST(Events, AreAllInTheManual) {
  std::ifstream file(WEIR_SOURCE_ROOT "/docs/operating.md");
  const std::string manual{std::istreambuf_iterator<char>(file), {}};
  for (const EventRow& row : kEvents) {
    const char* level = row.severity == Severity::error     ? "error"
                        : row.severity == Severity::warning ? "warning"
                                                            : "notice";
    const std::string line = fmt::format("\n| `{}` | {} | {} | ", row.name, level, row.about);
    EXPECT_NE(manual.find(line), manual.npos) << line;
  }
}

std::vector<std::string> lines_of(const std::vector<Event>& events) {
  std::vector<std::string> lines;
  for (const Event& event : events) {
    lines.push_back(line_of(event));
  }
  return lines;
}

TEST(PortWatch, TellsOfLinksThatChange) {
  PortWatch watch;
  const std::vector<PortLink> first{{"p0", "up 100000 Mbit/s"}, {"p1", "down"}};
  EXPECT_THAT(lines_of(watch.look(first)),
              ElementsAre("port p1: its link is down [port_down port=p1]"));
  EXPECT_THAT(lines_of(watch.look(first)), ElementsAre());
  const std::vector<PortLink> then{{"p0", "up 25000 Mbit/s"}, {"p1", "up 100000 Mbit/s"}};
  EXPECT_THAT(lines_of(watch.look(then)),
              ElementsAre("port p0: its link is up 25000 Mbit/s [port_up port=p0]",
                          "port p1: its link is up 100000 Mbit/s [port_up port=p1]"));
  EXPECT_THAT(lines_of(watch.look({})), ElementsAre()) << "a port that is gone has no link";
  EXPECT_THAT(lines_of(watch.look(then)), ElementsAre()) << "a port that comes up is no news";
}

TEST(TreeLinkWatch, NamesTheRingsOfADeadLinkOnce) {
  const ring::RingSet set({ring_of_a_tree(7), ring_of_a_tree(8)});
  TreeLinkWatch watch;
  const auto look = [&](const ring::RingSet& rings, const char* p1, const char* up0) {
    return lines_of(
        watch.look(rings, std::vector<PortLink>{{"p0", "down"}, {"p1", p1}, {"up0", up0}}));
  };
  EXPECT_THAT(look(set, "up", "up"), ElementsAre()) << "no rank's port is one of a tree's link";
  EXPECT_THAT(look(set, "up", "down"),
              ElementsAre("port up0: no link to spine, the switch above in the tree of rings 7, 8; "
                          "jobs wait for it until their hosts' retries end [tree_link_down "
                          "port=up0 switch=spine rings=7,8]"));
  EXPECT_THAT(look(set, "up", "gone"), ElementsAre());
  const ring::RingSet more = set.with(ring_of_a_tree(9));
  EXPECT_THAT(look(more, "up", "down"),
              ElementsAre(testing::HasSubstr("switch above in the tree of ring 9;")));
  EXPECT_THAT(
      look(more, "down", "up, speed unknown"),
      ElementsAre("port p1: no link to rack, the switch below in the tree of rings 7, 8, "
                  "9; jobs wait for it until their hosts' retries end [tree_link_down "
                  "port=p1 switch=rack rings=7,8,9]",
                  "port up0: the link to spine is up again, or no ring needs it; there was "
                  "none for rings 7, 8, 9 [tree_link_up port=up0 switch=spine rings=7,8,9]"));
}

TEST(TreeLinkWatch, NamesAtMostEightRings) {
  ring::RingSet set({ring_of_a_tree(1)});
  for (std::uint32_t id = 2; id <= 10; ++id) {
    set = set.with(ring_of_a_tree(id));
  }
  const std::vector<PortLink> ports{{"p0", "up"}, {"", ""}, {"up0", "down"}};
  const auto events = TreeLinkWatch().look(set, ports);
  ASSERT_EQ(events.size(), 1u) << "a place without a port has no link";
  EXPECT_THAT(events[0].text, testing::HasSubstr("rings 1, 2, 3, 4, 5, 6, 7, 8 and 2 more;"));
  EXPECT_EQ(events[0].fields[2].value, "1,2,3,4,5,6,7,8,9,10") << "programs get them all";
}

TEST(PortWatch, SaysWhatWillHelp) {
  PortWatch watch;
  const auto look = [&](const PortLink& link) { return lines_of(watch.look({&link, 1})); };
  EXPECT_THAT(look({"p0", "up 10000 Mbit/s", ""}), ElementsAre());
  EXPECT_THAT(look({"p0", "gone", "a restart"}),
              ElementsAre("port p0: its link is gone; a restart [port_down port=p0]"));
  EXPECT_THAT(look({"p0", "gone", "a restart"}), ElementsAre());
  EXPECT_THAT(look({"p0", "gone", "a larger MTU"}),
              ElementsAre("port p0: its link is gone; a larger MTU [port_down port=p0]"));
  EXPECT_THAT(look({"p0", "up, speed unknown", ""}),
              ElementsAre("port p0: its link is up, speed unknown [port_up port=p0]"));
}

TEST(SettingWatch, TellsOnceWhatADriverRefuses) {
  SettingWatch watch;
  const auto look = [&](const std::vector<RefusedSetting>& settings) {
    return lines_of(watch.look(settings));
  };
  EXPECT_THAT(look({{"p0", "full", "full: 3"}, {"p1", "", ""}}),
              ElementsAre("full: 3 [setting_refused port=p0]"));
  EXPECT_THAT(look({{"p0", "full", "full: 5"}, {"p1", "", ""}}), ElementsAre());
  EXPECT_THAT(look({{"p0", "", ""}, {"p1", "old", "old: 1"}}),
              ElementsAre("old: 1 [setting_refused port=p1]"));
  EXPECT_THAT(look({{"p0", "full", "full: 3"}}), ElementsAre("full: 3 [setting_refused port=p0]"))
      << "it was well meanwhile";
}

TEST(BufferWatch, TellsAtATwentiethAndAtATenth) {
  BufferWatch watch;
  EXPECT_THAT(lines_of(watch.look({50, 1000})), ElementsAre());
  EXPECT_THAT(lines_of(watch.look({49, 1000})),
              ElementsAre("49 of 1000 packet buffers are free [buffers_low free=49]"));
  EXPECT_THAT(lines_of(watch.look({99, 1000})), ElementsAre()) << "neither low nor back";
  EXPECT_THAT(lines_of(watch.look({100, 1000})),
              ElementsAre("100 of 1000 packet buffers are free [buffers_back free=100]"));
}

/// Before it is short: what was left does not come back by itself.
TEST(NeighbourWatch, TellsOnceOfFourFifths) {
  NeighbourWatch watch;
  const auto look = [&watch](std::uint64_t all, std::uint64_t reds) {
    return lines_of(
        watch.look(std::vector<RememberedNeighbours>{{"", all, 1000}, {"red", reds, 10}}));
  };
  EXPECT_THAT(look(799, 7), ElementsAre());
  EXPECT_THAT(
      look(799, 8),
      ElementsAre("tenant red: the switch remembers 8 of at most 10 neighbours, those of "
                  "withdrawn rings included [neighbours_short tenant=red neighbours=8 most=10]"));
  EXPECT_THAT(
      look(800, 9),
      ElementsAre("all rings: the switch remembers 800 of at most 1000 neighbours, those of "
                  "withdrawn rings included [neighbours_short tenant=- neighbours=800 most=1000]"));
  EXPECT_THAT(look(1000, 10), ElementsAre());
  EXPECT_THAT(lines_of(watch.look(std::vector<RememberedNeighbours>{{"blue", 0, 0}})),
              ElementsAre())
      << "it may have none";
}

/// Keeps the lines.
struct Lines : LineSink {
  explicit Lines(std::vector<std::string>& lines) : lines(lines) {}

  void put(const Event& event) override { lines.push_back(line_of(event)); }

  std::vector<std::string>& lines;
};

/// The rings that are here may be the ones that were meant. No field has a blank.
TEST(HelloWatch, TellsWhoHasARingThatIsNotHere) {
  const ring::RingSet set({ring_of_a_tree(7), ring_of_a_tree(9)});
  HelloWatch watch;
  std::vector<std::string> lines;
  for (const Event& event : watch.look(set, {{refused_hello(8, 0, 1, 100)}}, kAllUp)) {
    lines.push_back(line_of(event));
  }
  EXPECT_THAT(lines, ElementsAre("ring 8 is not here, but rings 7, 9: rack at port p1 says hello "
                                 "for it; no job begins [hello_refused ring=8 port=p1 "
                                 "reason=ring_differs field=ring theirs=8 ours=none]"));
  lines.clear();
  conn::RefusedHello hello = refused_hello(7, 0, 1, 101);
  hello.header.world.set(5);
  for (const Event& event : watch.look(set, {{hello}}, kAllUp)) {
    lines.push_back(line_of(event));
  }
  EXPECT_THAT(lines, ElementsAre(testing::HasSubstr(" theirs=5_ranks ours=4_ranks]")));
}

/// Hosts that have hellos refused each second, and the log that gets what is told of it.
class HelloFlood : public testing::Test {
 protected:
  /// Each time another ring, and each second another number of ranks.
  void flood_by(std::uint16_t port, std::uint64_t second) {
    for (std::uint32_t i = 0; i < 8; ++i) {
      const auto ring = static_cast<std::uint32_t>(101 + (i + second) % kRings);
      refused_.push_back(refused_hello(ring, 0, port, second));
      refused_.back().header.world.set(static_cast<std::uint16_t>(5 + second % 50));
    }
  }

  /// A window that is not the ring's.
  void differ_by(std::uint16_t port, std::uint64_t second, std::uint32_t window = 77) {
    ring::RingSpec other = ring_of_a_tree(7);
    other.window = window;
    refused_.push_back(refused_hello(7, ring::digest_of(other), port, second));
  }

  void look(std::uint64_t second) {
    const LineLimit::Clock::time_point now{std::chrono::seconds(second)};
    for (const Event& event : watch_.look(set_, refused_, kAllUp)) {
      log_.write(event, now);
    }
    log_.tell_left_out(now);
    refused_.clear();
  }

  /// A flood by port 0, and a switch at port 1 that differs from the 30th second on. Its line comes
  /// at once, and again five minutes later.
  void ten_minutes() {
    for (std::uint64_t second = 1000; second < 1600; ++second) {
      flood_by(0, second);
      if (second >= 1030) {
        differ_by(1, second);
      }
      look(second);
      const std::size_t times = second < 1030 ? 0 : second < 1330 ? 1 : 2;
      ASSERT_EQ(lines_with("[hello_refused ring=7 port=p1 "), times) << second;
    }
  }

  std::size_t lines_with(const std::string& words) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        lines_, [&](const std::string& line) { return line.find(words) != line.npos; }));
  }

  static constexpr std::uint32_t kRings = 12;

  /// Ring 7, and those that the flood is for. These may have rank 0 at a port.
  static ring::RingSet rings_with(std::optional<std::uint16_t> port_of_rank) {
    ring::RingSet set({ring_of_a_tree(7)});
    for (std::uint32_t i = 0; i < kRings; ++i) {
      ring::RingSpec spec = ring_of_a_tree(101 + i);
      spec.children.front().port = port_of_rank;
      set = set.with(std::move(spec));
    }
    return set;
  }

  std::vector<std::string> lines_;

  ring::RingSet set_ = rings_with({});
  HelloWatch watch_;
  EventLog log_{std::make_unique<Lines>(lines_)};
  std::vector<conn::RefusedHello> refused_;
};

TEST_F(HelloFlood, OfAStrangerHidesNoDifference) {
  ten_minutes();
  EXPECT_EQ(lines_with("[hello_stray port=p0 "), 10u) << "one a minute";
  EXPECT_EQ(lines_.size(), 12u);
  EXPECT_EQ(lines_[0],
            "port p0: a hello for ring 105, from nobody of the ring, is refused: members 5 "
            "ranks (here 4 ranks) [hello_stray port=p0 ring=105 reason=ring_differs]");
}

TEST_F(HelloFlood, OfARankHidesNoDifferenceOfASwitch) {
  set_ = rings_with(0);
  ten_minutes();
  EXPECT_EQ(lines_with(" rank 0 at port p0 has it otherwise"), 10u);
  EXPECT_EQ(lines_.size(), 12u);
}

/// The switch that differs has had its ten lines, and the last difference is not among them.
TEST_F(HelloFlood, WhatTheLogLeftOutIsToldLater) {
  for (std::uint64_t second = 1000; second < 1400; ++second) {
    differ_by(1, second,
              50 + static_cast<std::uint32_t>(std::min<std::uint64_t>(second - 1000, 20)));
    look(second);
    ASSERT_EQ(lines_with("window 70 (here "), second < 1320 ? 0u : 1u) << second;
  }
  EXPECT_EQ(lines_with("[hello_refused "), 11u);
}

TEST(EventLog, LeavesOutWhatIsTooMuchAndSaysSo) {
  std::vector<std::string> lines;
  EventLog log(std::make_unique<Lines>(lines));
  const LineLimit::Clock::time_point start{};
  const Event flood{EventKind::loss, "ring 7: lost", {{"ring", "7"}}};
  for (int i = 0; i < 25; ++i) {
    log.write(flood, start + std::chrono::seconds(i));
  }
  EXPECT_EQ(lines.size(), EventLog::kMostLines);
  log.write({EventKind::loss, "ring 8: lost", {{"ring", "8"}}}, start + std::chrono::seconds(25));
  log.write({EventKind::ring_drops, "ring 7: dropped", {{"ring", "7"}}},
            start + std::chrono::seconds(26));
  EXPECT_EQ(lines.size(), EventLog::kMostLines + 2) << "another ring, another kind";
  lines.clear();
  log.tell_left_out(start + std::chrono::seconds(59));
  EXPECT_THAT(lines, ElementsAre());
  log.tell_left_out(start + std::chrono::seconds(60));
  EXPECT_THAT(
      lines,
      ElementsAre(
          "15 more lines of `loss ring=7` in a minute were left out [lines_left_out lines=15]"));
  lines.clear();
  log.write(flood, start + std::chrono::seconds(61));
  EXPECT_THAT(lines, ElementsAre("ring 7: lost [loss ring=7]"));
  log.tell_left_out(start + std::chrono::seconds(200));
  EXPECT_EQ(lines.size(), 1u) << "nothing was left out this time";
  lines.clear();
  for (int i = 0; i < 25; ++i) {
    log.write({EventKind::reloaded, "reload: a change", {{"key", "drain_s"}}}, start);
  }
  EXPECT_EQ(lines.size(), 25u) << "somebody has asked for each";
}

TEST(EventLog, BoundsAKindHoweverManyRingsThereAre) {
  std::vector<std::string> lines;
  EventLog log(std::make_unique<Lines>(lines));
  const LineLimit::Clock::time_point start{};
  for (int ring = 0; ring < 250; ++ring) {
    log.write({EventKind::loss, "lost", {{"ring", fmt::format("{}", ring)}}}, start);
  }
  EXPECT_EQ(lines.size(), 100u);
  lines.clear();
  log.tell_left_out(start + std::chrono::seconds(60));
  EXPECT_THAT(lines, ElementsAre("150 more lines of `loss of all` in a minute were left out "
                                 "[lines_left_out lines=150]"));
}

TEST(EventLog, HidesNoTenantsLinesForAnotherOne) {
  std::vector<std::string> lines;
  EventLog log(std::make_unique<Lines>(lines));
  const LineLimit::Clock::time_point start{};
  const auto end = [&](int region, const char* tenant) {
    const std::string id = fmt::format("{}", region);
    log.write({EventKind::region_ended, "ended", {{"region", id}, {"tenant", tenant}}}, start);
  };
  for (int region = 0; region < 250; ++region) {
    end(region, "red");
  }
  EXPECT_EQ(lines.size(), 100u);
  lines.clear();
  end(250, "blue");
  end(251, "-");
  EXPECT_THAT(lines, ElementsAre("ended [region_ended region=250 tenant=blue]",
                                 "ended [region_ended region=251 tenant=-]"));
  lines.clear();
  log.tell_left_out(start + std::chrono::seconds(60));
  EXPECT_THAT(lines,
              ElementsAre("150 more lines of `region_ended of tenant red` in a minute were left "
                          "out [lines_left_out lines=150]"));
}

/// Takes nothing until it is opened.
class Stuck : public Lines {
 public:
  Stuck(std::vector<std::string>& lines, std::shared_future<void> opened)
      : Lines(lines), opened_(std::move(opened)) {}

  void put(const Event& event) override {
    opened_.wait();
    Lines::put(event);
  }

 private:
  std::shared_future<void> opened_;
};

TEST(BackgroundSink, HoldsUpNobodyAndLosesNothingWithoutAWord) {
  std::vector<std::string> lines;
  std::promise<void> open;
  const std::size_t last = BackgroundSink::kMostWaiting + 10;
  {
    BackgroundSink sink(std::make_unique<Stuck>(lines, open.get_future().share()));
    for (std::size_t ring = 0; ring <= last; ++ring) {
      sink.put({EventKind::loss, fmt::format("ring {}", ring), {}});
    }
    open.set_value();
  }
  ASSERT_GE(lines.size(), BackgroundSink::kMostWaiting + 1);
  EXPECT_EQ(lines[0], "ring 0 [loss]");
  EXPECT_EQ(lines[BackgroundSink::kMostWaiting - 1],
            fmt::format("ring {} [loss]", BackgroundSink::kMostWaiting - 1));
  const std::size_t written = lines.size() - 1;
  EXPECT_EQ(lines.back(), fmt::format("{0} lines were left out: the log took none "
                                      "[lines_left_out lines={0}]",
                                      last + 1 - written));
}

} // namespace
} // namespace weir::events::events_test
