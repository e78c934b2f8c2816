// SPDX-License-Identifier: BSD-3-Clause

/// What a capture takes, what it says of each packet, and the file that it leaves. The file is read
/// here by the layout of IETF draft-ietf-opsawg-pcapng.

#include "capture/capture.hpp"
#include "capture/filter.hpp"
#include "switch_fixture.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace weir::capture::capture_test {
namespace {

using frame::CapturedFrame;
using frame::CaptureFilter;
using frame::CaptureTap;
using frame::TraceEvent;
using frame::TraceRecord;
using stage::SwitchFixture;
using test::Built;
using test::Bytes;
using test::FramePool;
using test::RingJob;

constexpr std::size_t kFrames = 64;
constexpr std::uint32_t kMostBytes = 1522;

/// A broadcast frame.
Bytes flooded(std::size_t bytes = 60) {
  Bytes frame(bytes, 0xff);
  std::fill_n(frame.begin() + 6, 6, 0x02);
  test::put16(frame, 12, 0x0806);
  return frame;
}

Names names_of(const RingJob& job) {
  return {.ports = {"a", "b", "c", "d"}, .rings = {job.ring()}};
}

struct Seen {
  std::string side;
  std::string verdict;

  bool operator==(const Seen&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Seen& seen) {
  return out << seen.side << ": " << seen.verdict;
}

/// A fixture whose frames a tap gets.
class Tapped {
 public:
  explicit Tapped(const RingJob& job, CaptureFilter filter = {},
                  std::vector<std::uint32_t> limits = {})
      : fixture({&job}, std::move(limits)), tap(std::move(filter), kFrames, kMostBytes),
        names_(names_of(job)) {}

  void begin() { fixture.inside().trace().copy_to(&tap); }

  /// What has been taken since the last call: "in a", "out b" and so on.
  std::vector<Seen> seen() {
    std::vector<Seen> all;
    tap.drain([&](const CapturedFrame& captured, std::span<const std::uint8_t> bytes) {
      if (captured.inbound != frame::kNoPort) {
        all.push_back({"in " + names_.ports[captured.inbound], arrival_verdict(captured, names_)});
      }
      for (std::size_t port = 0; port < names_.ports.size(); ++port) {
        if ((captured.outbound >> port & 1) != 0) {
          all.push_back({"out " + names_.ports[port], departure_verdict(captured, bytes, names_)});
        }
      }
      if (captured.inbound == frame::kNoPort && captured.outbound == 0) {
        all.push_back({"inside", inside_verdict(captured, names_)});
      }
    });
    return all;
  }

  SwitchFixture fixture;
  CaptureTap tap;

