// SPDX-License-Identifier: BSD-3-Clause

/// docs/protocol.md §3, "Each port by itself": what strangers can make of a queue pair of which the
/// switch knows nothing, since it was restarted during a message.

#include "classifier_fixture.hpp"

#include <functional>

namespace weir::conn::classify_restart_test {
namespace {

using test::Built;
using test::InaSpec;
using test::RingJob;

constexpr std::uint16_t kMemberPort = 0;
constexpr std::uint32_t kOtherRing = 77;
constexpr std::uint32_t kOtherSession = 0xabad1dea;

/// Rank 0's message of four packets, to which rank 1 has perhaps the first results.
std::vector<Built> raw_message(RingJob& job) {
  return job.message(0, 1, test::Bytes(256 * 4 - 40 - 8, 0x22));
}

Built of_other_ring(const Built& frame) {
  return poked(frame, test::kInaRingAt, kOtherRing);
}

using Frames = std::vector<Built>;

struct Forgery {
  const char* description;
  std::function<Frames(RingJob&)> frames;
};

/// Rank 0's and rank 1's hello of an incarnation, rank 0's on this queue pair.
Frames false_hellos(RingJob& job, std::uint32_t nonce, std::uint32_t qp) {
  return {poked(with_qp(job.hello(0), qp), test::kInaSessionAt, nonce),
          poked(with_qp(job.hello(1), qp), test::kInaSessionAt, nonce)};
}

/// All that a stranger can say in rank 0's name to change what its queue pair is.
const std::vector<Forgery> kForgeries{
    {"a plain ONLY", [](RingJob& j) { return Frames{plain(j, 0, kOnly)}; }},
    {"a plain FIRST", [](RingJob& j) { return Frames{plain(j, 0, kFirst)}; }},
    {"a plain SEND", [](RingJob& j) { return Frames{plain(j, 0, 0x04)}; }},
    {"a plain SEND FIRST", [](RingJob& j) { return Frames{plain(j, 0, 0x00)}; }},
    {"a SEND with Invalidate", [](RingJob& j) { return Frames{plain(j, 0, 0x17)}; }},
    {"a READ", [](RingJob& j) { return Frames{plain(j, 0, 0x0c)}; }},
    {"a plain MIDDLE", [](RingJob& j) { return Frames{plain(j, 0, kMiddle)}; }},
    {"the member's own FIRST", [](RingJob& j) { return Frames{raw_message(j)[0]}; }},
    {"its hello", [](RingJob& j) { return Frames{j.hello(0)}; }},
    {"another ring, with a hello that was answered",
     [](RingJob& j) {
       InaSpec answer = j.ina_of(1, 0, 0);
       answer.ring = kOtherRing;
       answer.flags = 1;
       answer.collective = 1;
       answer.session = kOtherSession;
       test::FrameSpec to_member = j.frame_of(1);
       to_member.opcode = kOnly;
       to_member.payload = encode(answer);
       return Frames{build(to_member), of_other_ring(j.hello(0)),
                     poked(of_other_ring(raw_message(j)[0]), test::kInaSessionAt, kOtherSession)};
     }},
    {"results of another ring",
     [](RingJob& j) {
       const Built result = poked_byte(of_other_ring(raw_message(j)[0]), test::kInaFlagsAt, 1);
       return Frames{of_other_ring(j.hello(0)), result};
     }},
    {"a ring's incarnation on its queue pair, and the next one elsewhere",
     [](RingJob& j) {
       Frames frames = false_hellos(j, 0xbad1, j.qp_of(0));
       for (const Built& frame : false_hellos(j, 0xbad2, 0x999)) {
         frames.push_back(frame);
       }
       return frames;
     }},
};

/// How the switch came to know nothing of the queue pair.
struct Restart {
  const char* description;
  std::function<void(ClassifierFixture&)> happen;
};

const std::vector<Restart> kRestarts{
    {"it has the ring", [](ClassifierFixture&) {}},
    {"the ring was withdrawn", [](ClassifierFixture& fixture) { fixture.withdraw(0); }},
};

/// What of the member's raw packets from `first` on passes when a stranger says all of these before
/// each of them.
std::string passes_beside(const Restart& restart, std::size_t first, std::uint16_t port,
                          const std::vector<const Forgery*>& forgeries) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()});
  restart.happen(fixture);
  const auto message = raw_message(job);
  std::string passed;
  for (int round = 0; round < 2; ++round) {
    for (std::size_t k = first; k < message.size(); ++k) {
      for (const Forgery* forgery : forgeries) {
        for (const Built& frame : forgery->frames(job)) {
          fixture.classify(frame, port);
        }
      }
      if (fixture.classify(message[k], kMemberPort).starts_with("forward")) {
        passed += fmt::format(" packet {}", k);
      }
    }
  }
  return passed;
}

