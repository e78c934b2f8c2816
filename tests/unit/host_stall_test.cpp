// SPDX-License-Identifier: BSD-3-Clause

/// Ranks that stop for some time or for good: what the job survives, and which rank errors name.

#include "host_job.hpp"
#include "support/comes_true.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::host::host_stall_test {
namespace {

/// Stops the thread that polls it, from the first frame after `is_due` on. This is like a rank that
/// the scheduler or a debugger has stopped: its connections stay.
class StoppingIo : public ForwardingIo {
 public:
  StoppingIo(
      std::unique_ptr<FrameIo> device, const std::atomic<bool>& is_due, milliseconds pause,
      std::function<void()> when_it_stops = [] {})
      : ForwardingIo(std::move(device)), is_due_(is_due), pause_(pause),
        when_it_stops_(std::move(when_it_stops)) {}

  std::size_t receive(FrameReader& reader) override {
    const std::size_t frames = ForwardingIo::receive(reader);
    if (is_due_ && frames != 0 && pause_ != milliseconds(0)) {
      when_it_stops_();
      std::this_thread::sleep_for(std::exchange(pause_, {}));
    }
    return frames;
  }

 private:
  const std::atomic<bool>& is_due_;
  milliseconds pause_;
  const std::function<void()> when_it_stops_;
};

/// Receives nothing more once it is due.
class DeafIo : public ForwardingIo {
 public:
  DeafIo(std::unique_ptr<FrameIo> device, const std::atomic<bool>& is_due)
      : ForwardingIo(std::move(device)), is_due_(is_due) {}

  std::size_t receive(FrameReader& reader) override {
    return is_due_ ? 0 : ForwardingIo::receive(reader);
  }

 private:
  const std::atomic<bool>& is_due_;
};

/// A cable that is pulled once it is due.
class UnpluggedIo : public DeafIo {
 public:
  UnpluggedIo(std::unique_ptr<FrameIo> device, const std::atomic<bool>& is_due)
      : DeafIo(std::move(device), is_due), is_pulled_(is_due) {}

  bool has_link() const override { return !is_pulled_; }