 private:
  Names names_;
};

using Story = std::vector<Seen>;

// ---- Verdicts. ----

TEST(Verdict, OfHellosContributionsAndResults) {
  RingJob job({.world = 2});
  Tapped tapped(job);
  tapped.fixture.announce(job);
  tapped.begin();
  tapped.fixture.send(job.hello(0), 0);
  tapped.fixture.send(job.hello(1), 1);
  EXPECT_EQ(tapped.seen(),
            (Story{{"in a", "hello of rank 0 of ring 1 waits for the others"},
                   {"in b", "hello of rank 1 of ring 1 is the last; the ring begins"},
                   {"out b", "result sent of slot 0 of ring 1: rank 0, message 0, packet 0"},
                   {"out a", "result sent of slot 0 of ring 1: rank 1, message 0, packet 0"}}))
      << "each packet once";
  const auto first = job.message(0, 1, Bytes(300, 1)); // two packets; L is 4, 2N too
  const auto second = job.message(1, 1, Bytes(300, 1));
  tapped.fixture.send(first[0], 0);
  tapped.fixture.send(first[0], 0);
  tapped.fixture.send(second[0], 1);
  tapped.fixture.send(second[0], 1);
  EXPECT_EQ(tapped.seen(),
            (Story{{"in a", "held in slot 4 of ring 1: rank 0, message 1, packet 0"},
                   {"in a", "dropped: repeat_held in aggregate (repeat of a contribution that is "
                            "already held)"},
                   {"in b", "completes slot 4 of ring 1: rank 1, message 1, packet 0; all are "
                            "folded"},
                   {"out b", "result sent of slot 4 of ring 1: rank 0, message 1, packet 0"},
                   {"out a", "result sent of slot 4 of ring 1: rank 1, message 1, packet 0"},
                   {"in b", "repeat, answered by the result of slot 4 of ring 1: rank 1, message "
                            "1, packet 0"},
                   {"out a", "result sent for a repeat, of slot 4 of ring 1: rank 1, message 1, "
                             "packet 0"}}));
}

/// A switch with a parent: rank 2, a switch below with ranks 3 and 4, and above the sender 2.
TEST(Verdict, OfASwitchOfATree) {
  Names names = names_of(RingJob({.world = 6}));
  names.rings[0].children = {
      {.ranks = {2, 1}},
      {.ranks = {3, 2}, .port = 1, .kind = ring::ChildKind::switch_below, .name = "b"}};
  names.rings[0].parent = {.port = 2, .name = "a"};
  const auto of = [](std::uint16_t child, TraceEvent event) {
    return CapturedFrame{.record = {.message = 1, .child = child, .event = event}};
  };
  const auto arrives = [&](std::uint16_t child, TraceEvent event) {
    return arrival_verdict(of(child, event), names);
  };
  const auto leaves = [&](std::uint16_t child, TraceEvent event) {
    return departure_verdict(of(child, event), {}, names);
  };
  EXPECT_EQ(arrives(0, TraceEvent::waits), "hello of rank 2 of ring 1 waits for the others");
  EXPECT_EQ(arrives(1, TraceEvent::climbs),
            "hello of ranks 3-4 of ring 1 is the last; one for all goes to the switch above");
  EXPECT_EQ(arrives(2, TraceEvent::begins),
            "the switch above of ring 1 has begun; so does this one");
  EXPECT_EQ(arrives(0, TraceEvent::held), "held in slot 4 of ring 1: rank 2, message 1, packet 0");
  EXPECT_EQ(arrives(2, TraceEvent::total),
            "total of slot 4 of ring 1: the switch above, message 1, packet 0");
  EXPECT_EQ(leaves(1, TraceEvent::partial_sum),
            "partial sum of slot 4 of ring 1: ranks 3-4, message 1, packet 0, to the switch above");
  EXPECT_EQ(leaves(1, TraceEvent::resent),
            "partial sum sent again of slot 4 of ring 1: ranks 3-4, message 1, packet 0");
  EXPECT_EQ(leaves(0, TraceEvent::resent),
            "result sent again of slot 4 of ring 1: rank 2, message 1, packet 0");
  EXPECT_EQ(leaves(2, TraceEvent::cached_result),
            "result sent for a repeat, of slot 4 of ring 1: the switch above, message 1, packet 0");
}

TEST(Verdict, OfForwardedFramesOnBothSides) {
  RingJob job({.world = 2});
  Tapped tapped(job);
  tapped.begin();
  tapped.fixture.send(flooded(), 2);
  EXPECT_EQ(tapped.seen(), (Story{{"in c", "forwarded to a, b, d"},
                                  {"out a", "forwarded from c"},
                                  {"out b", "forwarded from c"},
                                  {"out d", "forwarded from c"}}));
}

TEST(Verdict, OfWhatTheSwitchSays) {
  RingJob job({.world = 2, .first_own_qp = 0x500, .ack_timeout = 14});
  Tapped tapped(job);
  tapped.fixture.start(job);
  tapped.begin();
  tapped.fixture.send(job.message(0, 1, Bytes(300, 1))[1], 0); // its FIRST was lost
  const Story story = tapped.seen();
  ASSERT_EQ(story.size(), 3u);
  EXPECT_EQ(story[0], (Seen{"out a", "ACK sent by the switch to rank 0 of ring 1"}));
  EXPECT_EQ(story[1], (Seen{"out a", "NAK sent by the switch to rank 0 of ring 1"}));
  EXPECT_EQ(story[2], (Seen{"in a", "dropped: unknown_message in recover (packet inside no known "
                                    "message: its FIRST was lost)"}));
}

TEST(Verdict, OfWhatTheSwitchSaysToTheRanksOfARunThatIsOver) {
  RingJob job({.world = 2, .first_own_qp = 0x500});
  Tapped tapped(job);
  tapped.fixture.start(job);
  RingJob first = job;
  job.restart(1);
  tapped.fixture.start(job);
  tapped.begin();
  tapped.fixture.now = frame::Instant{tapped.fixture.now.ns + frame::kNsPerMs};
  tapped.fixture.send(first.message(0, 1, Bytes(16, 1))[0], 0);
  const Story story = tapped.seen();
  ASSERT_EQ(story.size(), 2u);
  EXPECT_EQ(story[0],
            (Seen{"out a", "NAK sent by the switch to rank 0 of ring 1, whose run is over"}));
  EXPECT_TRUE(story[1].verdict.starts_with("dropped: wrong_session")) << story[1];
}

TEST(Verdict, OfFramesThatWereHeldAndGivenUp) {
  RingJob job({.world = 2});
  Tapped tapped(job);
  tapped.fixture.start(job);
  tapped.begin();
  tapped.fixture.send(job.message(0, 1, Bytes(16, 1))[0], 0);
  tapped.fixture.reset(0);
  const Story story = tapped.seen();
  ASSERT_EQ(story.size(), 2u) << "it came in once";
  EXPECT_EQ(story[0].side, "in a");
  EXPECT_EQ(story[1].side, "inside");
  EXPECT_TRUE(story[1].verdict.starts_with("dropped: ring_reset in aggregate")) << story[1];
}

TEST(Verdict, OfAResultThatHasNoWayOut) {
  RingJob job({.world = 2});
  Tapped tapped(job, {}, {kMostBytes, 200, kMostBytes, kMostBytes});
  tapped.fixture.start(job);
  tapped.begin();
  tapped.fixture.send(job.message(0, 1, Bytes(200, 1))[0], 0);
  tapped.fixture.send(job.message(1, 1, Bytes(200, 1))[0], 1);
  const Story story = tapped.seen();
  ASSERT_EQ(story.size(), 4u);
  EXPECT_EQ(story[2], (Seen{"inside", "dropped: too_long in forward (longer than the egress "
                                      "port's MTU allows)"}))
      << "no packet that came in";
  EXPECT_EQ(story[3].side, "out a");
}

/// A copy that finds its port's backlog full: as lcore::Lcore records it.
TEST(Verdict, OfAFrameThatCouldNotLeave) {
  RingJob job({.world = 2});
  FramePool pool;
  CaptureTap tap({}, kFrames, kMostBytes);
  const frame::Frame& frame = pool.make(flooded(), 0);
  tap.take(frame, {.egress = 0b0100,
                   .ingress = 0,
                   .event = TraceEvent::dropped,
                   .drop = DropReason::tx_backlog_full,
                   .dropped_by = stage::number_of(stage::StageId::transmit)});
  std::string verdict;
  tap.drain([&](const CapturedFrame& captured, std::span<const std::uint8_t>) {
    EXPECT_EQ(captured.inbound, frame::kNoPort) << "the verdict on its arrival is another one";
    EXPECT_EQ(captured.outbound, 0u);
    verdict = inside_verdict(captured, names_of(job));
  });
  EXPECT_EQ(verdict, "dropped: tx_backlog_full in transmit (egress port is full), on its way to c");
}

/// A loop probe came by no port.
TEST(Verdict, OfAFrameOfTheSwitchItself) {
  RingJob job({.world = 2});
  FramePool pool;
  CaptureTap tap({}, kFrames, kMostBytes);
  const frame::Frame& frame = pool.make(flooded(), frame::kNoPort);
  tap.take(frame, {.egress = 0b0010, .ingress = frame::kNoPort, .event = TraceEvent::forwarded});
  std::vector<std::string> verdicts;
  tap.drain([&](const CapturedFrame& captured, std::span<const std::uint8_t> bytes) {
    EXPECT_EQ(captured.inbound, frame::kNoPort);
    EXPECT_EQ(captured.outbound, 0b0010u);
    verdicts.push_back(departure_verdict(captured, bytes, names_of(job)));
  });
  EXPECT_EQ(verdicts, std::vector<std::string>{"sent by the switch itself"});
}

// ---- What a capture takes. ----

TEST(CaptureFilter, APortTakesItsOwnSides) {
  RingJob job({.world = 2});
  Tapped tapped(job, {.ports = 0b0010}); // b
  tapped.fixture.start(job);
  tapped.begin();
  tapped.fixture.send(flooded(), 2);
  EXPECT_EQ(tapped.seen(), (Story{{"out b", "forwarded from c"}}));
  tapped.fixture.send(job.message(0, 1, Bytes(16, 1))[0], 0);
  EXPECT_EQ(tapped.seen(), Story{});
  tapped.fixture.send(job.message(1, 1, Bytes(16, 1))[0], 1);
  EXPECT_EQ(tapped.seen(),
            (Story{{"in b", "completes slot 4 of ring 1: rank 1, message 1, packet 0; all are "
                            "folded"},
                   {"out b", "result sent of slot 4 of ring 1: rank 0, message 1, packet 0"}}));
}

TEST(CaptureFilter, ARingTakesItsMembersPacketsAndNoOther) {
  RingJob job({.world = 2});
  RingJob other({.ring = 2, .world = 2, .network_id = 7});
  SwitchFixture fixture({&job, &other});
  CaptureTap tap(of_ring(ring::Ring(other.ring()), 1), kFrames, kMostBytes);
  fixture.start(job);
  fixture.start(other);
  fixture.inside().trace().copy_to(&tap);
  const auto taken = [&] {
    return tap.drain([](const CapturedFrame&, std::span<const std::uint8_t>) {});
  };
  fixture.send(job.message(0, 1, Bytes(16, 1))[0], 0);
  fixture.send(flooded(), 0);
  EXPECT_EQ(taken(), 0u);
  fixture.send(other.message(0, 1, Bytes(16, 1))[0], 0);
  EXPECT_EQ(taken(), 1u);
  fixture.send(other.message(0, 1, Bytes(16, 1))[0], 0); // dropped
  EXPECT_EQ(taken(), 1u);
  fixture.send(build(other.answer_to(0, 0x1f, 1)), 1); // forwarded
  EXPECT_EQ(taken(), 1u);
}

TEST(CaptureFilter, AConnectionTakesItsQueuePairAndItsAnswers) {
  RingJob job({.world = 3, .first_own_qp = 0x500});
  SwitchFixture fixture({&job});
  ConnectionName name{.source = job.ip_of(0),
                      .destination = job.ip_of(1),
                      .qp = job.qp_of(0),
                      .own_qp = job.own_qp_of(0)};
  CaptureTap tap(of_connection(name), kFrames, kMostBytes);
  fixture.start(job);
  fixture.inside().trace().copy_to(&tap);
  const auto taken = [&] {
    return tap.drain([](const CapturedFrame&, std::span<const std::uint8_t>) {});
  };
  fixture.send(job.message(1, 1, Bytes(16, 1))[0], 1);
  fixture.send(build(job.answer_to(1, 0x1f, 1)), 2);
  EXPECT_EQ(taken(), 0u);
  fixture.send(job.message(0, 1, Bytes(16, 1))[0], 0);
  EXPECT_EQ(taken(), 1u);
  fixture.send(build(job.answer_to(0, 0x1f, 1)), 1);
  EXPECT_EQ(taken(), 1u);
  auto elsewhere = job.answer_to(0, 0x1f, 1);
  elsewhere.qp = 0x777;
  fixture.send(build(elsewhere), 1);
  EXPECT_EQ(taken(), 0u) << "an answer to another queue pair";
}

TEST(CaptureTap, CountsThePacketsThatFindItFull) {
  CaptureTap tap({}, 2, kMostBytes);
  FramePool pool;
  const frame::Frame& frame = pool.make(flooded(), 2);
  const TraceRecord record{.egress = 0b1011, .ingress = 2, .event = TraceEvent::forwarded};
  for (int i = 0; i < 3; ++i) {
    tap.take(frame, record);
  }
  EXPECT_EQ(tap.left_out(), 4u) << "one that came in and three that left";
  std::size_t drained = tap.drain([](const CapturedFrame&, std::span<const std::uint8_t>) {});
  EXPECT_EQ(drained, 2u);
  tap.take(frame, record);
  EXPECT_EQ(tap.left_out(), 4u) << "there is room again";
}

TEST(Trace, KeepsRecordsAndFeedsACaptureIndependently) {
  frame::Trace trace;
  CaptureTap tap({}, kFrames, kMostBytes);
  EXPECT_FALSE(trace.is_on());
  trace.copy_to(&tap);
  EXPECT_TRUE(trace.is_on());
  trace.switch_on();
  trace.switch_off();
  EXPECT_TRUE(trace.is_on()) << "the capture goes on";
  frame::Trace fresh;
  fresh.switch_on();
  trace.switch_on_with(fresh);
  trace.copy_to(nullptr);
  EXPECT_TRUE(trace.is_on()) << "the trace goes on";
  trace.switch_off();
  EXPECT_FALSE(trace.is_on());
}

// ---- Files. ----

struct FilePacket {
  std::uint32_t interface = 0;
  std::uint64_t time_ns = 0;
  Bytes bytes;
  std::uint32_t length = 0;
  std::uint32_t flags = 0;
  std::string comment;
};

struct File {
  std::vector<std::string> interfaces;
  std::vector<FilePacket> packets;
  std::optional<std::uint64_t> left_out;
};

std::uint32_t number_at(const Bytes& bytes, std::size_t at) {
  std::uint32_t number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

/// The first option with this code in bytes `at` to `end`; empty if there is none.
Bytes option_in(const Bytes& bytes, std::size_t at, std::size_t end, std::uint32_t wanted) {
  while (at < end) {
    const std::uint32_t code = number_at(bytes, at) & 0xffff;
    const std::uint32_t length = number_at(bytes, at) >> 16;
    if (code == wanted) {
      return {bytes.begin() + static_cast<std::ptrdiff_t>(at + 4),
              bytes.begin() + static_cast<std::ptrdiff_t>(at + 4 + length)};
    }
    at += 4 + (length + 3) / 4 * 4;
  }
  return {};
}

std::string text_of(const Bytes& bytes) {
  return {bytes.begin(), bytes.end()};
}

FilePacket packet_at(const Bytes& bytes, std::size_t at, std::size_t end) {
  const std::uint32_t kept = number_at(bytes, at + 20);
  const std::size_t data = at + 28;
  const std::size_t options = data + (kept + 3) / 4 * 4;
  return {.interface = number_at(bytes, at + 8),
          .time_ns = std::uint64_t{number_at(bytes, at + 12)} << 32 | number_at(bytes, at + 16),
          .bytes = {bytes.begin() + static_cast<std::ptrdiff_t>(data),
                    bytes.begin() + static_cast<std::ptrdiff_t>(data + kept)},
          .length = number_at(bytes, at + 24),
          .flags = number_at(option_in(bytes, options, end, 2), 0),
          .comment = text_of(option_in(bytes, options, end, 1))};
}

/// Fails where a block is not whole.
File read(const std::string& name) {
  std::ifstream stream(name, std::ios::binary);
  const Bytes bytes{std::istreambuf_iterator<char>(stream), {}};
  File file;
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::uint32_t type = number_at(bytes, at);
    const std::uint32_t length = number_at(bytes, at + 4);
    if (length < 12 || at + length > bytes.size()) {
      ADD_FAILURE() << "a block is cut off";
      return file;
    }
    EXPECT_EQ(number_at(bytes, at + length - 4), length);
    const std::size_t end = at + length - 4;
    if (at == 0) {
      EXPECT_EQ(type, 0x0a0d0d0au);
      EXPECT_EQ(number_at(bytes, 8), 0x1a2b3c4du);
    } else if (type == 1) {
      EXPECT_EQ(number_at(bytes, at + 8), 1u) << "Ethernet";
      EXPECT_EQ(option_in(bytes, at + 16, end, 9), Bytes{9}) << "nanoseconds";
      file.interfaces.push_back(text_of(option_in(bytes, at + 16, end, 2)));
    } else if (type == 6) {
      file.packets.push_back(packet_at(bytes, at, end));
    } else {
      EXPECT_EQ(type, 5u);
      file.left_out = number_at(option_in(bytes, at + 20, end, 5), 0);
    }
    at += length;
  }
  EXPECT_EQ(at, bytes.size());
  return file;
}

class CaptureFile : public testing::Test {
 protected:
  CaptureFile()
      : name_(std::filesystem::temp_directory_path() /
              ("weir_capture_test_" + std::to_string(getpid()) + ".pcapng")) {
    std::filesystem::remove(name_);
  }

