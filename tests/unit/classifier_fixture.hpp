// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// A classifier for a few rings, its verdicts in words, and the frames of its tests.

#include "conn/classifier.hpp"
#include "frame/frame.hpp"
#include "support/frame_builder.hpp"
#include "support/ring_job.hpp"
#include "wire/parse.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weir::conn {

inline constexpr std::uint64_t kAging = 100; // milliseconds

inline std::string text_of(const Verdict& verdict) {
  const std::string foreign =
      verdict.foreign ? fmt::format(" {}", name_of(*verdict.foreign)) : std::string();
  switch (verdict.step) {
  case Verdict::Step::forward:
    return "forward" + foreign;
  case Verdict::Step::interleave:
    return fmt::format("interleaves {}.{}{}", verdict.ring, verdict.child, foreign);
  case Verdict::Step::repeat:
    return fmt::format("repeats {}.{}", verdict.ring, verdict.child);
  case Verdict::Step::gap:
    return fmt::format("gap {}.{}", verdict.ring, verdict.child);
  case Verdict::Step::elsewhere:
    return "elsewhere " + std::to_string(verdict.ring) + "." + std::to_string(verdict.child);
  case Verdict::Step::refuse:
  case Verdict::Step::drop:
    return fmt::format("drop {}", name_of(verdict.drop));
  case Verdict::Step::contribute:
    return fmt::format("{}.{} message {} packet {}", verdict.ring, verdict.child,
                       verdict.record->message, verdict.packet);
  case Verdict::Step::total:
    return fmt::format("total {} message {} packet {}", verdict.ring, verdict.record->message,
                       verdict.packet);
  case Verdict::Step::climb:
    return fmt::format("climbs {}.{}", verdict.ring, verdict.child);
  case Verdict::Step::descend:
    return fmt::format("descends {}", verdict.ring);
  case Verdict::Step::wait:
    return fmt::format("waits {}.{}", verdict.ring, verdict.child);
  case Verdict::Step::begin:
    return fmt::format("begins {}", verdict.ring);
  }
  return "?";
}

/// Passes frames in directly. Keeps the frames of waiting hellos, and checks that the classifier
/// returns each of them once.
class ClassifierFixture {
 public:
  explicit ClassifierFixture(const std::vector<ring::RingSpec>& rings,
                             std::uint32_t plain_entries = 16)
      : sessions_(std::make_unique<ForeignSessions>(
            HashKey{},
            [](const frame::Frame& /*hello*/, std::uint64_t /*now*/) { return kWayOut; })),
        rings_(ring::RingSet(rings)), settings_{.sessions =
                                                    SessionSource::counting_from(test::kSession),
                                                .plain_entries = plain_entries,
                                                .aging = kAging,
                                                .foreign_sessions = sessions_.get(),
                                                .claims = &claims_},
        incarnations_(rings_, all(rings.size()), settings_),
        classifier_(rings_, incarnations_, settings_, [this](const ring::RingChild& sender) {
          return holds.contains({sender.ring, sender.child});
        }) {}

  /// The verdict on the frame, and on hellos that waited.
  std::string classify(const test::Built& built, std::uint16_t port = 0) {
    auto owned = std::make_unique<Owned>(built, port, *rings_);
    if (owned->frame.pair == 0) {
      return "not between neighbours";
    }
    const Verdict verdict = classifier_.classify(owned->frame, now);
    std::string text = text_of(verdict);
    if (verdict.step == Verdict::Step::wait || verdict.step == Verdict::Step::begin) {
      waiting_.insert(std::move(owned));
    }
    if (verdict.step == Verdict::Step::begin) {
      begin(verdict.ring);
    }
    text += take_given_up();
    EXPECT_EQ(incarnations_.waiting_hellos(), waiting_.size());
    return text;
  }

  /// Says hello for every rank: rank r by port r if the ring is bound to its ports, else by port 0.
  void admit(const test::RingJob& job) {
    for (std::uint16_t rank = 0; rank < job.spec().world; ++rank) {
      const auto port = job.spec().pins_ports ? job.port_of(rank) : std::uint16_t{0};
      const std::string answer = classify(job.hello(rank), port);
      const bool is_last = rank + 1 == job.spec().world;
      EXPECT_TRUE(answer.starts_with(is_last ? "begins" : "waits")) << answer;
    }
  }

  /// See stage::InlineSwitch::withdraw_ring.
  void withdraw(std::uint16_t ring) {
    incarnations_.withdraw(ring);
    rings_.swap(std::make_unique<const ring::RingSet>(rings_->without(ring)));
  }

  /// See stage::InlineSwitch::change_rings. Returns what it did with hellos that waited.
  std::string change(const ring::RingSpec& spec) {
    rings_.swap(std::make_unique<const ring::RingSet>(rings_->with_changed(std::vector{spec})));
    incarnations_.update_ports(*rings_->ring_with_id(spec.id));
    return take_given_up();
  }

  /// What reset(), withdraw() or the last packet did with hellos that waited.
  std::string take_given_up() {
    std::string text;
    for (const GivenUp& hello : incarnations_.take_given_up()) {
      text += fmt::format(", gave up {}", name_of(hello.reason));
      forget(hello.frame);
    }
    return text;
  }

  Incarnations& incarnations() { return incarnations_; }

