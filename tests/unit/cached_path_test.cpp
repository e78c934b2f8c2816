// SPDX-License-Identifier: BSD-3-Clause

/// The short way of a ring's packets beside the stages: whatever it takes, they treat alike. A
/// switch that is traced sends all frames through the stages, so two switches get the same frames,
/// one of them traced. Frames are lost, repeated, damaged, and come by other ports and in other
/// shapes; hosts start again.

#include "support/sanitized.hpp"
#include "switch_fixture.hpp"
#include "wire/icrc.hpp"
#include "wire/parse.hpp"
#include "wire/syndrome.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <string>

namespace weir::stage::cached_path_test {
namespace {

using test::Network;
using test::Verb;

constexpr std::uint16_t kWorld = 3;
constexpr std::uint16_t kPorts = 4;
constexpr std::size_t kMessageBytes = 4 * 256 - kInaHeaderBytes; // of data: four packets
/// A script's messages have so many, that those inside may follow one another.
constexpr std::size_t kScriptPackets = 10;
constexpr std::size_t kScriptMessageBytes = kScriptPackets * 256 - kInaHeaderBytes;

using Incoming = SwitchFixture::Incoming;

constexpr std::size_t kUsualNumbers = 1024;

/// Everything that two switches must agree on after the same frames.
struct State {
  std::vector<std::uint64_t> numbers;
  std::vector<std::uint64_t> silences; // milliseconds, by station
};

/// CachedPath learns a station once in so many milliseconds, the stages with every frame.
bool is_longer_by_little(std::uint64_t silence, std::uint64_t by_stages) {
  return silence >= by_stages && silence < by_stages + CachedPath::kLearnEveryMs;
}

void add(std::vector<std::uint64_t>& numbers, const frame::FrameCounters& counters) {
  numbers.insert(numbers.end(), {counters.received, counters.originated, counters.forwarded,
                                 counters.consumed, counters.copies});
  numbers.insert(numbers.end(), counters.dropped.begin(), counters.dropped.end());
  numbers.insert(numbers.end(), counters.foreign.begin(), counters.foreign.end());
}

void add(std::vector<std::uint64_t>& numbers, const RingSnapshot& ring) {
  const frame::RingCounters& counters = ring.counters;
  numbers.insert(numbers.end(), {counters.contributions, counters.slots_completed, counters.results,
                                 counters.cached_results, counters.hellos, counters.reduced_bytes,
                                 ring.held, ring.filling, ring.waiting_ns});
  numbers.insert(numbers.end(), counters.dropped.begin(), counters.dropped.end());
  const auto& times = counters.slot_time_ns.counts;
  numbers.insert(numbers.end(), times.begin(), times.end());
  for (const conn::ChildStatus& child : ring.children) {
    const recovery::FlowCounters& recovery = child.recovery;
    numbers.insert(numbers.end(), {child.connected, child.qp, child.newest_message, child.packets,
                                   child.last_seen, recovery.naks, recovery.rnr_naks,
                                   recovery.mended, recovery.resent, recovery.swallowed});
  }
}

State state_of(SwitchFixture& fixture) {
  State state;
  state.numbers.reserve(kUsualNumbers);
  add(state.numbers, fixture.accounting().frames);
  const Worker& worker = fixture.inside().worker();
  state.numbers.insert(state.numbers.end(), {worker.state_of(0).news_at_ns, worker.next_timer()});
  for (std::uint16_t child = 0; child < kWorld; ++child) {
    const recovery::Flow& flow = worker.incarnations().flow_of({0, child});
    state.numbers.insert(state.numbers.end(),
                         {flow.heard_at, flow.previous, flow.next_in, flow.furthest_in,
                          flow.unacknowledged, flow.next_out, flow.went_back});
  }
  add(state.numbers, snapshot_ring(fixture.inside().worker(), 0, fixture.now));
  fixture.inside().stations().for_each(
      fixture.now.ms(), [&](const wire::MacAddress& mac, std::uint16_t port, std::uint64_t silence,
                            std::uint64_t pins) {
        state.numbers.insert(state.numbers.end(), {l2::to_number(mac), port, pins});
        state.silences.push_back(silence);
      });
  return state;
}

/// Two switches that get the same.
class Twins {
 public:
  /// `limits`: the longest frame that each port sends, by port.
  explicit Twins(const RingJob& job, const std::vector<std::uint32_t>& limits = {})
      : fast_({&job}, limits), traced_({&job}, limits) {
    traced_.inside().trace().switch_on();
  }