/// The rest of a message whose FIRST was a result would pass for the rest of the result.
TEST(Restart, NoStrangerMakesAnothersRawDataPass) {
  for (const Restart& restart : kRestarts) {
    for (std::size_t first = 1; first < 4; ++first) {
      for (const Forgery& one : kForgeries) {
        for (const Forgery& then : kForgeries) {
          EXPECT_EQ(passes_beside(restart, first, 3, {&one, &then}), "")
              << restart.description << ", from packet " << first << ": " << one.description
              << ", then " << then.description;
        }
      }
    }
  }
}

TEST(Restart, NoStrangerMakesItPassFromAnyPort) {
  for (const std::uint16_t port : {1, 2, 31, 63}) {
    for (const Forgery& forgery : kForgeries) {
      EXPECT_EQ(passes_beside(kRestarts[0], 1, port, {&forgery}), "") << forgery.description;
    }
  }
}

/// That the test above can fail: this is what only the member may do.
TEST(Restart, AHostsOwnPlainMessagePasses) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()});
  expect_steps(fixture,
               {{"the rest of one that began before", plain(job, 0, kMiddle), "drop unclassified"},
                {"the next one", plain(job, 0, kFirst), "forward"},
                {"its middle", plain(job, 0, kMiddle), "forward"},
                {"its end", plain(job, 0, kLast), "forward"}});
}

TEST(Restart, NoStrangerStopsAnothersPlainMessage) {
  for (const Forgery& forgery : kForgeries) {
    RingJob job({.world = 2});
    const std::string is_ring =
        "a ring's incarnation on its queue pair, and the next one elsewhere";
    if (forgery.description == is_ring) {
      continue; // whoever makes a ring's incarnation has its queue pairs
    }
    ClassifierFixture fixture({job.ring()});
    ASSERT_EQ(fixture.classify(plain(job, 0, kFirst), kMemberPort), "forward");
    for (const Built& frame : forgery.frames(job)) {
      fixture.classify(frame, 3);
    }
    EXPECT_TRUE(fixture.classify(plain(job, 0, kMiddle), kMemberPort).starts_with("forward"))
        << forgery.description;
  }
}

/// A host that comes by another port must begin a message there.
TEST(Restart, APlainMessageEndsWhereItsHostMoves) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()});
  EXPECT_EQ(fixture.classify(plain(job, 0, kFirst), 0), "forward");
  EXPECT_EQ(fixture.classify(plain(job, 0, kMiddle), 1), "drop unclassified");
  EXPECT_EQ(fixture.classify(plain(job, 0, kFirst), 1), "forward");
  EXPECT_EQ(fixture.classify(plain(job, 0, kMiddle), 1), "forward");
}

/// Late copies of what the queue pair was before may come by the member's own port.
TEST(Restart, AMessageWithTheMagicEndsWhatWasPlain) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()});
  const auto message = raw_message(job);
  expect_steps(fixture, {{"a late copy", plain(job, 0, kOnly), "forward"},
                         {"the ring's", message[0], "drop no_connection"},
                         {"its rest", message[1], "drop unannounced"}});
}

/// A queue pair that was plain by one port, and then a ring's by another.
TEST(Restart, WhatWasPlainBeforeARingCountsNoMore) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()});
  ASSERT_EQ(fixture.classify(plain(job, 0, kFirst), 1), "forward");
  fixture.admit(job); // by port 0
  fixture.incarnations().reset(0);
  ASSERT_EQ(fixture.classify(plain(job, 0, kOnly), 0), "forward");
  EXPECT_EQ(fixture.classify(plain(job, 0, kMiddle), 1), "drop unclassified");
}

} // namespace
} // namespace weir::conn::classify_restart_test
