// SPDX-License-Identifier: BSD-3-Clause

/// Ranks as processes that are killed at any time: the others are told within bounded time, go on
/// without them, and reduce exactly. The processes exchange frames over sockets of the kernel.

#include "host_job.hpp"
#include "support/comes_true.hpp"
#include "support/sanitized.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace weir::host::death_test {
namespace {

constexpr std::uint16_t kMostRanks = 5;
constexpr std::size_t kFrameBytes = 4096;
constexpr int kMostShrinks = 8; // tries of one rank
constexpr std::chrono::seconds kNoticeTime(test::kIsSanitized ? 10 : 3);
constexpr std::chrono::seconds kWholeTime(test::kIsSanitized ? 60 : 30);

/// Datagram sockets, one for each rank to read. Made before the ranks' processes; a datagram for
/// which there is no room is a lost frame.
class Mesh {
 public:
  explicit Mesh(std::uint16_t world) {
    for (std::uint16_t rank = 0; rank < world; ++rank) {
      socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pairs_[rank].data());
    }
  }

  ~Mesh() {
    for (const std::array<int, 2>& pair : pairs_) {
      close(pair[0]);
      close(pair[1]);
    }
  }

  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  std::unique_ptr<FrameIo> open(std::uint16_t rank) const {
    return std::make_unique<Port>(*this, rank);
  }

 private:
  class Port : public FrameIo {
   public:
    Port(const Mesh& mesh, std::uint16_t rank) : mesh_(mesh), rank_(rank) {}

    wire::MacAddress mac() const override {
      return {{0x02, 0, 0, 0, 0, static_cast<std::uint8_t>(rank_ + 1)}};
    }

    std::size_t receive(FrameReader& reader) override {
      std::size_t frames = 0;
      for (ssize_t bytes = 0; (bytes = recv(descriptor(), in_.data(), in_.size(), 0)) > 0;
           ++frames) {
        reader.accept(std::span(in_).first(static_cast<std::size_t>(bytes)));
      }
      return frames;
    }

    std::span<std::uint8_t> reserve(std::size_t bytes) override {
      return std::span(out_).first(bytes);
    }

    void commit(std::size_t frame_bytes) override {
      const std::size_t to = out_[5] - std::size_t{1}; // the destination's last byte
      if (to < kMostRanks) {
        send(mesh_.pairs_[to][1], out_.data(), frame_bytes, MSG_NOSIGNAL);
      }
    }

    void flush() override {}

    int descriptor() const override { return mesh_.pairs_[rank_][0]; }

   private:
    const Mesh& mesh_;
    const std::uint16_t rank_;
    std::array<std::uint8_t, kFrameBytes> in_{};
    std::array<std::uint8_t, kFrameBytes> out_{};
  };

  std::array<std::array<int, 2>, kMostRanks> pairs_{
      {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}}};
};

/// What a rank does. The first six are as CallKind.
enum Stage : int { all_reduce, reduce, broadcast, all_gather, reduce_scatter, barrier };

constexpr int kPausing = 6;
constexpr int kForming = 7;
constexpr int kShrinking = 8;

/// How a rank's process ends.
constexpr int kExact = 0;
constexpr int kNotFormed = 10;
constexpr int kWrong = 11;
constexpr int kGaveUp = 12;

/// What a rank tells the test, in memory that they share.
struct Diary {
  std::atomic<int> stage = kForming;
  std::atomic<int> shrinks = 0; // that ended well
  std::atomic<int> world = 0;
  std::atomic<int> first_code = -1; // of the first error of a group that was formed
  std::atomic<int> first_rank = -1;
  std::atomic<int> last_code = -1;
};

struct Shared {
  std::array<Diary, kMostRanks> diaries;
  std::atomic<std::uint32_t> may_stop = 0;
};

/// One rank's process: makes every collective in turn until the test has seen enough.
class Rank {
 public:
  Rank(const Mesh& mesh, Shared& shared, const GroupOptions& options)
      : mesh_(mesh), shared_(shared), diary_(shared.diaries[options.rank]), options_(options),
        original_(options.rank) {}