  ~CaptureFile() override { std::filesystem::remove(name_); }

  Plan plan(std::uint64_t count) const {
    RingJob job({.world = 2});
    return {.file = name_,
            .what = "port all",
            .filter = {},
            .count = count,
            .most_bytes = kMostBytes,
            .lcores = 2,
            .clock_zero_ns = 5'000'000'000'000'000'000,
            .names = names_of(job)};
  }

  const frame::Frame& frame() { return pool_.make(flooded(), 2); }

  static TraceRecord record(std::uint64_t now_ns) {
    return {.now_ns = now_ns,
            .egress = 0b1011,
            .length = 60,
            .ingress = 2,
            .event = TraceEvent::forwarded};
  }

  std::string name_;

 private:
  FramePool pool_;
};

TEST_F(CaptureFile, HasPacketsInTheOrderOfTimeWithSidesAndVerdicts) {
  Capture capture(plan(1000));
  bool is_detached = false;
  capture.tap(0).take(frame(), record(20));
  capture.tap(1).take(frame(), record(10));
  capture.start([&] { is_detached = true; });
  capture.end();
  EXPECT_TRUE(is_detached);
  const File file = read(name_);
  EXPECT_EQ(file.interfaces, (std::vector<std::string>{"a", "b", "c", "d", "switch"}));
  ASSERT_EQ(file.packets.size(), 8u);
  EXPECT_EQ(file.left_out, 0u);
  const std::array<std::uint32_t, 4> interfaces{2, 0, 1, 3};
  for (std::size_t i = 0; i < 8; ++i) {
    const FilePacket& packet = file.packets[i];
    EXPECT_EQ(packet.time_ns, 5'000'000'000'000'000'010 + (i < 4 ? 0 : 10)) << i;
    EXPECT_EQ(packet.interface, interfaces[i % 4]);
    EXPECT_EQ(packet.flags, i % 4 == 0 ? 1u : 2u);
    EXPECT_EQ(packet.comment, i % 4 == 0 ? "forwarded to a, b, d" : "forwarded from c");
    EXPECT_EQ(packet.bytes, flooded());
    EXPECT_EQ(packet.length, 60u);
  }
  EXPECT_EQ(capture.status().state, State::stopped);
  EXPECT_EQ(capture.status().written, 8u);
}

TEST_F(CaptureFile, EndsByItselfAtItsCount) {
  Capture capture(plan(5));
  for (int i = 0; i < 3; ++i) {
    capture.tap(0).take(frame(), record(1));
  }
  std::atomic<bool> is_detached{false};
  capture.start([&] { is_detached = true; });
  while (capture.status().state == State::running) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(is_detached);
  EXPECT_EQ(capture.status().state, State::complete);
  EXPECT_EQ(capture.status().written, 5u);
  EXPECT_EQ(read(name_).packets.size(), 5u) << "whole before anybody ends it";
}

TEST_F(CaptureFile, SaysHowManyFoundTheQueueFull) {
  Plan small = plan(1000);
  small.queue_bytes = 2 * kMostBytes;
  Capture capture(std::move(small));
  for (int i = 0; i < 5; ++i) {
    capture.tap(0).take(frame(), record(1));
  }
  EXPECT_EQ(capture.status().left_out, 12u);
  capture.start([] {});
  capture.end();
  EXPECT_EQ(capture.status().written, 8u);
  EXPECT_EQ(capture.status().left_out, 12u);
  const File file = read(name_);
  EXPECT_EQ(file.packets.size(), 8u);
  EXPECT_EQ(file.left_out, 12u);
}

TEST_F(CaptureFile, CutsLongFrames) {
  Plan cut = plan(10);
  cut.most_bytes = 33;
  Capture capture(std::move(cut));
  capture.tap(0).take(frame(), record(1));
  capture.start([] {});
  capture.end();
  for (const FilePacket& packet : read(name_).packets) {
    EXPECT_EQ(packet.length, 60u);
    const Bytes whole = flooded();
    EXPECT_EQ(packet.bytes, Bytes(whole.begin(), whole.begin() + 33));
  }
}

TEST_F(CaptureFile, IsNeverWrittenOver) {
  std::ofstream(name_) << "mine";
  EXPECT_THROW(Capture capture(plan(1)), FileError);
  EXPECT_EQ(std::filesystem::file_size(name_), 4u);
}

/// A file system that takes no more: here the limit of a file's size.
TEST_F(CaptureFile, IsWholeWhenItCannotGrow) {
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  Capture capture(plan(1000));
  const rlimit small{std::filesystem::file_size(name_) + 1001, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  bool is_detached = false;
  for (int i = 0; i < 20; ++i) {
    capture.tap(0).take(frame(), record(1));
  }
  capture.start([&] { is_detached = true; });
  capture.end();
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(is_detached) << "the lcores copy no more";
  EXPECT_EQ(capture.status().state, State::failed);
  EXPECT_NE(capture.status().error.find("cannot be written: File too large"), std::string::npos)
      << capture.status().error;
  EXPECT_EQ(capture.status().written, read(name_).packets.size());
}

TEST_F(CaptureFile, LosesNoPacketUnnamedWhileFramesCome) {
  Plan busy = plan(UINT64_MAX);
  busy.queue_bytes = 16 * kMostBytes;
  Capture capture(std::move(busy));
  constexpr std::uint64_t taken = 20000;
  std::atomic<bool> is_tapped{true};
  capture.start([&] { is_tapped = false; });
  const frame::Frame& one = frame();
  std::thread lcore([&] {
    for (std::uint64_t i = 0; i < taken; ++i) {
      capture.tap(1).take(one, record(i));
    }
  });
  lcore.join();
  capture.end();
  EXPECT_FALSE(is_tapped);
  const File file = read(name_);
  EXPECT_EQ(capture.status().written, file.packets.size());
  EXPECT_EQ(capture.status().written + capture.status().left_out, 4 * taken);
}

} // namespace
} // namespace weir::capture::capture_test
