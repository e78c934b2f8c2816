// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// A region among simulated hosts, over the real switch and links that lose, double, delay and
/// damage: members are software queue pairs. Watchers look after each step for what must never
/// happen (docs/protocol.md §13).

#include "endpoint/packet_writer.hpp"
#include "endpoint/read_packets.hpp"
#include "network/simulated_network.hpp"
#include "network/timed_device.hpp"
#include "region/region.hpp"
#include "wire/icrc.hpp"
#include "wire/parse.hpp"
#include "wire/psn.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::region::region_test {

using network::Dice;
using network::kPercent;
using network::LinkTraits;
using network::Ppm;
using network::SimulatedNetwork;
using network::Time;

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kLongestFrame = 2048;
constexpr std::size_t kMtu = 256;
constexpr std::uint64_t kBase = 0x7f00'0000'1000;
constexpr std::uint32_t kKey = 0xabcd;
constexpr std::uint64_t kHelloId = 1'000'000;
constexpr std::size_t kOpcodeAt = 14 + 20 + 8; // behind Ethernet, IPv4 and UDP
constexpr std::uint8_t kCongestion = 0x81;     // CNP (IBTA A17.9.3)

inline wire::MacAddress mac_of(std::uint16_t member) {
  return {{0x02, 0x30, 0, 0, 0, static_cast<std::uint8_t>(member + 1)}};
}

inline wire::IpAddress ip_of(std::uint16_t member) {
  return *wire::parse_ip("10.0.0." + std::to_string(member + 1));
}

inline Address regions_address() {
  return {*wire::parse_ip("10.0.0.254"), *wire::parse_mac("02:57:45:00:00:01")};
}

/// What a member writes into the region, or reads of it.
struct Write {
  std::uint64_t offset = 0;
  Bytes bytes; // of a READ: what it must give
  bool has_immediate = false;
  std::optional<std::size_t> view = {}; // it is a READ
  /// Of a READ of Plan::clocks: what it gives is no older than the READ itself.
  bool is_of_clocks = false;
};

/// How a run goes, but for the links' luck.
struct Plan {
  RegionSpec spec;
  std::vector<LinkTraits> links;
  std::vector<endpoint::Stack> stacks;    // by member
  std::vector<Time> starts;               // by member: when it is ready and says hello
  std::vector<std::vector<Write>> writes; // by member
  std::uint32_t host_window = 64;         // packets
  Time receives_from = 0;                 // before it no host posts a receive
  Ppm receive_late = 0;                   // which costs an RNR NAK
  endpoint::Duration ack_timeout = std::chrono::milliseconds(17);
  std::uint8_t retries = 7;
  /// Numbers in each member's copy, which it always sets to the time. Others do not write there.
  std::uint64_t clocks_at = 0;
  std::size_t clocks = 0;
  std::vector<Bytes> contents; // by member: its copy at first; none: zeros
  std::uint64_t seed = 1;
  std::uint16_t first_port = 0; // that member 0 is behind
};

/// A host: its queue pair with the switch, its copy of the memory, its writes.
class Host : public network::Station, private network::Plug {
 public:
  /// `times`: what each member's clocks show.
  Host(SimulatedNetwork& network, const Plan& plan, const RegionBirth& birth, std::uint16_t member,
       std::uint64_t seed, std::vector<Time>& times)
      : network_(network), plan_(plan), birth_(birth), member_(member),
        port_(static_cast<std::uint16_t>(plan.first_port + member)), times_(times),
        memory_(plan.contents.empty() ? Bytes(plan.spec.bytes) : plan.contents[member]),
        device_(*this, kLongestFrame), dice_(seed), targets_(plan.writes[member].size()),
        since_(plan.writes[member].size()) {
    network_.attach(port_, *this);
    device_.memory().add(kKey + member, kBase * (member + 1u), memory_,
                         endpoint::Access::read_and_write);
    network_.wake(port_, plan.starts[member]);
  }

  void receive(std::span<std::uint8_t> frame) override {
    ASSERT_NE(queue_pair_, nullptr)
        << "the switch sent to member " << member_ << ", which has not said hello";
    watch(frame);
    watch_refusal(frame);
    set_clocks();
    if (frame.size() > kOpcodeAt && frame[kOpcodeAt] == kCongestion) {
      notifications_.emplace_back(frame.begin(), frame.end());
    }
    device_.receive(frame);
    note_response(frame);
    act();
  }