  int run() {
    try {
      group_.emplace(options_, mesh_.open(original_));
    } catch (const Error& error) {
      diary_.last_code = static_cast<int>(error.code());
      return kNotFormed;
    }
    for (std::uint16_t rank = 0; rank < options_.world; ++rank) {
      members_.push_back(rank);
    }
    while (true) {
      try {
        if (make_calls()) {
          group_.reset();
          return is_exact_ ? kExact : kWrong;
        }
      } catch (const Error& error) {
        note(error);
        if (!shrink()) {
          return kGaveUp;
        }
      }
    }
  }

 private:
  static constexpr std::size_t kCount = 900;
  using Data = std::vector<std::uint32_t>;

  static std::uint32_t value_of(std::uint16_t original) { return 1U << (4U * original); }

  std::uint32_t sum() const {
    std::uint32_t total = 0;
    for (const std::uint16_t member : members_) {
      total += value_of(member);
    }
    return total;
  }

  void begin(int stage) { diary_.stage = stage; }

  void expect(const Data& found, const Data& due) { is_exact_ = is_exact_ && found == due; }

  void call(CallKind kind, const Data& in, Data& out, std::size_t count) {
    begin(static_cast<int>(kind));
    group_->start(in.data(), out.data(), {.kind = kind, .count = count, .type = DataType::u32})
        .wait();
  }

  /// True if all ranks are to stop.
  bool make_calls() {
    const std::size_t world = members_.size();
    const Data own(kCount, value_of(original_));
    Data out(kCount);
    call(CallKind::all_reduce, own, out, kCount);
    expect(out, Data(kCount, sum()));
    call(CallKind::reduce, own, out, kCount);
    if (group_->rank() == 0) {
      expect(out, Data(kCount, sum()));
    }
    out = own;
    call(CallKind::broadcast, out, out, kCount);
    expect(out, Data(kCount, value_of(members_[0])));
    Data all(world * kCount);
    call(CallKind::all_gather, own, all, kCount);
    for (std::size_t rank = 0; rank < world; ++rank) {
      expect(Data(all.begin() + static_cast<std::ptrdiff_t>(rank * kCount),
                  all.begin() + static_cast<std::ptrdiff_t>((rank + 1) * kCount)),
             Data(kCount, value_of(members_[rank])));
    }
    call(CallKind::reduce_scatter, Data(world * kCount, value_of(original_)), out, kCount);
    expect(out, Data(kCount, sum()));
    call(CallKind::barrier, {}, out, 0);
    begin(kPausing);
    std::this_thread::sleep_for(milliseconds(2));
    Data stop{shared_.may_stop};
    group_->all_reduce(stop.data(), stop.data(), 1, DataType::u32, Operation::max);
    return stop[0] != 0;
  }

  void note(const Error& error) {
    if (diary_.first_code < 0) {
      diary_.first_rank = error.rank() ? *error.rank() : -1;
      diary_.first_code = static_cast<int>(error.code());
    }
  }

  bool shrink() {
    begin(kShrinking);
    for (int tries = 0; tries < kMostShrinks; ++tries) {
      try {
        GroupOptions next = group_->options();
        next.epoch = 0;
        Group rest = group_->shrink(next, mesh_.open(original_));
        std::vector<std::uint16_t> members;
        for (std::uint16_t rank = 0; rank < rest.world(); ++rank) {
          members.push_back(members_[rest.parent_rank(rank)]);
        }
        members_ = members;
        group_.reset();
        group_.emplace(std::move(rest));
        diary_.world = group_->world();
        ++diary_.shrinks;
        return true;
      } catch (const Error& error) {
        diary_.last_code = static_cast<int>(error.code());
      }
    }
    return false;
  }

  const Mesh& mesh_;
  Shared& shared_;
  Diary& diary_;
  const GroupOptions options_;
  const std::uint16_t original_;
  std::optional<Group> group_;
  std::vector<std::uint16_t> members_; // original ranks
  bool is_exact_ = true;
};

/// A job whose ranks are children of this process.
class Processes {
 public:
  /// So many ranks share a NIC, one after the other.
  explicit Processes(std::uint16_t world, std::uint16_t ranks_of_nic = 1)
      : world_(world), mesh_(world),
        shared_(new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared) {
    const std::string address = free_address();
    const JobPlan plan{.world = world, .fallback = Fallback::ring};
    for (std::uint16_t rank = 0; rank < world; ++rank) {
      GroupOptions options = options_of(plan, rank, address);
      options.epoch = 0;
      options.form_timeout = milliseconds(test::kIsSanitized ? 8000 : 3000);
      options.ip = ip_of(rank / ranks_of_nic);
      options.nic = "nic";
      children_.push_back(fork());
      if (children_.back() == 0) {
        _exit(Rank(mesh_, *shared_, options).run());
      }
    }
  }

