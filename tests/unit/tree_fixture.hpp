// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Several switches of a tree, joined by links, with the hosts of one job.

#include "stage/inline_switch.hpp"
#include "support/frame_builder.hpp"
#include "support/frame_pool.hpp"
#include "support/ring_job.hpp"
#include "switch_fixture.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::stage {

/// One switch of the tree, and the frames in it. After each step its accounting must balance.
class TreeNode {
 public:
  static constexpr std::uint16_t kPorts = 8;

  /// Gives out sessions from `first_session` on.
  TreeNode(const std::vector<ring::RingSpec>& rings, std::uint32_t first_session)
      : sink_(pool_), inside(rings, std::vector<std::uint32_t>(kPorts, kMaxFrame),
                             with_operators(first_session), sink_) {
    sink_.attach(inside);
  }

  /// What the switch has from now on.
  void load(std::vector<program::LoadedOperator> rows) {
    operators_.swap(std::make_shared<const program::LoadedOperators>(std::move(rows)));
  }

  std::vector<test::Sent> send(const test::Bytes& bytes, std::uint16_t port, frame::Instant now) {
    inside.accept(pool_.make(bytes, port), now);
    return take();
  }

  std::vector<test::Sent> poll(frame::Instant now) {
    inside.poll_timers(now);
    return take();
  }

  std::uint64_t dropped(DropReason reason) const {
    return inside.accounting().frames.dropped[static_cast<std::size_t>(reason)];
  }

  std::vector<test::Sent> take() {
    const Accounting accounting = inside.accounting();
    EXPECT_TRUE(accounting.balances());
    EXPECT_EQ(pool_.live(), accounting.held + accounting.queued);
    return sink_.take();
  }

 private:
  InlineSwitch::Settings with_operators(std::uint32_t first_session) const {
    InlineSwitch::Settings settings = small_switch(first_session);
    settings.worker.classifier.operators = &operators_;
    return settings;
  }

  test::FramePool pool_;
  test::RecordingSink sink_;
  conn::CurrentOperators operators_{program::LoadedOperators()};

 public:
  InlineSwitch inside;
};

/// Where a link leads: to a switch's port, or to a host.
struct FarEnd {
  std::optional<std::size_t> node;
  std::uint16_t port = 0; // of the switch
  std::uint16_t rank = 0; // else
};

/// A frame on a link.
struct OnLink {
  std::size_t from = 0; // the switch
  std::uint16_t port = 0;
  FarEnd to;
  test::Bytes bytes;
};

/// The switches, whose frames go at once where the links lead.
class TreeFixture {
 public:
  /// Whether the link loses the frame.
  using Loses = std::function<bool(const OnLink&)>;

  /// What a host says to a frame that it gets; nothing: empty.
  using Answer = std::function<test::Bytes(std::uint16_t rank, const test::Bytes&)>;

  std::size_t add_switch(std::vector<ring::RingSpec> rings) {
    const auto first_session = static_cast<std::uint32_t>(0x10000 * (nodes.size() + 1));
    nodes.push_back(std::make_unique<TreeNode>(rings, first_session));
    rings_.push_back(std::move(rings));
    return nodes.size() - 1;
  }

  void join(std::size_t above, std::uint16_t down, std::size_t below, std::uint16_t up) {
    links_[{above, down}] = {.node = below, .port = up};
    links_[{below, up}] = {.node = above, .port = down};
  }

  void join_host(std::size_t node, std::uint16_t port, std::uint16_t rank) {
    links_[{node, port}] = {.node = {}, .rank = rank};
    hosts_[rank] = {node, port};
  }

  /// The switch forgets all.
  void restart(std::size_t node) {
    ++restarts_;
    nodes[node] = std::make_unique<TreeNode>(
        rings_[node], static_cast<std::uint32_t>(0x10000 * (node + 1) + 0x100 * restarts_));
  }