  void expire() override {
    if (queue_pair_ == nullptr && now() >= plan_.starts[member_]) {
      begin();
    }
    if (queue_pair_ != nullptr) {
      device_.expire();
      act();
    }
  }

  bool is_done() const { return is_open_ && completed_ == plan_.writes[member_].size(); }

  bool is_open() const { return is_open_; }

  bool has_said_hello() const { return queue_pair_ != nullptr; }

  const Bytes& memory() const { return memory_; }

  /// Writes whose completion it has had.
  std::size_t completed() const { return completed_; }

  /// Immediates in the order in which they came.
  const std::vector<std::uint32_t>& immediates() const { return immediates_; }

  /// CNPs that have come.
  const std::vector<Bytes>& notifications() const { return notifications_; }

  endpoint::QueuePair& queue_pair() { return *queue_pair_; }

  /// From now on it does nothing.
  void die() { is_dead_ = true; }

  void act() {
    if (is_dead_) {
      return;
    }
    set_clocks();
    poll();
    post();
    device_.transmit();
  }

 private:
  void set_clocks() {
    times_[member_] = now();
    for (std::size_t clock = 0; clock < plan_.clocks; ++clock) {
      std::memcpy(memory_.data() + plan_.clocks_at + 8 * clock, &times_[member_], 8);
    }
  }

  std::uint64_t sum_of_times() const {
    return std::accumulate(times_.begin(), times_.end(), std::uint64_t{0});
  }

  /// V2 and V3.
  void check_read(std::size_t number) {
    const Write& read = plan_.writes[member_][number];
    if (!read.is_of_clocks) {
      ASSERT_EQ(targets_[number], read.bytes)
          << "V2, V3: member " << member_ << " has read something else by its READ " << number;
      return;
    }
    for (std::size_t at = 0; at < targets_[number].size(); at += 8) {
      std::uint64_t sum = 0;
      std::memcpy(&sum, targets_[number].data() + at, 8);
      ASSERT_GE(sum, since_[number]) << "V2: read before member " << member_ << " wanted it";
      ASSERT_LE(sum, sum_of_times()) << "V2: a member's bytes twice, or others";
    }
  }

  Time now() const override { return network_.now(); }

  void send(std::span<const std::uint8_t> frame) override { network_.send(port_, frame); }

  void wake_at(Time time) override { network_.wake(port_, time); }

  void begin() {
    const MemberSpec& spec = plan_.spec.members[member_];
    endpoint::QueuePairConfig config;
    config.local_mac = mac_of(port_);
    config.remote_mac = regions_address().mac;
    config.local_ip = ip_of(port_);
    config.remote_ip = regions_address().ip;
    config.stack = plan_.stacks[member_];
    config.local_qp = spec.queue_pair;
    config.remote_qp = birth_.members[member_].queue_pair;
    config.send_psn = spec.first_psn;
    config.receive_psn = birth_.members[member_].first_psn;
    config.path_mtu = plan_.spec.mtu;
    config.ack_timeout = plan_.ack_timeout;
    config.retry_count = plan_.retries;
    config.window = plan_.host_window;
    config.rnr_timer = 2; // 20 us
    config.send_depth = 8;
    config.max_rd_atomic = config.max_dest_rd_atomic = spec.reads;
    config.receive_depth = 64;
    queue_pair_ = &device_.create(config);
    const Token& token = birth_.members[member_].token;
    hello_.bytes.assign(token.begin(), token.end());
    post_write(kHelloId, hello_);
  }

  /// V6: nothing acknowledges what its receiver has not sent.
  void watch(std::span<const std::uint8_t> frame) {
    const wire::Packet packet = wire::parse(frame);
    if (packet.parsed != wire::Parsed::transport) {
      return;
    }
    const auto& bth = wire::view_as<wire::Bth>(frame.data() + packet.bth_offset);
    wire::ParsedBytes parsed{const_cast<std::uint8_t*>(frame.data()),
                             static_cast<std::uint32_t>(frame.size())};
    parsed.packet = packet;
    if (!wire::icrc_is_valid(parsed)) {
      return;
    }
    if (endpoint::is_read_response(parsed)) {
      EXPECT_GE(wire::psn_distance(packet.psn, queue_pair_->sent_psn()), 0) << "V6: a response";
    }
    if (bth.opcode != static_cast<std::uint8_t>(wire::Opcode::acknowledge)) {
      return;
    }
    const auto& aeth =
        wire::view_as<wire::Aeth>(frame.data() + packet.bth_offset + sizeof(wire::Bth));
    const bool is_ack = wire::kind_of(aeth.syndrome) == wire::SyndromeKind::acknowledge;
    const std::uint32_t last = is_ack ? packet.psn : wire::psn_add(packet.psn, -1);
    EXPECT_GE(wire::psn_distance(last, queue_pair_->sent_psn()), 0)
        << "member " << member_ << " was told that the switch has " << last;
  }