  ~Processes() {
    for (std::uint16_t rank = 0; rank < world_; ++rank) {
      end(rank);
    }
    munmap(shared_, sizeof(Shared));
  }

  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  std::uint16_t world() const { return world_; }

  const Diary& diary(std::uint16_t rank) const { return shared_->diaries[rank]; }

  bool lives(std::uint16_t rank) const { return children_[rank] > 0; }

  void end(std::uint16_t rank) {
    if (lives(rank)) {
      kill(children_[rank], SIGKILL);
      waitpid(children_[rank], nullptr, 0);
      children_[rank] = -1;
    }
  }

  void let_stop() { shared_->may_stop = 1; }

  /// Exit status of a rank that ends by itself; -1: it does not.
  int status_of(std::uint16_t rank) {
    int status = 0;
    const bool has_ended = test::comes_true(
        [&] { return waitpid(children_[rank], &status, WNOHANG) == children_[rank]; }, kWholeTime);
    if (!has_ended) {
      return -1;
    }
    children_[rank] = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
  }

 private:
  const std::uint16_t world_;
  Mesh mesh_;
  Shared* shared_;
  std::vector<pid_t> children_; // by rank; -1: it has ended
};

/// A moment within a stage, so that no place of the code is spared for ever.
void sleep_a_while(std::mt19937_64& dice, unsigned most_us) {
  std::this_thread::sleep_for(
      std::chrono::microseconds(std::uniform_int_distribution<unsigned>(0, most_us)(dice)));
}

/// Waits until the rank is at the stage.
void await(const Processes& job, std::uint16_t rank, int stage) {
  EXPECT_TRUE(test::comes_true([&] { return job.diary(rank).stage == stage; }, kWholeTime))
      << "rank " << rank << " is at stage " << job.diary(rank).stage << ", not at " << stage;
}

template <typename Condition>
void expect_of_survivors(const Processes& job, Condition condition, std::chrono::seconds time,
                         const std::string& what) {
  for (std::uint16_t rank = 0; rank < job.world(); ++rank) {
    if (job.lives(rank)) {
      EXPECT_TRUE(test::comes_true([&] { return condition(job.diary(rank)); }, time))
          << "rank " << rank << " " << what << "; stage " << job.diary(rank).stage
          << ", last error " << job.diary(rank).last_code;
    }
  }
}

/// All ranks that live are a group of so many, and end well.
void expect_exact_end(Processes& job, int world) {
  expect_of_survivors(
      job, [&](const Diary& diary) { return diary.world == world; }, kWholeTime,
      "is in no group of " + std::to_string(world));
  job.let_stop();
  for (std::uint16_t rank = 0; rank < job.world(); ++rank) {
    if (job.lives(rank)) {
      EXPECT_EQ(job.status_of(rank), kExact) << "rank " << rank;
    }
  }
}

struct Death {
  int stage;
  std::uint16_t victim;
  std::uint16_t ranks_of_nic = 1;
};

std::mt19937_64 dice_for(const std::string& what) {
  const char* const given = std::getenv("WEIR_SEED");
  const std::uint64_t seed = given != nullptr ? std::stoull(given) : std::random_device()();
  std::printf("%s: WEIR_SEED=%llu\n", what.c_str(), static_cast<unsigned long long>(seed));
  return std::mt19937_64(seed);
}

class KilledAt : public testing::TestWithParam<Death> {};

TEST_P(KilledAt, TheOthersKnowAndGoOn) {
  const Death& death = GetParam();
  std::mt19937_64 dice = dice_for("killed at a stage");
  Processes job(4, death.ranks_of_nic);
  await(job, death.victim, kPausing);
  await(job, death.victim, death.stage);
  sleep_a_while(dice, 300);
  job.end(death.victim);
  const auto knows = [&](const Diary& diary) {
    return diary.first_code == static_cast<int>(ErrorCode::peer_died) &&
           diary.first_rank == death.victim;
  };
  expect_of_survivors(job, knows, kNoticeTime, "does not know who died");
  expect_exact_end(job, 3);
}