  void from_host(std::uint16_t rank, const test::Bytes& bytes) {
    const auto [node, port] = hosts_.at(rank);
    pass_on(node, nodes[node]->send(bytes, port, now));
    settle();
  }

  void into(std::size_t node, std::uint16_t port, const test::Bytes& bytes) {
    pass_on(node, nodes[node]->send(bytes, port, now));
    settle();
  }

  /// Lets time pass, with all timers.
  void wait(std::uint64_t ns) {
    const std::uint64_t end = now.ns + ns;
    for (;;) {
      std::uint64_t next = UINT64_MAX;
      for (const auto& node : nodes) {
        next = std::min(next, node->inside.next_timer());
      }
      if (next > end) {
        break;
      }
      now = frame::Instant{std::max(now.ns, next)};
      for (std::size_t node = 0; node < nodes.size(); ++node) {
        pass_on(node, nodes[node]->poll(now));
      }
      settle();
    }
    now = frame::Instant{end};
  }

  /// What a host has received since the last call.
  std::vector<test::Bytes> received(std::uint16_t rank) {
    return std::exchange(received_[rank], {});
  }

  /// Frames that a switch has sent by a port.
  std::uint64_t sent(std::size_t node, std::uint16_t port) const {
    const auto found = sent_.find({node, port});
    return found == sent_.end() ? 0 : found->second;
  }

  /// What the switches have dropped, by name, for a failure's message.
  std::string drops() const {
    std::string text;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      const auto& dropped = nodes[node]->inside.accounting().frames.dropped;
      for (std::size_t reason = 0; reason < dropped.size(); ++reason) {
        if (dropped[reason] != 0) {
          text += fmt::format("switch {}: {} {}; ", node, dropped[reason],
                              name_of(static_cast<DropReason>(reason)));
        }
      }
    }
    return text;
  }

  std::uint32_t session_of(std::size_t node) const {
    return nodes[node]->inside.worker().incarnations().session_of(0);
  }

  std::size_t node_of(std::uint16_t rank) const { return hosts_.at(rank).first; }

  std::vector<std::unique_ptr<TreeNode>> nodes;
  frame::Instant now{1'000'000'000};
  Loses loses = [](const OnLink&) { return false; };
  Answer answer = [](std::uint16_t, const test::Bytes&) { return test::Bytes(); };

 private:
  using Port = std::pair<std::size_t, std::uint16_t>;

  void pass_on(std::size_t node, const std::vector<test::Sent>& frames) {
    for (const test::Sent& sent : frames) {
      l2::for_each_port(sent.ports, [&](std::uint16_t port) {
        ++sent_[{node, port}];
        const auto link = links_.find({node, port});
        if (link != links_.end()) {
          OnLink frame{node, port, link->second, sent.bytes};
          if (!loses(frame)) {
            under_way_.push_back(std::move(frame));
          }
        }
      });
    }
  }

  void settle() {
    while (!under_way_.empty()) {
      const OnLink frame = std::move(under_way_.front());
      under_way_.pop_front();
      if (frame.to.node) {
        pass_on(*frame.to.node, nodes[*frame.to.node]->send(frame.bytes, frame.to.port, now));
      } else {
        received_[frame.to.rank].push_back(frame.bytes);
        const test::Bytes said = answer(frame.to.rank, frame.bytes);
        if (!said.empty()) {
          const auto [node, port] = hosts_.at(frame.to.rank);
          pass_on(node, nodes[node]->send(said, port, now));
        }
      }
    }
  }

  std::vector<std::vector<ring::RingSpec>> rings_;
  std::map<Port, FarEnd> links_;
  std::map<std::uint16_t, Port> hosts_;
  std::map<std::uint16_t, std::vector<test::Bytes>> received_;
  std::map<Port, std::uint64_t> sent_;
  std::deque<OnLink> under_way_;
  unsigned restarts_ = 0;
};

} // namespace weir::stage