  /// Of queue pairs that are no ring's.
  void set_aging(std::uint64_t milliseconds) {
    incarnations_.set_aging(milliseconds);
    classifier_.set_aging(milliseconds);
  }

  std::uint64_t now = 0;
  std::set<std::pair<std::uint16_t, std::uint16_t>> holds; // ranks whose packets fill slots

 private:
  static constexpr std::uint64_t kWayOut = 1; // everybody is behind port 0

  struct Owned {
    Owned(const test::Built& built, std::uint16_t port, const ring::RingSet& set)
        : bytes(built.bytes) {
      frame.data = bytes.data();
      frame.length = static_cast<std::uint32_t>(built.bytes.size());
      frame.ingress = port;
      frame.packet = wire::parse(bytes.bytes());
      frame.pair = set.pair_of(frame.source(), frame.destination());
    }

    test::ExactCopy bytes;
    frame::Frame frame;
  };

  static std::vector<std::uint16_t> all(std::size_t rings) {
    std::vector<std::uint16_t> numbers(rings);
    std::iota(numbers.begin(), numbers.end(), std::uint16_t{0});
    return numbers;
  }

  /// Does what the worker does: the ranks' hellos are message 0.
  void begin(std::uint16_t ring) {
    const auto hellos = incarnations_.begin(ring, now);
    for (std::uint16_t rank = 0; rank < hellos.size(); ++rank) {
      EXPECT_EQ(text_of(incarnations_.hello_verdict({ring, rank})),
                fmt::format("{}.{} message 0 packet 0", ring, rank));
      forget(hellos[rank]);
    }
  }

  void forget(const frame::Frame* frame) {
    const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                    [&](const auto& owned) { return &owned->frame == frame; });
    ASSERT_NE(found, waiting_.end()) << "given back twice, or never taken";
    waiting_.erase(found);
  }

  std::unique_ptr<ForeignSessions> sessions_;
  QueuePairClaims claims_{1024, HashKey{}};
  ring::CurrentRings rings_;
  Classifier::Settings settings_;
  Incarnations incarnations_;
  Classifier classifier_;
  std::set<std::unique_ptr<Owned>> waiting_;
};

struct Step {
  const char* description;
  test::Built frame;
  const char* expected;
};

inline void expect_steps(ClassifierFixture& fixture, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    EXPECT_EQ(fixture.classify(step.frame), step.expected) << step.description;
  }
}

inline constexpr std::uint8_t kFirst = 0x06; // RDMA WRITE
inline constexpr std::uint8_t kMiddle = 0x07;
inline constexpr std::uint8_t kLast = 0x08;
inline constexpr std::uint8_t kOnly = 0x0a;

/// A packet on this rank's QP without an INA header, with any opcode.
inline test::Built plain(const test::RingJob& job, std::uint16_t rank, std::uint8_t opcode,
                         std::uint32_t psn = 0x777) {
  test::FrameSpec spec = job.frame_of(rank);
  spec.opcode = opcode;
  spec.psn = psn;
  spec.payload = test::Bytes(64, 0x11);
  return build(spec);
}

/// Three packets.
inline test::Bytes three_packets() {
  return test::Bytes(256 * 3 - 40 - 8, 0x22);
}

inline test::Built with_qp(test::Built frame, std::uint32_t qp) {
  frame.bytes[frame.bth + 5] = static_cast<std::uint8_t>(qp >> 16);
  frame.bytes[frame.bth + 6] = static_cast<std::uint8_t>(qp >> 8);
  frame.bytes[frame.bth + 7] = static_cast<std::uint8_t>(qp);
  seal(frame);
  return frame;
}

/// PSN of a frame, and the frame at another.
inline std::uint32_t psn_of(const test::Built& frame) {
  return test::get32(frame.bytes, frame.bth + 8) & 0xffffff;
}

inline test::Built with_psn(test::Built frame, std::uint32_t psn) {
  const std::uint32_t high = test::get32(frame.bytes, frame.bth + 8) & 0xff000000;
  test::put32(frame.bytes, frame.bth + 8, high | (psn & 0xffffff));
  seal(frame);
  return frame;
}

inline test::Built poked(test::Built frame, std::size_t ina_at, std::uint32_t value) {
  test::put32(frame.bytes, frame.payload + ina_at, value);
  seal(frame);
  return frame;
}

inline test::Built poked_byte(test::Built frame, std::size_t ina_at, std::uint8_t value) {
  frame.bytes[frame.payload + ina_at] = value;
  seal(frame);
  return frame;
}

/// From host 1 back to host 0, the way of the ring's acknowledgements.
inline test::Built backwards(const test::RingJob& job, const test::Built& frame) {
  test::FrameSpec spec = job.frame_of(0);
  spec.source = job.ip_of(1);
  spec.destination = job.ip_of(0);
  spec.opcode = frame.bytes[frame.bth];
  spec.psn = psn_of(frame);
  const auto payload = frame.bytes.begin() + static_cast<std::ptrdiff_t>(frame.payload);
  spec.payload.assign(payload, payload + static_cast<std::ptrdiff_t>(frame.payload_bytes));
  return build(spec);
}

inline test::Built damaged(test::Built frame, std::size_t at) {
  frame.bytes[at] ^= 0x01;
  return frame;
}

} // namespace weir::conn