  /// V3: Linux 6.1's soft-RoCE completes a READ with success by a NAK between its responses.
  void watch_refusal(std::span<const std::uint8_t> frame) {
    const wire::Packet packet = wire::parse(frame);
    const bool is_nak =
        frame.size() > kOpcodeAt + sizeof(wire::Bth) &&
        frame[kOpcodeAt] == static_cast<std::uint8_t>(wire::Opcode::acknowledge) &&
        wire::kind_of(frame[kOpcodeAt + sizeof(wire::Bth)]) == wire::SyndromeKind::nak;
    if (is_nak && is_inside_read_) {
      EXPECT_NE(packet.psn, wire::psn_add(queue_pair_->acknowledged_psn(), 1))
          << "V3: a NAK between the responses to a READ of member " << member_;
    }
  }

  void note_response(std::span<const std::uint8_t> frame) {
    const wire::Packet packet = wire::parse(frame);
    if (packet.parsed != wire::Parsed::transport || packet.psn != queue_pair_->acknowledged_psn()) {
      return;
    }
    const auto opcode = static_cast<wire::Opcode>(frame[kOpcodeAt]);
    is_inside_read_ =
        opcode == wire::Opcode::read_response_first || opcode == wire::Opcode::read_response_middle;
  }

  void poll() {
    while (const auto completion = queue_pair_->poll()) {
      if (completion->kind == endpoint::CompletionKind::receive_write_immediate) {
        immediates_.push_back(completion->immediate.value_or(0));
        continue;
      }
      if (completion->status != endpoint::Status::success) {
        continue; // the run's end looks at the queue pair
      }
      if (completion->id == kHelloId) {
        is_open_ = true;
      } else if (completion->is_send_queue()) {
        EXPECT_EQ(completion->id, completed_);
        if (completion->kind == endpoint::CompletionKind::read) {
          check_read(completed_);
        }
        ++completed_;
      }
    }
  }

  void post() {
    while (now() >= plan_.receives_from && !dice_.chance(plan_.receive_late) &&
           queue_pair_->post(endpoint::ReceiveRequest{}) == endpoint::PostResult::posted) {
    }
    const std::vector<Write>& writes = plan_.writes[member_];
    while (is_open_ && posted_ < writes.size()) {
      const Write& next = writes[posted_];
      if (!(next.view ? post_read(posted_, next) : post_write(posted_, next))) {
        break;
      }
      ++posted_;
    }
  }

  /// False when the queue pair has no room for it now.
  bool post_write(std::uint64_t id, const Write& write) {
    endpoint::SendRequest request;
    request.id = id;
    request.kind =
        write.has_immediate ? endpoint::SendKind::write_immediate : endpoint::SendKind::write;
    request.data = write.bytes;
    request.remote_address = birth_.base + write.offset;
    request.remote_key = birth_.multicast_key;
    request.immediate = static_cast<std::uint32_t>(member_ << 16u | id);
    return queue_pair_->post(request) == endpoint::PostResult::posted;
  }

  bool post_read(std::uint64_t id, const Write& read) {
    targets_[id].assign(read.bytes.size(), 0xee);
    since_[id] = sum_of_times();
    endpoint::SendRequest request;
    request.id = id;
    request.kind = endpoint::SendKind::read;
    request.target = targets_[id];
    request.remote_address = birth_.base + read.offset;
    request.remote_key = birth_.view_keys[*read.view];
    return queue_pair_->post(request) == endpoint::PostResult::posted;
  }

