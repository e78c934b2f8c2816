// SPDX-License-Identifier: BSD-3-Clause

/// A sequence of frames to the classifier. Checks: each contribution is inside its ring's slots;
/// only frames that a ring's member may send get there; only the hellos of all ranks begin an
/// incarnation.

#include "conn/classifier.hpp"
#include "frame/frame.hpp"
#include "frame_script.hpp"
#include "fuzz_rings.hpp"

#include <deque>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

using namespace weir;

namespace {

constexpr std::uint32_t kPlainEntries = 8;
constexpr std::uint64_t kWaysOut = 0b110; // of every hello

std::vector<std::uint16_t> all_of(const ring::RingSet& set) {
  std::vector<std::uint16_t> rings(set.rings().size());
  std::iota(rings.begin(), rings.end(), std::uint16_t{0});
  return rings;
}

void check_contribution(const conn::Verdict& verdict, const frame::Frame& frame,
                        const ring::RingSpec& ring) {
  const conn::MessageRecord& record = *verdict.record;
  const std::uint32_t slots = ring.depth() * ring.packets_per_message();
  fuzz::require(verdict.child < ring.world(), "a rank that the ring does not have");
  fuzz::require(ring.members[verdict.child].ip == frame.source(), "another member's address");
  const auto& port = ring.members[verdict.child].port;
  fuzz::require(!port || *port == frame.ingress, "another member's port");
  fuzz::require(record.packets <= ring.packets_per_message(), "a message of too many packets");
  fuzz::require(verdict.packet < record.packets, "a packet behind its message's end");
  fuzz::require(record.first_slot + verdict.packet < slots, "a slot behind the table's end");
  fuzz::require(frame.packet.payload_bytes <= ring.mtu, "a payload longer than a slot");
}

/// A frame and its bytes. They stay at their address, because the classifier keeps hellos.
struct Kept {
  explicit Kept(fuzz::ScriptedFrame scripted) : bytes(std::move(scripted.bytes)) {
    frame.data = bytes.data();
    frame.length = static_cast<std::uint32_t>(bytes.size());
    frame.ingress = scripted.port;
    frame.packet = wire::parse(frame.bytes());
  }

  std::vector<std::uint8_t> bytes;
  frame::Frame frame;
};

class Harness {
 public:
  ~Harness() {
    reset_rings();
    fuzz::require(waiting_.empty(), "a waiting hello is lost");
  }

  Harness() = default;
  Harness(const Harness&) = delete;
  Harness& operator=(const Harness&) = delete;

  void feed(fuzz::ScriptedFrame scripted) {
    obey(scripted.before);
    frame::Frame& frame = frames_.emplace_back(std::move(scripted)).frame;
    const bool is_roce = frame.packet.parsed != wire::Parsed::other; // others have no addresses
    frame.pair = is_roce ? rings_->pair_of(frame.source(), frame.destination()) : std::uint16_t{0};
    if (frame.pair != 0) {
      const std::vector<std::optional<conn::Incarnation>> before = incarnations();
      const conn::Verdict verdict = classifier_.classify(frame, ++now_ * 50);
      fuzz::require(incarnations() == before, "a packet changed an incarnation");
      take_back_given_up();
      check(verdict, frame);
    }
  }

 private:
  void obey(fuzz::Order order) {
    switch (order) {
    case fuzz::Order::none:
    case fuzz::Order::pass_time:             // time passes with each frame
    case fuzz::Order::slow_down_or_catch_up: // a classifier has no queue
    case fuzz::Order::load_or_unload:        // and folds nothing
      return;
    case fuzz::Order::drain_rings:
      return drain_rings();
    case fuzz::Order::reset_rings:
      return reset_rings();
    case fuzz::Order::withdraw_or_add:
      withdraw_or_add();
      return take_back_given_up();
    }
  }