std::vector<Death> every_stage_and_two_victims() {
  std::vector<Death> deaths;
  for (int stage = Stage::all_reduce; stage <= kPausing; ++stage) {
    deaths.push_back({stage, 0});
    deaths.push_back({stage, static_cast<std::uint16_t>(1 + stage % 3)});
  }
  return deaths;
}

INSTANTIATE_TEST_SUITE_P(Stages, KilledAt, testing::ValuesIn(every_stage_and_two_victims()));

/// Victims are leaders of their NIC, of rank 0's and of another, and others.
std::vector<Death> every_stage_behind_shared_nics() {
  std::vector<Death> deaths;
  for (int stage = Stage::all_reduce; stage <= kPausing; ++stage) {
    deaths.push_back({stage, static_cast<std::uint16_t>(stage % 4), 2});
    deaths.push_back({stage, static_cast<std::uint16_t>((stage + 1) % 4), 4});
  }
  return deaths;
}

INSTANTIATE_TEST_SUITE_P(SharedNics, KilledAt, testing::ValuesIn(every_stage_behind_shared_nics()));

/// Who was killed early was never in a group; then nobody is.
TEST(Killed, WhileTheyForm) {
  std::mt19937_64 dice = dice_for("killed while they form");
  for (int round = 0; round < 8; ++round) {
    Processes job(4);
    const auto victim = static_cast<std::uint16_t>(dice() % 4);
    sleep_a_while(dice, test::kIsSanitized ? 200'000 : 60'000);
    job.end(victim);
    job.let_stop();
    for (std::uint16_t rank = 0; rank < job.world(); ++rank) {
      if (job.lives(rank)) {
        const int status = job.status_of(rank);
        const int code = job.diary(rank).last_code;
        const bool is_told = code == static_cast<int>(ErrorCode::peer_died) ||
                             code == static_cast<int>(ErrorCode::rendezvous_timeout);
        EXPECT_TRUE(status == kExact || ((status == kNotFormed || status == kGaveUp) && is_told))
            << "round " << round << ", rank " << rank << ": status " << status << ", error "
            << code;
      }
    }
  }
}

/// The second victim dies while the others look for those that are left. They may have found them
/// before the test sees it.
TEST(Killed, WhileTheyShrink) {
  std::mt19937_64 dice = dice_for("killed while they shrink");
  for (int round = 0; round < 8; ++round) {
    Processes job(5);
    const auto first = static_cast<std::uint16_t>(dice() % 5);
    const auto second = static_cast<std::uint16_t>((first + 1 + dice() % 4) % 5);
    await(job, first, kPausing);
    sleep_a_while(dice, 5000);
    job.end(first);
    const Diary& diary = job.diary(second);
    EXPECT_TRUE(test::comes_true([&] { return diary.stage == kShrinking || diary.shrinks > 0; },
                                 kWholeTime))
        << "rank " << second << " is at stage " << diary.stage;
    sleep_a_while(dice, 50'000);
    job.end(second);
    SCOPED_TRACE("round " + std::to_string(round) + ", victims " + std::to_string(first) + ", " +
                 std::to_string(second));
    expect_exact_end(job, 3);
  }
}

/// One after the other, at any time, until two are left.
TEST(Killed, AtAnyTime) {
  std::mt19937_64 dice = dice_for("killed at any time");
  for (int round = 0; round < 5; ++round) {
    Processes job(5);
    for (std::uint16_t rank = 0; rank < job.world(); ++rank) {
      await(job, rank, kPausing);
    }
    for (int deaths = 0; deaths < 3; ++deaths) {
      sleep_a_while(dice, 150'000);
      job.end(static_cast<std::uint16_t>(dice() % 5)); // perhaps one that has ended
    }
    int left = 0;
    for (std::uint16_t rank = 0; rank < job.world(); ++rank) {
      left += job.lives(rank) ? 1 : 0;
    }
    SCOPED_TRACE("round " + std::to_string(round));
    expect_exact_end(job, left);
  }
}

} // namespace
} // namespace weir::host::death_test