  void send(const std::vector<Incoming>& burst) { compare(fast_.send(burst), traced_.send(burst)); }

  /// Time passes, and timers are looked at.
  void pass(std::uint64_t nanoseconds) {
    fast_.now = traced_.now = frame::Instant{fast_.now.ns + nanoseconds};
    compare(fast_.poll_timers(), traced_.poll_timers());
  }

  void reset() { compare(fast_.reset(0), traced_.reset(0)); }

  /// The ring goes, and another one comes in its place.
  void replace_ring(const ring::RingSpec& ring) {
    ASSERT_EQ(fast_.withdraw(0).size(), traced_.withdraw(0).size());
    ASSERT_EQ(fast_.inside().add_ring(ring), 0);
    ASSERT_EQ(traced_.inside().add_ring(ring), 0);
  }

  std::uint64_t taken() { return taken_by(fast_); }

  std::uint64_t taken_by_the_traced() { return taken_by(traced_); }

  /// In both switches alike.
  std::uint64_t waiting_hellos() {
    const std::uint64_t waiting = fast_.inside().worker().incarnations().waiting_hellos();
    EXPECT_EQ(waiting, traced_.inside().worker().incarnations().waiting_hellos());
    return waiting;
  }

  /// In the switch that is not traced.
  std::uint64_t pins_of(const wire::MacAddress& station) {
    std::uint64_t found = 0;
    fast_.inside().stations().for_each(
        fast_.now.ms(), [&](const wire::MacAddress& mac, std::uint16_t, std::uint64_t,
                            std::uint64_t pins) { found = mac == station ? pins : found; });
    return found;
  }

  bool is_far() { return fast_.inside().worker().cached_path().is_far(); }

  std::uint64_t dropped(DropReason reason) const {
    return fast_.accounting().frames.dropped[static_cast<std::size_t>(reason)];
  }

  std::uint64_t received() const { return fast_.accounting().frames.received; }

 private:
  static std::uint64_t taken_by(SwitchFixture& fixture) {
    return fixture.inside().worker().cached_path().taken();
  }

  static std::string first_difference(const std::vector<std::uint64_t>& fast,
                                      const std::vector<std::uint64_t>& traced) {
    const auto [one, other] = std::ranges::mismatch(fast, traced);
    const bool has_ended = one == fast.end() || other == traced.end();
    return "number " + std::to_string(one - fast.begin()) +
           (has_ended ? ", which one of them lacks,"
                      : ", " + std::to_string(*one) + " for " + std::to_string(*other) + ",");
  }

  void compare(const std::vector<Sent>& sent, const std::vector<Sent>& expected) {
    ASSERT_EQ(sent.size(), expected.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      ASSERT_EQ(sent[i].bytes, expected[i].bytes);
      ASSERT_EQ(sent[i].ports, expected[i].ports);
      ASSERT_EQ(sent[i].departure, expected[i].departure);
    }
    const State fast = state_of(fast_);
    const State traced = state_of(traced_);
    if (fast.numbers != traced.numbers) {
      FAIL() << first_difference(fast.numbers, traced.numbers) << " of the state differs";
    }
    ASSERT_TRUE(std::ranges::equal(fast.silences, traced.silences, is_longer_by_little));
  }

  SwitchFixture fast_;
  SwitchFixture traced_;
};

/// Hosts of a job and a network that treats their frames badly.
class Script {
 public:
  Script(const JobSpec& spec, unsigned seed, unsigned trouble)
      : job_(spec), random_(seed), trouble_(trouble), twins_(job_) {}