  SimulatedNetwork& network_;
  const Plan& plan_;
  const RegionBirth& birth_;
  std::uint16_t member_;
  std::uint16_t port_;
  std::vector<Time>& times_;
  Bytes memory_;
  network::TimedDevice device_;
  Dice dice_;
  std::vector<Bytes> targets_;       // of READs
  std::vector<std::uint64_t> since_; // what the clocks of all showed when a READ was posted
  Write hello_;
  endpoint::QueuePair* queue_pair_ = nullptr;
  bool is_open_ = false;
  bool is_dead_ = false;
  bool is_inside_read_ = false; // it has some of its responses
  std::size_t posted_ = 0;
  std::size_t completed_ = 0;
  std::vector<std::uint32_t> immediates_;
  std::vector<Bytes> notifications_;
};

/// A region among hosts.
class World {
 public:
  explicit World(const Plan& plan)
      : plan_(plan),
        own_(std::make_unique<SimulatedNetwork>(
            SimulatedNetwork::Plan{
                .links = plan.links, .longest_frame = kLongestFrame, .seed = plan.seed},
            std::vector<ring::RingSpec>(),
            stage::InlineSwitch::Settings{.regions = regions_address()})),
        network_(*own_), birth_(draw(plan)), region_(network_.regions().add(plan.spec, birth_)),
        times_(plan.spec.members.size()) {
    attach_hosts();
  }

  /// On a network that others use too.
  World(const Plan& plan, SimulatedNetwork& network)
      : plan_(plan), network_(network), birth_(draw(plan)),
        region_(network_.add_region(plan.spec, birth_)), times_(plan.spec.members.size()) {
    attach_hosts();
  }

  static RegionBirth draw(const Plan& plan) {
    Dice dice(plan.seed * 7919);
    return draw_birth(
        plan.spec, [&] { return dice.next(); }, [](std::uint32_t) { return false; });
  }

  std::size_t members() const { return hosts_.size(); }

  Host& host(std::size_t member) { return *hosts_[member]; }

  Region& region() { return region_; }

  SimulatedNetwork& network() { return network_; }

  const RegionBirth& birth() const { return birth_; }

  bool is_done() const {
    return std::ranges::all_of(hosts_, [](const auto& host) { return host->is_done(); });
  }

  /// False when nothing can happen any more.
  bool step() {
    if (!network_.advance()) {
      return false;
    }
    watch();
    return true;
  }

  template <typename Holds>
  void run_until(Holds&& holds) {
    constexpr std::uint64_t most_steps = 400'000;
    std::uint64_t steps = 0;
    while (!holds() && !testing::Test::HasFailure()) {
      ASSERT_TRUE(step()) << "nothing under way, no timer, and not everything done";
      ASSERT_LT(++steps, most_steps) << "no end in sight" << where();
    }
  }

  void run_for(Time time) {
    const Time end = network_.now() + time;
    network_.wake(0, end);
    run_until([&] { return network_.now() >= end; });
  }

  /// For who looks into a standstill.
  std::string where() {
    std::string text;
    for (std::uint16_t member = 0; member < hosts_.size(); ++member) {
      text += "\nmember " + std::to_string(member) + ": completed " +
              std::to_string(hosts_[member]->completed()) + ", held " +
              std::to_string(region_.held_of(member)) + ", unacknowledged " +
              std::to_string(region_.unacknowledged_by(member)) + ", READs " +
              std::to_string(region_.unanswered_reads_of(member)) + ", entries " +
              std::to_string(region_.entries_used());
    }
    return text;
  }

  /// Looks for what must never happen.
  void watch() {
    const bool is_known = network_.regions().with_id(plan_.spec.id) == &region_; // else it is gone
    for (std::uint16_t member = 0; member < hosts_.size(); ++member) {
      ASSERT_TRUE(!is_known || region_.held_of(member) <= plan_.spec.window) << "V8";
      ASSERT_TRUE(!is_known || region_.entries_used() <= plan_.spec.entries) << "V8";
      watch_completions(member);
    }
    const bool all_said_hello =
        std::ranges::all_of(hosts_, [](const auto& host) { return host->has_said_hello(); });
    const bool one_is_open =
        std::ranges::any_of(hosts_, [](const auto& host) { return host->is_open(); });
    ASSERT_TRUE(all_said_hello || !one_is_open) << "open before all have said hello";
    ASSERT_TRUE(network_.engine().accounting().balances()) << "V10";
  }

 private:
  void attach_hosts() {
    for (std::uint16_t member = 0; member < plan_.spec.members.size(); ++member) {
      hosts_.push_back(std::make_unique<Host>(network_, plan_, birth_, member,
                                              plan_.seed * 1000 + member, times_));
    }
  }