 private:
  const std::atomic<bool>& is_pulled_;
};

constexpr std::uint16_t kWorld = 4;

using MakeIo = std::function<std::unique_ptr<FrameIo>(std::unique_ptr<FrameIo>)>;

/// Two all-reduces of four ranks, the second when `is_due` is set. The device of rank `odd` is made
/// by `make`. The switch says nothing of its own, so the next frame is a result. Returns how each
/// rank's second one ended.
std::vector<Ending> run_with(std::uint16_t odd, const MakeIo& make, std::atomic<bool>& is_due,
                             const std::function<void(GroupOptions&)>& change,
                             std::size_t elements = 50'000) {
  const JobPlan plan{.world = kWorld, .patience_ms = 0};
  HostFabric fabric(rings_of(plan), kWorld, kSession);
  const std::string address = free_address();
  std::atomic<int> arrived = 0;
  return run_ranks(kWorld, [&](std::uint16_t rank) {
    GroupOptions options = options_of(plan, rank, address);
    change(options);
    auto device = rank == odd ? make(fabric.open(rank)) : fabric.open(rank);
    Group group(options, std::move(device));
    std::vector<float> data(elements, 1);
    const auto reduce = [&] {
      group.all_reduce(data.data(), data.data(), data.size(), DataType::f32, Operation::sum);
    };
    reduce();
    ++arrived;
    while (arrived < kWorld) {
      std::this_thread::yield();
    }
    is_due = true;
    reduce();
    EXPECT_EQ(data, std::vector<float>(data.size(), 16));
  });
}

/// The options are the defaults, except those that define the test's job.
TEST(Stall, ARankMayStopForASecondByDefault) {
  std::atomic<bool> is_due = false;
  const auto stop = [&](std::unique_ptr<FrameIo> device) {
    return std::make_unique<StoppingIo>(std::move(device), is_due, milliseconds(1500));
  };
  expect_none(run_with(2, stop, is_due, [](GroupOptions& options) {
    const GroupOptions defaults;
    options.timeout = defaults.timeout;
    options.ack_timeout = defaults.ack_timeout;
    options.retry_count = defaults.retry_count;
  }));
}

/// Rank 2 computes for much longer than the timeout. The others wait, and can ask for whom.
void run_late(Fallback fallback) {
  const JobPlan plan{.world = kWorld, .fallback = fallback};
  HostFabric fabric(fallback == Fallback::none ? rings_of(plan) : std::vector<ring::RingSpec>(),
                    kWorld, kSession);
  const std::string address = free_address();
  std::atomic<int> asked = 0;
  expect_none(run_ranks(kWorld, [&](std::uint16_t rank) {
    GroupOptions options = options_of(plan, rank, address);
    options.timeout = milliseconds(300);
    Group group(options, fabric.open(rank));
    std::vector<float> data(50'000, 1);
    if (rank == 2) {
      EXPECT_TRUE(test::comes_true([&] { return asked == kWorld - 1; }));
      std::this_thread::sleep_for(milliseconds(1500)); // more than one search
    }
    Pending pending = group.start_all_reduce(data.data(), data.data(), data.size(), DataType::f32,
                                             Operation::sum);
    if (rank != 2) {
      EXPECT_TRUE(test::comes_true([&] {
        EXPECT_FALSE(pending.wait_for(milliseconds(1)));
        return pending.waits_for() == "rank 2 has not made call 1";
      })) << pending.waits_for();
      ++asked;
    }
    pending.wait();
    EXPECT_EQ(data, std::vector<float>(data.size(), 4));
    pending = group.start_all_reduce(data.data(), data.data(), 1, DataType::f32, Operation::sum);
    pending.wait();
    EXPECT_EQ(pending.waits_for(), "") << "it has come";
  }));
}

TEST(Stall, ARankMayBeLateForLongerThanTheTimeout) {
  run_late(Fallback::none);
}

TEST(Stall, ARankMayBeLateOnTheHostsRingToo) {
  run_late(Fallback::ring);
}

class StoppedRank : public testing::TestWithParam<std::uint16_t> {};

TEST_P(StoppedRank, IsTheOneThatErrorsName) {
  const std::uint16_t stopped = GetParam();
  std::atomic<bool> is_due = false;
  const auto stop = [&](std::unique_ptr<FrameIo> device) {
    return std::make_unique<StoppingIo>(std::move(device), is_due, milliseconds(6000));
  };
  const auto endings = run_with(
      stopped, stop, is_due, [](GroupOptions& options) { options.timeout = milliseconds(1000); });
  for (std::uint16_t rank = 0; rank < kWorld; ++rank) {
    if (rank != stopped) {
      EXPECT_EQ(endings[rank].code, ErrorCode::timeout) << endings[rank].text;
      EXPECT_EQ(endings[rank].rank, stopped) << endings[rank].text;
      const std::string who = "no answer from rank " + std::to_string(stopped) + ":";
      EXPECT_TRUE(endings[rank].text.starts_with(who)) << endings[rank].text;
      EXPECT_NE(endings[rank].text.find("meanwhile this rank looked "), std::string::npos)
          << endings[rank].text;
      EXPECT_NE(endings[rank].text.find(" packets came, "), std::string::npos)
          << endings[rank].text;
    } else {
      EXPECT_NE(endings[rank].text.find("this rank itself did nothing for "), std::string::npos)
          << endings[rank].text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, StoppedRank, testing::Values(0, 1, 3));

/// Stops whoever asks for its frames, once, while another rank has stopped and nothing is on the
/// way any more.
class PausingIo : public ForwardingIo {
 public:
  PausingIo(std::unique_ptr<FrameIo> device, const std::atomic<bool>& other_has_stopped,
            milliseconds pause)
      : ForwardingIo(std::move(device)), other_has_stopped_(other_has_stopped), pause_(pause) {}

  std::size_t receive(FrameReader& reader) override {
    constexpr int kLooksUntilAllHasCome = 4;
    const std::size_t frames = ForwardingIo::receive(reader);
    if (other_has_stopped_ && frames == 0 && ++looks_ == kLooksUntilAllHasCome) {
      std::this_thread::sleep_for(pause_);
    }
    return frames;
  }

 private:
  const std::atomic<bool>& other_has_stopped_;
  const milliseconds pause_;
  int looks_ = 0;
};

/// As on a machine that is suspended, or has too much to do for all of them: each rank has stood
/// for longer than the timeout, so each finds that nothing has moved meanwhile.
TEST(Stall, RanksThatAllStoodGoOn) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  std::atomic<int> arrived = 0;
  std::atomic<bool> is_due = false;
  std::atomic<bool> has_stopped = false;
  const auto open = [&](std::uint16_t rank) -> std::unique_ptr<FrameIo> {
    if (rank == 0) {
      return std::make_unique<PausingIo>(fabric.open(rank), has_stopped, milliseconds(1200));
    }
    return std::make_unique<StoppingIo>(fabric.open(rank), is_due, milliseconds(1600),
                                        [&] { has_stopped = true; });
  };
  expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
    GroupOptions options = options_of(plan, rank, address);
    options.timeout = milliseconds(1000);
    options.ack_timeout = milliseconds(500); // so that no repeat has it stop before the second call
    Group group(options, open(rank));
    std::vector<float> data(50'000, 1);
    for (int call = 0; call < 2; ++call) {
      group.all_reduce(data.data(), data.data(), data.size(), DataType::f32, Operation::sum);
      if (++arrived == plan.world) {
        is_due = true;
      }
    }
    EXPECT_EQ(data, std::vector<float>(data.size(), 4));
  }));
  EXPECT_TRUE(has_stopped);
}

/// The last message's results are out, and all ranks but two go: the one that stops with the
/// acknowledgement still to be sent, and the one that waits for it and would be left without a word
/// of why, were rank 0 gone.
TEST(Stall, ARankThatStopsBeforeItsLastAcknowledgementIsTheOneThatErrorsName) {
  constexpr std::uint16_t kStopped = 2;
  std::atomic<bool> is_due = false;
  const auto stop = [&](std::unique_ptr<FrameIo> device) {
    return std::make_unique<StoppingIo>(std::move(device), is_due, milliseconds(6000));
  };
  const auto endings = run_with(
      kStopped, stop, is_due, [](GroupOptions& options) { options.timeout = milliseconds(1000); },
      10);
  EXPECT_FALSE(endings[0].code) << endings[0].text;
  EXPECT_FALSE(endings[3].code) << endings[3].text;
  EXPECT_EQ(endings[1].code, ErrorCode::timeout);
  EXPECT_EQ(endings[1].rank, kStopped) << endings[1].text;
  EXPECT_TRUE(endings[1].text.starts_with("no answer from rank 2:")) << endings[1].text;
}

/// Whoever's error it is, the rank without a link says so.
TEST(Stall, ARankWithoutALinkSaysSo) {
  constexpr std::uint16_t kUnplugged = 2;
  std::atomic<bool> is_due = false;
  const auto unplug = [&](std::unique_ptr<FrameIo> device) {
    return std::make_unique<UnpluggedIo>(std::move(device), is_due);
  };
  const auto endings = run_with(kUnplugged, unplug, is_due, [](GroupOptions& options) {
    options.timeout = milliseconds(1000);
  });
  for (std::uint16_t rank = 0; rank < kWorld; ++rank) {
    const bool says_so = endings[rank].text.starts_with(
        "this rank has no link: the switch, or the cable to it, is gone; ");
    EXPECT_EQ(endings[rank].code, ErrorCode::timeout) << endings[rank].text;
    EXPECT_EQ(says_so, rank == kUnplugged) << endings[rank].text;
  }
}

/// What ended the job comes first: it has not ended for want of the link.
TEST(Stall, ARankWithoutALinkSaysSoBehindWhatEndedTheJob) {
  const JobPlan plan{.world = 2};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  const std::string address = free_address();
  std::atomic<bool> is_pulled = false;
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    std::unique_ptr<FrameIo> device = fabric.open(rank);
    if (rank == 1) {
      device = std::make_unique<UnpluggedIo>(std::move(device), is_pulled);
    }
    Group group(options_of(plan, rank, address), std::move(device));
    expect_sum(group, 100);
    if (rank == 0) {
      while (!is_pulled) {
        std::this_thread::yield();
      }
      group.abort("it has seen enough");
      return;
    }
    is_pulled = true;
    expect_sum(group, 100);
  });
  EXPECT_EQ(endings[1].code, ErrorCode::aborted);
  EXPECT_EQ(endings[1].text, "rank 0 aborted its group: it has seen enough; this rank has no link: "
                             "the switch, or the cable to it, is gone");
}

/// Retries are limited, so that its neighbours' queue pairs fail first.
TEST(Stall, ARankThatReceivesNothingIsTheOneThatErrorsName) {
  std::atomic<bool> is_due = false;
  const auto deafen = [&](std::unique_ptr<FrameIo> device) {
    return std::make_unique<DeafIo>(std::move(device), is_due);
  };
  const auto endings = run_with(2, deafen, is_due, [](GroupOptions& options) {
    options.timeout = milliseconds(3000);
    options.retry_count = 3;
  });
  for (const Ending& ending : endings) {
    ASSERT_TRUE(ending.code);
    EXPECT_EQ(ending.rank, 2) << ending.text;
    EXPECT_NE(ending.text.find("rank 2 of 4 lack"), std::string::npos) << ending.text;
  }
}

} // namespace
} // namespace weir::host::host_stall_test