  void run(unsigned steps) {
    say_hello();
    for (unsigned step = 0; step < steps && !testing::Test::HasFatalFailure(); ++step) {
      send_messages();
      if (trouble_ != 0 && is_one_in(25)) {
        start_again();
      }
      twins_.pass(is_one_in(4) ? 1'000'000 : 10'000);
    }
  }

  Twins& twins() { return twins_; }

 private:
  bool is_one_in(unsigned count) { return random_() % count == 0; }

  bool is_troubled() { return trouble_ != 0 && is_one_in(trouble_); }

  void say_hello() {
    for (std::uint16_t rank = 0; rank < kWorld; ++rank) {
      twins_.send({{job_.hello(rank).bytes, job_.port_of(rank)}});
    }
    next_ = 1;
  }

  /// With other queue pairs and nonces, or with the same queue pairs. Packets of before still come.
  void start_again() {
    if (is_one_in(2)) {
      twins_.reset();
      send_in_bursts(sent_);
    }
    const JobSpec before = job_.spec();
    job_.restart(++epoch_);
    if (is_one_in(2)) {
      job_.spec().first_qp = before.first_qp;
    }
    say_hello();
    send_in_bursts(sent_);
  }

  std::size_t bytes_of_next() {
    return is_troubled() ? 4 * (random_() % (kScriptMessageBytes / 4)) : kScriptMessageBytes;
  }

  /// The ranks' packets of the next message, mixed, each rank's in order, often some in a row.
  void send_messages() {
    const std::size_t bytes = bytes_of_next();
    std::vector<std::deque<Incoming>> waiting(kWorld);
    for (std::uint16_t rank = 0; rank < kWorld; ++rank) {
      for (const Built& packet : job_.message(rank, next_, Bytes(bytes, 0x11))) {
        waiting[rank].push_back({packet.bytes, job_.port_of(rank)});
      }
    }
    std::vector<Incoming> sent;
    while (std::ranges::any_of(waiting, [](const auto& rank) { return !rank.empty(); })) {
      std::deque<Incoming>& rank = waiting[random_() % kWorld];
      const std::size_t in_a_row = is_one_in(2) ? 1 : random_() % kScriptPackets + 1;
      for (std::size_t packet = 0; packet < in_a_row && !rank.empty(); ++packet) {
        sent.push_back(std::move(rank.front()));
        rank.pop_front();
      }
    }
    sent_ = sent;
    send_in_bursts(std::move(sent));
    acknowledge();
    ++next_;
    if (trouble_ != 0) {
      if (is_one_in(3)) {
        const auto from = static_cast<std::ptrdiff_t>(random_() % (sent_.size() + 1));
        send_in_bursts({sent_.begin() + from, sent_.end()}); // the ranks go back so far
      }
      send_in_bursts(sent_); // what was lost comes again, and the rest too
      if (is_troubled()) {
        next_ -= std::min(next_ - 1, 2u);
      }
    }
  }

  void acknowledge() {
    for (std::uint16_t rank = 0; rank < kWorld; ++rank) {
      const std::uint32_t psn = job_.first_psn_of(rank);
      twins_.send({{build(job_.answer_to(rank, wire::ack_syndrome(0), psn)).bytes,
                    job_.port_of(job_.successor_of(rank))}});
    }
  }

  void send_in_bursts(std::vector<Incoming> frames) {
    std::vector<Incoming> burst;
    for (Incoming& frame : frames) {
      if (is_troubled()) {
        disturb(frame, burst);
      } else {
        burst.push_back(std::move(frame));
      }
      if (burst.size() >= InlineSwitch::kBurst / 2 || is_one_in(5)) {
        ASSERT_NO_FATAL_FAILURE(twins_.send(burst));
        burst.clear();
      }
    }
    ASSERT_NO_FATAL_FAILURE(twins_.send(burst));
  }

  void disturb(Incoming frame, std::vector<Incoming>& burst) {
    switch (random_() % 10) {
    case 9:
      frame.bytes.resize(frame.bytes.size() + random_() % 8 + 1, 0x5a); // behind the ICRC
      break;
    case 6:
    case 7:
      lie_in(frame.bytes);
      break;
    case 8:
      hide_the_end(frame.bytes);
      break;
    case 0:
      return; // lost
    case 1:
      burst.push_back(frame); // and again
      break;
    case 2:
      frame.bytes[random_() % frame.bytes.size()] ^= static_cast<std::uint8_t>(1u << random_() % 8);
      break;
    case 3:
      frame.port = static_cast<std::uint16_t>(random_() % kPorts);
      break;
    case 4:
      frame.bytes.resize(frame.bytes.size() - random_() % 8);
      break;
    default:
      if (!burst.empty()) {
        burst.insert(burst.end() - 1, frame); // before the one before it
        return;
      }
    }
    burst.push_back(frame);
  }

  /// Lets `change` change a message's packet, and makes the ICRC right.
  template <typename Change>
  static void forge(Bytes& bytes, Change&& change) {
    wire::ParsedBytes frame;
    frame.data = bytes.data();
    frame.length = static_cast<std::uint32_t>(bytes.size());
    frame.packet = wire::parse(bytes);
    if (frame.packet.parsed == wire::Parsed::message) {
      change(frame.packet);
      wire::store_icrc(frame, wire::compute_icrc(frame));
    }
  }

  /// Changes a bit behind the BTH.
  void lie_in(Bytes& bytes) {
    forge(bytes, [&](const wire::Packet& packet) {
      const std::size_t from = packet.bth_offset + sizeof(wire::Bth);
      const std::size_t until =
          std::min<std::size_t>(packet.icrc_offset, packet.payload_offset + kInaHeaderBytes);
      bytes[from + random_() % (until - from)] ^= static_cast<std::uint8_t>(1u << random_() % 8);
    });
  }

  /// Makes a LAST a MIDDLE.
  static void hide_the_end(Bytes& bytes) {
    forge(bytes, [&](const wire::Packet& packet) {
      auto& bth = wire::view_as<wire::Bth>(bytes.data() + packet.bth_offset);
      if (bth.opcode == static_cast<std::uint8_t>(wire::Opcode::send_last) ||
          bth.opcode == static_cast<std::uint8_t>(wire::Opcode::write_last)) {
        --bth.opcode; // IBTA table 38: the MIDDLE of the same kind
      }
    });
  }

  RingJob job_;
  std::mt19937 random_;
  unsigned trouble_; // one frame in so many; 0: none
  Twins twins_;
  std::uint32_t epoch_ = 1;
  std::uint32_t next_ = 1;
  std::vector<Incoming> sent_;
};

JobSpec spec_of(Verb verb, Network network, std::size_t tags) {
  JobSpec spec{
      .world = kWorld, .window = 4, .max_message_bytes = kScriptPackets * 256, .network = network};
  spec.tags.resize(tags);
  spec.verb = verb;
  spec.first_own_qp = 0x500;
  return spec;
}

/// With more slots than the nearer caches hold, so that packets load what they will use.
JobSpec far(JobSpec spec) {
  spec.window = 512;
  return spec;
}

constexpr std::array kVerbs{Verb::send, Verb::send_immediate, Verb::write, Verb::write_immediate};

TEST(CachedPath, TakesAllButTheFirstMessageOfAnUndisturbedJob) {
  for (const Verb verb : kVerbs) {
    for (const Network network : {Network::ipv4, Network::ipv6}) {
      Script script(spec_of(verb, network, 0), 1, 0);
      ASSERT_NO_FATAL_FAILURE(script.run(50));
      const std::uint64_t data = 50 * kScriptPackets * kWorld;
      EXPECT_GE(script.twins().taken(), data - kScriptPackets * kWorld - kWorld)
          << test::name_of(network);
      EXPECT_EQ(script.twins().taken_by_the_traced(), 0u) << "else it is no comparison";
    }
  }
}

TEST(CachedPath, DoesWhatTheStagesDoWhateverComes) {
  std::uint64_t taken = 0;
  std::uint64_t received = 0;
  for (unsigned seed = 1; seed <= test::rounds(60) && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Network network = seed % 3 == 0 ? Network::ipv6 : Network::ipv4;
    const JobSpec spec = spec_of(kVerbs[seed % kVerbs.size()], network, seed % 2);
    Script script(seed % 5 == 0 ? far(spec) : spec, seed, 6 + seed % 30);
    script.run(60);
    taken += script.twins().taken();
    received += script.twins().received();
  }
  EXPECT_GT(taken, received / 4) << "else the test shows little";
}

/// A ring of hosts, undisturbed.
class Hosts {
 public:
  explicit Hosts(const JobSpec& spec, const std::vector<std::uint32_t>& limits = {})
      : job_(spec), twins_(job_, limits) {}