  /// V1, where nobody writes to the same bytes twice.
  void watch_completions(std::uint16_t source) {
    if (!are_disjoint()) {
      return;
    }
    std::size_t& checked = checked_[source];
    for (; checked < hosts_[source]->completed(); ++checked) {
      const Write& write = plan_.writes[source][checked];
      if (write.view) {
        continue;
      }
      for (std::size_t target = 0; target < hosts_.size(); ++target) {
        if (target == source && plan_.spec.loopback == Loopback::off) {
          continue;
        }
        const auto at =
            hosts_[target]->memory().begin() + static_cast<std::ptrdiff_t>(write.offset);
        ASSERT_TRUE(std::equal(write.bytes.begin(), write.bytes.end(), at))
            << "V1: member " << source << " has write " << checked << " complete, member " << target
            << " has it not";
      }
    }
  }

  bool are_disjoint() {
    if (!disjoint_) {
      std::vector<std::uint8_t> taken(plan_.spec.bytes);
      disjoint_ = true;
      for (const auto& writes : plan_.writes) {
        for (const Write& write : writes) {
          for (std::size_t i = 0; !write.view && i < write.bytes.size(); ++i) {
            disjoint_ = *disjoint_ && taken[write.offset + i] == 0;
            taken[write.offset + i] = 1;
          }
        }
      }
    }
    return *disjoint_;
  }

  Plan plan_;
  std::unique_ptr<SimulatedNetwork> own_; // nullptr: another's
  SimulatedNetwork& network_;
  RegionBirth birth_;
  Region& region_;
  std::vector<Time> times_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::array<std::size_t, 8> checked_{};
  std::optional<bool> disjoint_;
};

inline Bytes random_bytes(std::size_t count, Dice& dice) {
  Bytes bytes(count);
  std::ranges::generate(bytes, [&dice] { return static_cast<std::uint8_t>(dice.between(1, 255)); });
  return bytes;
}

/// As often near the wrap as anywhere.
inline std::uint32_t draw_first_psn(Dice& dice) {
  return static_cast<std::uint32_t>(dice.chance(50 * kPercent) ? 0xffffff - dice.below(60)
                                                               : dice.below(1 << 24));
}

inline void draw_faults(LinkTraits& link, Dice& dice) {
  link.late = static_cast<Ppm>(dice.below(11) * kPercent);
  link.loss = static_cast<Ppm>(dice.below(10) * kPercent);
  link.duplication = static_cast<Ppm>(dice.below(11) * kPercent);
  link.corruption = static_cast<Ppm>(dice.below(3) * kPercent);
}

/// Links without a fault, members that are there from the beginning, and nothing to write.
inline Plan calm_plan(std::uint16_t members, std::uint16_t first_port = 0) {
  Plan plan;
  plan.first_port = first_port;
  plan.spec.id = 7;
  plan.spec.bytes = 65536;
  plan.spec.mtu = kMtu;
  for (std::uint16_t member = 0; member < members; ++member) {
    const auto port = static_cast<std::uint16_t>(first_port + member);
    plan.spec.members.push_back({.ip = ip_of(port),
                                 .port = port,
                                 .queue_pair = 100u + member,
                                 .first_psn = 0xfffff0u + member,
                                 .base = kBase * (member + 1u),
                                 .key = kKey + member,
                                 .ack_timeout = 12});
    plan.links.push_back({.delay = 5000});
    plan.stacks.push_back(endpoint::Stack::ibta);
    plan.starts.push_back(1000);
    plan.writes.emplace_back();
  }
  return plan;
}

/// A WRITE ONLY to the region's first bytes, as the queue pair's first packet.
inline Bytes write_only(const endpoint::QueuePairConfig& config, const RegionBirth& birth,
                        std::span<const std::uint8_t> payload) {
  endpoint::PacketWriter writer(config);
  Bytes frame(kLongestFrame);
  frame.resize(writer.write_request(frame,
                                    {.opcode = wire::Opcode::write_only,
                                     .ack_request = endpoint::AckRequest::yes,
                                     .psn = config.send_psn,
                                     .remote_address = birth.base,
                                     .remote_key = birth.multicast_key,
                                     .message_bytes = static_cast<std::uint32_t>(payload.size()),
                                     .immediate = 0},
                                    {payload, {}}));
  return frame;
}

} // namespace weir::region::region_test
