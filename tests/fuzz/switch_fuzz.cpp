// SPDX-License-Identifier: BSD-3-Clause

/// A sequence of frames through all stages. Checks: the accounting balances after each frame; no
/// frame is lost or freed twice; forwarded frames are unchanged and do not leave by their ingress
/// port; what regions send is for their members, inside their memory, and has bytes that members of
/// the same region sent; a region holds no more than its window; a ring that drains keeps no hello;
/// nobody touches an operator that was unloaded.

#include "frame/frame.hpp"
#include "frame_script.hpp"
#include "fuzz_rings.hpp"
#include "stage/inline_switch.hpp"
#include "stage/ring_life.hpp"
#include "support/frame_pool.hpp"
#include "support/region_members.hpp"

#include <algorithm>
#include <array>
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
  settings.regions = test::regions_address();
  return settings;
}

/// The first group's packets are of a tenant who may send few.
const stage::TenantShares kShares{.rates = {1000}, .tenants = {0}};
constexpr std::uint64_t kPauseMs = 20;
constexpr unsigned kServed = 3; // frames that a slow worker does for each that comes, now and then

class Harness {
 public:
  Harness()
      : sink_(pool_), switch_(fuzz::rings(), {1600, 1600, 1600, 300}, settings(operators_), sink_) {
    sink_.attach(switch_);
    switch_.queue().set_shares(kShares, now());
    for (const test::RegionMembers& members : regions_) {
      add_region(members);
    }
  }

  ~Harness() {
    switch_.queue().discard(now());
    reset_rings();
    for (const test::RegionMembers& members : regions_) {
      end_region(members);
    }
    fuzz::require(pool_.live() == 0, "a frame leaked");
  }

  Harness(const Harness&) = delete;
  Harness& operator=(const Harness&) = delete;

  void feed(const fuzz::ScriptedFrame& scripted) {
    obey(scripted.before);
    under_way_.push_back(scripted);
    note_written(scripted);
    switch_.queue().expect(backlog_);
    switch_.accept(pool_.make(scripted.bytes, scripted.port), now());
    ++now_ms_;
    if (now_ms_ % (2 * kServed) == 0) {
      switch_.serve(kServed, now());
    }
    for (const test::Sent& sent : sink_.take()) {
      if (is_of_regions(sent)) {
        expect_of_region(sent);
      } else if (sent.departure == frame::Departure::forwarded) {
        expect_forwarded(sent);
      }
    }
    const stage::Accounting accounting = switch_.accounting();
    fuzz::require(accounting.balances(), "the accounting does not balance");
    fuzz::require(accounting.held + accounting.queued == pool_.live(),
                  "held frames and live frames differ");
    check_windows();
    check_lives(accounting.held - switch_.regions().held());
    if (accounting.queued == 0) {
      under_way_.clear();
    }
  }

 private:
  struct Parsed {
    explicit Parsed(const std::vector<std::uint8_t>& sent)
        : bytes(sent), frame{bytes.data(), static_cast<std::uint32_t>(bytes.size())} {
      frame.packet = wire::parse(bytes);
    }

    Parsed(const Parsed&) = delete; // the frame is the bytes
    Parsed& operator=(const Parsed&) = delete;
    ~Parsed() = default;

    test::Bytes payload() const {
      return {frame.payload(), frame.payload() + frame.packet.payload_bytes};
    }

    std::vector<std::uint8_t> bytes;
    wire::ParsedBytes frame;
  };

  /// Who else says so is an impostor, whose frame is dropped. Answers of ARP are no RoCE.
  static bool is_of_regions(const test::Sent& sent) {
    const auto& mac = test::regions_address().mac.bytes;
    return sent.departure == frame::Departure::forwarded && sent.bytes.size() >= 12 &&
           std::equal(mac.begin(), mac.end(), sent.bytes.begin() + 6);
  }

  /// The region whose queue pairs the frame is sent to, as far as it says.
  void note_written(const fuzz::ScriptedFrame& scripted) {
    const Parsed came(scripted.bytes);
    if (came.frame.packet.parsed != wire::Parsed::transport &&
        came.frame.packet.parsed != wire::Parsed::message) {
      return;
    }
    for (std::size_t region = 0; region < regions_.size(); ++region) {
      const auto& born = regions_[region].birth.members;
      if (std::ranges::count(born, came.frame.packet.destination_qp,
                             &region::MemberBirth::queue_pair) != 0) {
        written_[region].push_back(came.payload());
      }
    }
  }

  void expect_of_region(const test::Sent& sent) const {
    const Parsed left(sent.bytes);
    fuzz::require(left.frame.packet.parsed == wire::Parsed::transport ||
                      left.frame.packet.parsed == wire::Parsed::message,
                  "a region sends what is no packet");
    fuzz::require(wire::icrc_is_valid(left.frame), "a region sends a wrong ICRC");
    fuzz::require(left.frame.source() == test::regions_address().ip, "by another address");
    for (std::size_t region = 0; region < regions_.size(); ++region) {
      for (const region::MemberSpec& member : regions_[region].spec.members) {
        if (left.frame.destination() == member.ip) {
          fuzz::require(sent.ports == l2::PortSet{1} << *member.port &&
                            left.frame.packet.destination_qp == member.queue_pair,
                        "a region sends to another port or queue pair");
          return expect_copy(left, region, member);
        }
      }
    }
    fuzz::require(false, "a region sends to who is no member");
  }

  void expect_copy(const Parsed& left, std::size_t region, const region::MemberSpec& member) const {
    const wire::Packet& packet = left.frame.packet;
    if (packet.opcode.has_reth == 0) {
      return;
    }
    const auto& reth =
        wire::view_as<wire::Reth>(left.frame.data + packet.bth_offset + sizeof(wire::Bth));
    const std::uint64_t offset = reth.virtual_address.get() - member.base;
    fuzz::require(reth.remote_key.get() == member.key &&
                      reth.dma_length.get() == packet.payload_bytes &&
                      offset <= regions_[region].spec.bytes - packet.payload_bytes,
                  "a copy beyond the member's memory");
    fuzz::require(std::ranges::count(written_[region], left.payload()) != 0,
                  "a copy of what no member of the region sent");
  }

  void check_windows() {
    for (const auto& region : switch_.regions().regions()) {
      for (std::uint16_t member = 0; member < region->spec().members.size(); ++member) {
        fuzz::require(region->held_of(member) <= region->spec().window, "more than its window");
      }
    }
  }

  void add_region(const test::RegionMembers& members) {
    switch_.add_region(members.spec, members.birth, stage::FairQueue::kNoTenant, now());
  }

  void end_region(const test::RegionMembers& members) {
    if (region::Region* const region = switch_.regions().with_id(members.spec.id)) {
      region->end(region::End::withdrawn, now());
      switch_.regions().forget(*region);
      switch_.regions().take_forgotten();
    }
  }

  /// The second one, which gets its numbers back.
  void end_or_add_region() {
    if (switch_.regions().with_id(regions_[1].spec.id) == nullptr) {
      add_region(regions_[1]);
    } else {
      end_region(regions_[1]);
    }
  }

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
    case fuzz::Order::pass_time:
      now_ms_ += kPauseMs;
      return switch_.poll_timers(now());
    case fuzz::Order::drain_rings:
      return drain_rings();
    case fuzz::Order::reset_rings:
      return reset_rings();
    case fuzz::Order::withdraw_or_add:
      end_or_add_region();
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
  const std::vector<test::RegionMembers> regions_ = fuzz::regions();
  std::array<std::vector<test::Bytes>, 2> written_; // payloads that came, by region
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