  void say_hello() {
    for (std::uint16_t rank = 0; rank < kWorld; ++rank) {
      twins_.send({{job_.hello(rank).bytes, job_.port_of(rank)}});
    }
  }

  std::vector<Built> message(std::uint16_t rank, std::uint32_t number) {
    return job_.message(rank, number, Bytes(kMessageBytes, 0x11));
  }

  void send(std::uint16_t rank, const std::vector<Built>& packets) {
    std::vector<Incoming> burst;
    for (const Built& packet : packets) {
      burst.push_back({packet.bytes, job_.port_of(rank)});
    }
    twins_.send(burst);
  }

  void send_from_all(std::uint32_t number) {
    for (std::uint16_t rank = 0; rank < kWorld; ++rank) {
      send(rank, message(rank, number));
    }
  }

  RingJob& job() { return job_; }

  Twins& twins() { return twins_; }

 private:
  RingJob job_;
  Twins twins_;
};

/// A rank starts a message in another way than the others, so that its packets are dropped and none
/// counts as come. Then it sends a MIDDLE in the FIRST's place.
TEST(CachedPath, TakesNoMiddleForAFirst) {
  Hosts hosts(spec_of(Verb::send, Network::ipv4, 0));
  hosts.say_hello();
  hosts.send_from_all(1);
  hosts.send(1, hosts.message(1, 2));
  std::vector<Built> packets = hosts.message(0, 2);
  Built& first = packets[0];
  auto& ina = wire::view_as<wire::InaHeader>(first.bytes.data() + first.payload);
  ina.operation = static_cast<std::uint8_t>(Operation::max);
  test::seal(first);
  Built middle = packets[1];
  auto& bth = wire::view_as<wire::Bth>(middle.bytes.data() + middle.bth);
  bth.psn = wire::view_as<wire::Bth>(first.bytes.data() + first.bth).psn;
  test::seal(middle);
  ASSERT_NO_FATAL_FAILURE(hosts.send(0, {first, packets[1], middle}));
  EXPECT_EQ(hosts.twins().dropped(DropReason::disagree_operation), 2u);
  EXPECT_EQ(hosts.twins().dropped(DropReason::length_mismatch), 1u);
}

/// The first half of a message has come. Later its sender goes back: packets that are there already
/// come first, and bring no news; those behind them do.
TEST(CachedPath, TakesNewsBehindRepeats) {
  Hosts hosts(spec_of(Verb::send, Network::ipv4, 0));
  hosts.say_hello();
  hosts.send_from_all(1);
  const std::vector<Built> packets = hosts.job().message(0, 2, Bytes(kScriptMessageBytes, 0x11));
  hosts.send(0, {packets.begin(), packets.begin() + 4});
  hosts.twins().pass(5'000'000);
  ASSERT_NO_FATAL_FAILURE(hosts.send(0, {packets.begin() + 2, packets.end() - 1}));
}

/// The same behind a damaged packet, which says nothing of its sender, while another rank's packets
/// have just come.
TEST(CachedPath, HearsTheSenderOfAPacketBehindADamagedOne) {
  Hosts hosts(spec_of(Verb::send, Network::ipv4, 0));
  hosts.say_hello();
  hosts.send_from_all(1);
  const Bytes data(kScriptMessageBytes, 0x11);
  const std::vector<Built> packets = hosts.job().message(0, 2, data);
  hosts.send(0, {packets.begin(), packets.begin() + 2});
  hosts.twins().pass(5'000'000);
  hosts.send(1, hosts.job().message(1, 2, data));
  Built damaged = packets[2];
  damaged.bytes[damaged.payload] ^= 1;
  ASSERT_NO_FATAL_FAILURE(hosts.send(0, {damaged, packets[2], packets[3]}));
}

/// For a third of a second, in which nothing comes but what CachedPath takes: see
/// is_longer_by_little().
TEST(CachedPath, LearnsItsStationsAnew) {
  Hosts hosts(spec_of(Verb::send, Network::ipv4, 0));
  hosts.say_hello();
  for (std::uint32_t number = 1; number <= 8; ++number) {
    ASSERT_NO_FATAL_FAILURE(hosts.send_from_all(number));
    ASSERT_NO_FATAL_FAILURE(hosts.twins().pass(40'000'000));
  }
  const std::size_t packets = hosts.message(0, 1).size();
  EXPECT_EQ(hosts.twins().taken(), 7 * packets * kWorld) << "all but the first message's";
}

/// It starts again with the same queue pairs, so its entry stays; but a stranger has used its
/// address meanwhile.
TEST(CachedPath, LearnsAHostThatIsNotPinnedAgainWithEachPacket) {
  Hosts hosts(spec_of(Verb::send, Network::ipv4, 0));
  const wire::MacAddress mac = hosts.job().mac_of(0);
  Bytes stolen(60, 0xff);
  std::copy(mac.bytes.begin(), mac.bytes.end(), stolen.begin() + 6);
  test::put16(stolen, 12, 0x0806);
  const Incoming stranger{stolen, kPorts - 1};
  hosts.say_hello();
  hosts.send_from_all(1);
  hosts.send_from_all(2);
  EXPECT_EQ(hosts.twins().pins_of(mac), 1U);
  hosts.twins().send({stranger});
  const std::uint32_t first_qp = hosts.job().spec().first_qp;
  hosts.job().restart(2);
  hosts.job().spec().first_qp = first_qp;
  hosts.say_hello();
  EXPECT_EQ(hosts.twins().pins_of(mac), 0U);
  constexpr std::uint32_t last = 12; // by the eighth packet of its kind an entry is learnt anew
  for (std::uint32_t number = 1; number < last; ++number) {
    hosts.send_from_all(number);
  }
  ASSERT_NO_FATAL_FAILURE(hosts.twins().send({stranger}));
  const std::uint64_t taken = hosts.twins().taken();
  ASSERT_NO_FATAL_FAILURE(hosts.send_from_all(last)) << "the address is the host's again";
  EXPECT_GT(hosts.twins().taken(), taken);
}

/// Both switches drop the same results, those with an INA header and those without.
void expect_the_same_drops(Hosts hosts, DropReason reason) {
  hosts.say_hello();
  for (const std::uint32_t number : {1u, 2u, 3u}) {
    ASSERT_NO_FATAL_FAILURE(hosts.send_from_all(number));
  }
  EXPECT_GE(hosts.twins().dropped(reason), 3u * 4u);
}

TEST(CachedPath, DropsAResultWhoseReceiverIsBehindTheIngressPort) {
  JobSpec spec = spec_of(Verb::send, Network::ipv4, 0);
  spec.ports = 2; // so ranks 2 and 0 are behind the first
  expect_the_same_drops(Hosts(spec), DropReason::same_port);
}

TEST(CachedPath, DropsAResultThatIsTooLongForItsPort) {
  constexpr std::uint32_t least = 200; // bytes: enough for a hello
  expect_the_same_drops(
      Hosts(spec_of(Verb::send, Network::ipv4, 0), {kMaxFrame, least, kMaxFrame, kMaxFrame}),
      DropReason::too_long);
}

/// A frame found its entry; then others of its burst, with a VLAN tag, teach the entry other
/// headers. Where the PSN would be behind a tag, the frame has data that look like its PSN.
TEST(CachedPath, AsksAgainWhenAnEntryHasLearntMeanwhile) {
  Hosts hosts(spec_of(Verb::send, Network::ipv4, 0));
  hosts.say_hello();
  hosts.send_from_all(1);
  constexpr std::uint32_t before = 1 + 4 + 3; // the hello, a message, and three packets of the next
  const std::uint32_t psn = wire::psn_add(hosts.job().first_psn_of(0), before);
  Bytes data(kMessageBytes, 0x11);
  test::put32(data, kMessageBytes - 256, psn);
  const std::vector<Built> untagged = hosts.job().message(0, 2, data);
  hosts.send(0, {untagged[0], untagged[1], untagged[2]});
  hosts.job().spec().tags.resize(1);
  std::vector<Built> lasts(8, hosts.job().message(0, 2, data)[3]); // the eighth is learnt
  lasts.push_back(untagged[3]);
  hosts.send(0, lasts);
}

/// A hello of another job waits on a queue pair that is in use. The next packet shows that its
/// sender has gone on: the hello is given up (docs/protocol.md §2a).
TEST(CachedPath, LeavesPacketsToTheStagesWhileAHelloWaits) {
  const JobSpec spec = spec_of(Verb::send, Network::ipv4, 0);
  Hosts hosts(spec);
  hosts.say_hello();
  hosts.send_from_all(1);
  hosts.send_from_all(2);
  const std::vector<Built> next = hosts.message(0, 3);
  RingJob other(spec);
  other.restart(2);
  other.spec().first_qp = spec.first_qp;
  constexpr std::uint32_t before = 1 + 2 * 4 + 1; // as the second packet of `next`
  other.spec().first_psn = wire::psn_add(hosts.job().first_psn_of(0), before);
  hosts.send(0, {next[0]});
  hosts.send(0, {other.hello(0)});
  EXPECT_EQ(hosts.twins().waiting_hellos(), 1u);
  hosts.send(0, {next[1]});
  EXPECT_EQ(hosts.twins().waiting_hellos(), 1u) << "not past it yet";
  hosts.send(0, {next[2]});
  EXPECT_EQ(hosts.twins().waiting_hellos(), 0u);
}

/// Jobs come and go until all places in the flow cache are taken. A damaged packet learns nothing,
/// so the entry that it could have displaced is still there for a late packet of an earlier job.
TEST(CachedPath, KeepsAnEntryThatADamagedPacketCouldHaveDisplaced) {
  Hosts hosts(spec_of(Verb::send, Network::ipv4, 0));
  std::vector<Incoming> late;
  for (std::uint32_t epoch = 1; epoch <= 40; ++epoch) {
    if (epoch > 1) {
      hosts.job().restart(epoch);
    }
    hosts.say_hello();
    const std::vector<Built> packets = hosts.message(0, 1);
    hosts.send(0, {packets[0]});
    Incoming damaged{packets[1].bytes, hosts.job().port_of(0)};
    damaged.bytes[damaged.bytes.size() - 10] ^= 1;
    std::vector<Incoming> burst{damaged};
    burst.insert(burst.end(), late.begin(),
                 late.begin() +
                     static_cast<std::ptrdiff_t>(std::min(late.size(), InlineSwitch::kBurst - 1)));
    ASSERT_NO_FATAL_FAILURE(hosts.twins().send(burst));
    hosts.send_from_all(1);
    for (const std::size_t packet : {3, 1, 0}) {
      late.insert(late.begin(), {packets[packet].bytes, hosts.job().port_of(0)});
    }
  }
}

/// Two tenants' rings, whose hosts have the same interface identifiers and queue pairs: only the
/// networks' prefixes differ. Each keeps the short way.
TEST(CachedPath, SharesNoEntryBetweenAddressesThatEndAlike) {
  JobSpec spec = spec_of(Verb::send, Network::ipv6, 0);
  RingJob first(spec);
  spec.ring = 2;
  spec.network_id = 1;
  spec.session = kSession + 1;
  RingJob second(spec);
  SwitchFixture fixture({&first, &second});
  const auto send_from_all = [&](RingJob& job, auto&& packets_of) {
    for (std::uint16_t rank = 0; rank < kWorld; ++rank) {
      for (const Built& packet : packets_of(rank)) {
        fixture.send(packet, job.port_of(rank));
      }
    }
  };
  for (RingJob* job : {&first, &second}) {
    send_from_all(*job, [&](std::uint16_t rank) { return std::vector{job->hello(rank)}; });
  }
  constexpr std::uint32_t messages = 4;
  for (std::uint32_t number = 1; number <= messages; ++number) {
    for (RingJob* job : {&first, &second}) {
      send_from_all(*job, [&](std::uint16_t rank) {
        return job->message(rank, number, Bytes(kMessageBytes, 0x11));
      });
    }
  }
  const std::uint64_t packets =
      messages * first.message(0, messages + 1, Bytes(kMessageBytes, 0x11)).size();
  EXPECT_EQ(fixture.inside().worker().cached_path().taken(), 2u * kWorld * (packets - 3))
      << "all but each connection's first FIRST, MIDDLE and LAST";
}

/// A ring goes and comes again, and its hosts come back with the same queue pairs. What belonged to
/// the old ring is gone.
void expect_nothing_of_a_withdrawn_ring(const JobSpec& spec) {
  Hosts hosts(spec);
  hosts.say_hello();
  hosts.send_from_all(1);
  hosts.send_from_all(2);
  hosts.twins().replace_ring(hosts.job().ring());
  const std::uint32_t first_qp = hosts.job().spec().first_qp;
  hosts.job().restart(2);
  hosts.job().spec().first_qp = first_qp;
  hosts.say_hello();
  const std::uint64_t taken = hosts.twins().taken();
  hosts.send_from_all(1);
  EXPECT_EQ(hosts.twins().taken(), taken) << "the first packets of all kinds go through the stages";
  hosts.send_from_all(2);
  EXPECT_GT(hosts.twins().taken(), taken);
}

TEST(CachedPath, DoesNotUseWhatAWithdrawnRingHad) {
  const JobSpec spec = spec_of(Verb::send, Network::ipv4, 0);
  expect_nothing_of_a_withdrawn_ring(spec);
  ASSERT_TRUE(Hosts(far(spec)).twins().is_far());
  expect_nothing_of_a_withdrawn_ring(far(spec));
}

} // namespace
} // namespace weir::stage::cached_path_test
