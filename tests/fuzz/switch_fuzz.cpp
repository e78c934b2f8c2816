// SPDX-License-Identifier: BSD-3-Clause

/// A sequence of frames through all stages. Checks: the accounting balances after each frame; no
/// frame is lost or freed twice; forwarded frames are unchanged and do not leave by their ingress
/// port; a ring that drains keeps no hello; nobody touches an operator that was unloaded.

#include "frame/frame.hpp"
#include "frame_script.hpp"
#include "fuzz_rings.hpp"
#include "stage/inline_switch.hpp"
#include "stage/ring_life.hpp"
#include "support/frame_pool.hpp"

#include <algorithm>
#include <vector>

using namespace weir;

namespace {

stage::InlineSwitch::Settings settings(const conn::CurrentOperators& operators) {
  stage::InlineSwitch::Settings settings;
  settings.worker.classifier = {.sessions = conn::SessionSource::counting_from(fuzz::kSession),
                                .plain_entries = 8,
                                .hash_key = {},
                                .operators = &operators};
  settings.worker.queue_room = 8;
  return settings;
}

/// The first group's packets are of a tenant who may send few.
const stage::TenantShares kShares{.rates = {1000}, .tenants = {0}};
constexpr unsigned kServed = 3; // frames that a slow worker does for each that comes, now and then

class Harness {
 public:
  Harness()
      : sink_(pool_), switch_(fuzz::rings(), {1600, 1600, 1600, 300}, settings(operators_), sink_) {
    sink_.attach(switch_);
    switch_.queue().set_shares(kShares, now());
  }

  ~Harness() {
    switch_.queue().discard(now());
    reset_rings();
    fuzz::require(pool_.live() == 0, "a frame leaked");
  }

  Harness(const Harness&) = delete;
  Harness& operator=(const Harness&) = delete;

  void feed(const fuzz::ScriptedFrame& scripted) {
    obey(scripted.before);
    under_way_.push_back(scripted);
    switch_.queue().expect(backlog_);
    switch_.accept(pool_.make(scripted.bytes, scripted.port), now());
    ++now_ms_;
    if (now_ms_ % (2 * kServed) == 0) {
      switch_.serve(kServed, now());
    }
    for (const test::Sent& sent : sink_.take()) {
      if (sent.departure == frame::Departure::forwarded) {
        expect_forwarded(sent);
      }
    }
    const stage::Accounting accounting = switch_.accounting();
    fuzz::require(accounting.balances(), "the accounting does not balance");
    fuzz::require(accounting.held + accounting.queued == pool_.live(),
                  "held frames and live frames differ");
    check_lives(accounting.held);
    if (accounting.queued == 0) {
      under_way_.clear();
    }
  }

 private:
  void expect_forwarded(const test::Sent& sent) const {
    fuzz::require(std::ranges::any_of(under_way_,
                                      [&](const fuzz::ScriptedFrame& came) {
                                        return sent.bytes == came.bytes &&
                                               (sent.ports >> came.port & 1) == 0;
                                      }),
                  "a forwarded frame was altered, or left by its ingress port");
  }

  frame::Instant now() const { return frame::Instant{now_ms_ * 1'000'000}; }

  void obey(fuzz::Order order) {
    switch (order) {
    case fuzz::Order::none:
      return;
    case fuzz::Order::drain_rings:
      return drain_rings();
    case fuzz::Order::reset_rings:
      return reset_rings();
    case fuzz::Order::withdraw_or_add:
      return withdraw_or_add();
    case fuzz::Order::load_or_unload:
      return load_or_unload();
    case fuzz::Order::slow_down_or_catch_up:
      backlog_ = backlog_ == stage::Backlog::none ? stage::Backlog::likely : stage::Backlog::none;
      return;
    }
  }

  void check_lives(std::uint64_t held) {
    for (const std::uint16_t ring : switch_.rings().present()) {
      const stage::RingLife life =
          stage::life_of(switch_.worker(), ring, switch_.rings().rings()[ring].spec(), now());
      fuzz::require(life.heard_ns <= now().ns, "a packet was heard that is yet to come");
      fuzz::require(!life.draining_since_ns || life.held == switch_.worker().slots_of(ring).held(),
                    "a hello waits for a ring that drains");
      held -= life.held;
    }
    fuzz::require(held == 0, "the rings hold less than the switch");
  }

  void drain_rings() {
    for (const std::uint16_t ring : switch_.rings().present()) {
      switch_.drain_ring(ring, now());
    }
  }

  void reset_rings() {
    for (const std::uint16_t ring : switch_.rings().present()) {
      switch_.reset_ring(ring, now());
    }
  }

  /// It gets its index back.
  void withdraw_or_add() {
    if (switch_.rings().is_withdrawn(0)) {
      switch_.add_ring(switch_.rings().rings()[0].spec());
    } else {
      switch_.withdraw_ring(0, now());
    }
  }

  /// Unloaded only if no ring's job folds by it, as the control service does.
  void load_or_unload() {
    if (operators_->rows().empty()) {
      operators_.swap(fuzz::loaded_operators());
      return;
    }
    const auto& incarnations = switch_.worker().incarnations();
    if (std::ranges::none_of(switch_.rings().present(), [&](std::uint16_t ring) {
          return incarnations.uses(ring, fuzz::operator_digest());
        })) {
      operators_.swap(std::make_shared<const program::LoadedOperators>());
    }
  }

  conn::CurrentOperators operators_{*fuzz::loaded_operators()};
  test::FramePool pool_;
  test::RecordingSink sink_;
  stage::InlineSwitch switch_;
  stage::Backlog backlog_ = stage::Backlog::none;
  std::vector<fuzz::ScriptedFrame> under_way_; // since no frame waited
  std::uint64_t now_ms_ = 1;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Harness harness;
  fuzz::FrameScript script({data, size});
  while (const auto frame = script.next()) {
    harness.feed(*frame);
  }
  return 0;
}