  void withdraw_or_add() {
    if (rings_->is_withdrawn(0)) {
      const ring::Ring ring = rings_->rings()[0];
      rings_.swap(std::make_shared<const ring::RingSet>(rings_->with(ring.spec())));
      incarnations_.adopt(0, conn::RingConnections(ring));
    } else {
      incarnations_.withdraw(0);
      rings_.swap(std::make_shared<const ring::RingSet>(rings_->without(0)));
    }
  }

  void drain_rings() {
    for (const std::uint16_t ring : rings_->present()) {
      incarnations_.drain(ring, now_ * 50);
      take_back_given_up();
    }
  }

  void reset_rings() {
    for (const std::uint16_t ring : rings_->present()) {
      incarnations_.reset(ring);
      take_back_given_up();
    }
  }

  std::vector<std::optional<conn::Incarnation>> incarnations() const {
    std::vector<std::optional<conn::Incarnation>> incarnations;
    for (const std::uint16_t ring : all_of(*rings_)) {
      incarnations.push_back(incarnations_.has(ring) ? incarnations_.incarnation_of(ring)
                                                     : std::nullopt);
    }
    return incarnations;
  }

  void take_back_given_up() {
    for (const conn::GivenUp& hello : incarnations_.take_given_up()) {
      fuzz::require(waiting_.erase(hello.frame) == 1, "a hello that did not wait is given up");
    }
  }

  void check(const conn::Verdict& verdict, frame::Frame& frame) {
    fuzz::require(verdict.ring < rings_->rings().size(), "a ring that is not there");
    switch (verdict.step) {
    case conn::Verdict::Step::contribute:
      check_contribution(verdict, frame, rings_->rings()[verdict.ring].spec());
      break;
    case conn::Verdict::Step::wait:
      waiting_.insert(&frame);
      break;
    case conn::Verdict::Step::begin:
      waiting_.insert(&frame);
      begin(verdict.ring);
      break;
    default:
      break;
    }
    fuzz::require(incarnations_.waiting_hellos() == waiting_.size(),
                  "waiting hellos are miscounted");
  }

  /// An incarnation must begin with a hello of each rank: its own and one that waited (protocol
  /// I11).
  void begin(std::uint16_t ring) {
    const auto hellos = incarnations_.begin(ring, now_ * 50);
    take_back_given_up();
    const ring::RingSpec& spec = rings_->rings()[ring].spec();
    fuzz::require(hellos.size() == spec.world(), "an incarnation without all hellos");
    for (std::uint16_t rank = 0; rank < spec.world(); ++rank) {
      fuzz::require(waiting_.erase(hellos[rank]) == 1, "a hello that did not wait begins");
      check_contribution(incarnations_.hello_verdict({ring, rank}), *hellos[rank], spec);
    }
    fuzz::require(incarnations_.session_of(ring) != 0, "an incarnation without a session");
  }

  ring::CurrentRings rings_{ring::RingSet(fuzz::rings())};
  conn::ForeignSessions foreign_sessions_{
      {}, [](const frame::Frame& /*hello*/, std::uint64_t /*now*/) { return kWaysOut; }};
  conn::QueuePairClaims claims_{conn::QueuePairClaims::most_of(*rings_), {}};
  conn::CurrentOperators operators_{*fuzz::loaded_operators()};
  conn::Classifier::Settings settings_{.sessions =
                                           conn::SessionSource::counting_from(fuzz::kSession),
                                       .plain_entries = kPlainEntries,
                                       .aging = 1000,
                                       .hash_key = {},
                                       .foreign_sessions = &foreign_sessions_,
                                       .claims = &claims_,
                                       .operators = &operators_};
  conn::Incarnations incarnations_{rings_, all_of(*rings_), settings_};
  conn::Classifier classifier_{rings_, incarnations_, settings_,
                               [](const ring::RingChild& /*sender*/) { return false; }};
  std::deque<Kept> frames_;
  std::set<const frame::Frame*> waiting_; // kept by incarnations_
  std::uint64_t now_ = 0;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Harness harness;
  fuzz::FrameScript script({data, size});
  while (auto frame = script.next()) {
    harness.feed(std::move(*frame));
  }
  return 0;
}
