// SPDX-License-Identifier: BSD-3-Clause

/// Rings that a group has its switch make. In place of the module over gRPC there is one that only
/// notes what it is asked; the fabric has the rings.

#include "host/api/forming.hpp"
#include "host/api/group.hpp"
#include "host/rendezvous/allocated_rings.hpp"
#include "host/switch_rings/held_rings.hpp"
#include "host_job.hpp"
#include "support/comes_true.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <latch>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace weir::host::held_rings_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

using Ids = std::vector<std::uint32_t>;

constexpr auto kSoon = std::chrono::seconds(5);
// tests/support/fake_switch_module.cpp
constexpr std::uint32_t kFirst = 41;

/// Variables that this test sets, and nobody before.
class Environment {
 public:
  Environment(std::initializer_list<std::pair<const char*, std::string>> variables) {
    for (const auto& [name, value] : variables) {
      setenv(name, value.c_str(), 1);
      names_.push_back(name);
    }
  }

  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  ~Environment() { std::ranges::for_each(names_, unsetenv); }

 private:
  std::vector<const char*> names_;
};

/// Frames of a port, in which the magic is looked for wherever it may be.
class MagicFinder : public ForwardingIo {
 public:
  MagicFinder(std::unique_ptr<FrameIo> device, std::atomic<bool>& found)
      : ForwardingIo(std::move(device)), found_(found) {}

  std::span<std::uint8_t> reserve(std::size_t bytes) override {
    return room_ = ForwardingIo::reserve(bytes);
  }

  void commit(std::size_t frame_bytes) override {
    constexpr std::string_view magic = "WEIR"; // docs/protocol.md §2
    const auto frame = room_.first(frame_bytes);
    if (std::search(frame.begin(), frame.end(), magic.begin(), magic.end()) != frame.end()) {
      found_ = true;
    }
    ForwardingIo::commit(frame_bytes);
  }

 private:
  std::atomic<bool>& found_;
  std::span<std::uint8_t> room_;
};

class HeldRingsJob : public testing::Test {
 protected:
  HeldRingsJob() {
    std::string name = "/tmp/weir-hold-XXXXXX";
    close(mkstemp(name.data()));
    file_ = name;
  }

  ~HeldRingsJob() override { std::filesystem::remove(file_); }

  /// What the switch was asked.
  std::vector<std::string> asked() const {
    std::ifstream stream(file_);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) {
      lines.push_back(line);
    }
    return lines;
  }

  bool is_asked_at_last(const std::string& line) const {
    return test::comes_true([&] { return !asked().empty() && asked().back() == line; }, kSoon);
  }

  /// Rank 0 alone knows the switch. The rings are so many as the plan has.
  GroupOptions options(std::uint16_t rank) const {
    GroupOptions options = options_of(plan_, rank, address_);
    options.rings = open_rings(plan_.rings.size());
    options.ring_ids = RingIds::open;
    options.epoch = 0;
    if (rank == 0) {
      options.switch_access.address = file_ + way_;
    }
    return options;
  }

  GroupOptions offered(std::uint16_t rank) const {
    GroupOptions mine = options(rank);
    mine.rings = open_rings(kMostOfferedRings);
    mine.ring_ids = RingIds::offered;
    return mine;
  }

  std::vector<Ending> run(const std::function<void(std::uint16_t)>& body) const {
    return run_ranks(plan_.world, body);
  }

  JobPlan plan_{.world = 3, .rings = {kFirst}};
  std::string way_; // of the switch
  std::string file_;
  const std::string address_ = free_address();
  const Environment module_{{"WEIR_SWITCH_MODULE", WEIR_FAKE_MODULE}};
};

TEST_F(HeldRingsJob, AreMadeWithAllRanksInOrderAndEndWithTheGroup) {
  plan_.rings = {kFirst, kFirst + 1};
  HostFabric fabric(rings_of(plan_), plan_.world);
  expect_none(run([&](std::uint16_t rank) {
    Group group(options(rank), fabric.open(rank));
    EXPECT_EQ(group.options().rings, (Ids{kFirst, kFirst + 1}));
    EXPECT_EQ(group.algorithm(), Algorithm::in_switch);
    expect_sum(group);
    EXPECT_EQ(asked().size(), 2U) << "they are held";
  }));
  const auto due = MatchesRegex(
      "make any nonce [1-9][0-9]* window 3 bytes 1000 mtu 256 of 10.7.0.1 10.7.0.2 10.7.0.3");
  EXPECT_THAT(asked(), ElementsAre(due, due, "end 41", "end 42"));
  EXPECT_EQ(asked()[0], asked()[1]) << "one nonce for all of a run's rings";
}

TEST_F(HeldRingsJob, AManagerIsAskedOnceForAll) {
  plan_.rings = {kFirst, kFirst + 1};
  HostFabric fabric(rings_of(plan_), plan_.world);
  expect_none(run([&](std::uint16_t rank) {
    GroupOptions given = options(rank);
    if (rank == 0) {
      given.switch_access.manager = *std::exchange(given.switch_access.address, std::nullopt);
    }
    Group group(given, fabric.open(rank));
    EXPECT_EQ(group.options().rings, (Ids{kFirst, kFirst + 1}));
    expect_sum(group);
  }));
  EXPECT_THAT(asked(), ElementsAre(HasSubstr("job of 2 to 2: make any nonce"), "end 2"));
}

TEST_F(HeldRingsJob, AreAsManyAsTheSwitchOffers) {
  plan_.rings = {kFirst, kFirst + 1, kFirst + 2}; // the switch has three workers
  HostFabric fabric(rings_of(plan_), plan_.world);
  expect_none(run([&](std::uint16_t rank) {
    Group group(offered(rank), fabric.open(rank));
    EXPECT_EQ(group.rings(), plan_.rings);
    EXPECT_EQ(group.missing_rings(), "");
    expect_sum(group);
    EXPECT_EQ(asked().size(), 3U);
  }));
  EXPECT_THAT(asked(), ElementsAre(HasSubstr("make any nonce"), asked()[0], asked()[0], "end 41",
                                   "end 42", "end 43"));
}

TEST_F(HeldRingsJob, AreFewerThanOfferedWhereThereIsNoRoom) {
  way_ = ":refuse";
  HostFabric fabric(rings_of(plan_), plan_.world);
  expect_none(run([&](std::uint16_t rank) {
    Group group(offered(rank), fabric.open(rank));
    EXPECT_EQ(group.rings(), Ids{kFirst});
    EXPECT_EQ(group.missing_rings(),
              "switch " + file_ +
                  ":refuse offers 3 rings, one for each worker, and made 1: there is no room");
    expect_sum(group);
  }));
}

TEST_F(HeldRingsJob, AreAllThatAreOfferedOrNoneIfTheJobSaysSo) {
  way_ = ":refuse";
  HostFabric fabric(rings_of(plan_), plan_.world);
  const auto endings = run([&](std::uint16_t rank) {
    GroupOptions all = offered(rank);
    all.missing_rings = MissingRings::refuse;
    Group(all, fabric.open(rank));
  });
  expect_all(endings, ErrorCode::not_aggregated);
  EXPECT_TRUE(is_asked_at_last("end 41"));
}

TEST_F(HeldRingsJob, OfAManagerAreAsManyAsItHasRoomFor) {
  plan_.rings = {kFirst, kFirst + 1};
  HostFabric fabric(rings_of(plan_), plan_.world);
  expect_none(run([&](std::uint16_t rank) {
    GroupOptions given = offered(rank);
    if (rank == 0) {
      given.switch_access.manager = *std::exchange(given.switch_access.address, std::nullopt);
    }
    Group group(given, fabric.open(rank));
    EXPECT_EQ(group.rings(), plan_.rings);
    expect_sum(group);
  }));
  EXPECT_THAT(asked(), ElementsAre(HasSubstr("job of 1 to 8: make any nonce"), "end 2"));
}

TEST_F(HeldRingsJob, ThatNobodyOffersAreTheConfiguredFirstOne) {
  plan_.rings = {1};
  HostFabric fabric(rings_of(plan_), plan_.world);
  expect_none(run([&](std::uint16_t rank) {
    GroupOptions given = offered(rank);
    given.switch_access.address = "";
    Group group(given, fabric.open(rank));
    EXPECT_EQ(group.rings(), Ids{1});
    expect_sum(group);
  }));
}

/// Beside it seven queue pairs were opened.
TEST_F(HeldRingsJob, WithoutAnOfferTheHostsReduceByOneRing) {
  plan_.rings = {1};
  HostFabric fabric({}, plan_.world);
  expect_none(run([&](std::uint16_t rank) {
    GroupOptions given = offered(rank);
    given.switch_access.address = "";
    given.fallback = Fallback::ring;
    Group group(given, fabric.open(rank));
    EXPECT_EQ(group.algorithm(), Algorithm::ring);
    EXPECT_EQ(group.options().rings, Ids{1});
    expect_sum(group);
  }));
}

/// tests/smoke's switch takes no other nonce than the one that it was asked for.
TEST_F(HeldRingsJob, EachGroupHasANonceOfItsOwn) {
  HostFabric fabric(rings_of(plan_), plan_.world);
  const auto form = [&] {
    expect_none(run([&](std::uint16_t rank) {
      GroupOptions given = options(rank);
      given.rings = plan_.rings;
      given.ring_ids = RingIds::given;
      Group group(given, fabric.open(rank));
    }));
  };
  form();
  form();
  ASSERT_EQ(asked().size(), 4U);
  EXPECT_NE(asked()[0], asked()[2]);
}

TEST_F(HeldRingsJob, HaveTheIdsThatTheCallerGives) {
  plan_.rings = {9, 0};
  HostFabric fabric(rings_of(plan_), plan_.world);
  expect_none(run([&](std::uint16_t rank) {
    GroupOptions given = options(rank);
    given.rings = plan_.rings;
    given.ring_ids = RingIds::given;
    Group group(given, fabric.open(rank));
    EXPECT_EQ(group.options().rings, plan_.rings);
    expect_sum(group);
  }));
  EXPECT_THAT(asked(), ElementsAre(HasSubstr("make 9 "), HasSubstr("make 0 "), "end 9", "end 0"));
}

TEST_F(HeldRingsJob, AllRanksAreToldWhyThereAreNone) {
  way_ = ":refuse";
  plan_.rings = {kFirst, kFirst + 1};
  HostFabric fabric(rings_of(plan_), plan_.world);
  const auto endings = run([&](std::uint16_t rank) { Group(options(rank), fabric.open(rank)); });
  expect_all(endings, ErrorCode::not_aggregated);
  for (const Ending& ending : endings) {
    EXPECT_EQ(ending.text, "switch " + file_ + way_ + ": there is no room");
  }
  EXPECT_THAT(asked(), ElementsAre(HasSubstr("make"), HasSubstr("make"), "end 41"));
}

TEST_F(HeldRingsJob, TheHostsReduceWithoutTheMagicIfTheyMay) {
  way_ = ":refuse";
  plan_.rings = {kFirst, kFirst + 1};
  plan_.fallback = Fallback::ring;
  HostFabric fabric(rings_of(plan_), plan_.world);
  std::atomic<bool> has_magic = false;
  expect_none(run([&](std::uint16_t rank) {
    Group group(options(rank), std::make_unique<MagicFinder>(fabric.open(rank), has_magic));
    EXPECT_EQ(group.algorithm(), Algorithm::ring);
    EXPECT_EQ(group.fallback_reason(), "switch " + file_ + way_ + ": there is no room");
    expect_sum(group);
  }));
  EXPECT_FALSE(has_magic);
  EXPECT_EQ(asked().back(), "end 41");
}

TEST_F(HeldRingsJob, EndWhenNobodyAggregates) {
  plan_.fallback = Fallback::ring;
  HostFabric fabric({}, plan_.world); // the switch that was asked is not on the way
  std::atomic<bool> has_magic = false;
  std::latch formed(plan_.world);
  expect_none(run([&](std::uint16_t rank) {
    Group group(options(rank), std::make_unique<MagicFinder>(fabric.open(rank), has_magic));
    EXPECT_EQ(group.algorithm(), Algorithm::ring);
    formed.arrive_and_wait();
    EXPECT_EQ(asked().back(), "end 41");
    expect_sum(group);
  }));
  EXPECT_TRUE(has_magic) << "the hello has it, and the test finds it";
}

TEST_F(HeldRingsJob, AGroupWhoseRingTheSwitchEndsIsAborted) {
  way_ = ":end";
  HostFabric fabric(rings_of(plan_), plan_.world);
  const auto endings = run([&](std::uint16_t rank) {
    Group group(options(rank), fabric.open(rank));
    while (true) {
      expect_sum(group);
    }
  });
  expect_all(endings, ErrorCode::aborted);
  for (const Ending& ending : endings) {
    EXPECT_EQ(ending.text, "rank 0 aborted its group: switch " + file_ + way_ +
                               " ended the ring: it was withdrawn");
  }
}

TEST_F(HeldRingsJob, EndWithAnAbortBeforeTheGroupIsClosed) {
  HostFabric fabric(rings_of(plan_), plan_.world);
  std::barrier summed(plan_.world); // an abort ends sums that others have not got yet
  expect_none(run([&](std::uint16_t rank) {
    Group group(options(rank), fabric.open(rank));
    expect_sum(group);
    summed.arrive_and_wait();
    if (rank == 0) {
      group.abort();
      EXPECT_TRUE(is_asked_at_last("end 41"));
    }
  }));
}

TEST_F(HeldRingsJob, EndWhenAnotherRankEndsTheGroup) {
  HostFabric fabric(rings_of(plan_), plan_.world);
  std::barrier summed(plan_.world);
  expect_none(run([&](std::uint16_t rank) {
    Group group(options(rank), fabric.open(rank));
    expect_sum(group);
    summed.arrive_and_wait();
    if (rank == 1) {
      group.abort();
    }
    EXPECT_TRUE(is_asked_at_last("end 41")); // while rank 0 calls nothing
  }));
}

/// Whoever ends the forming: rank 0 waits for the switch meanwhile.
TEST_F(HeldRingsJob, AreNotWaitedForWhenTheFormingEnds) {
  way_ = ":wait";
  HostFabric fabric(rings_of(plan_), plan_.world);
  for (const std::uint16_t aborting : {0, 1}) {
    std::filesystem::resize_file(file_, 0);
    std::vector<std::unique_ptr<Forming>> formings;
    for (const std::uint16_t rank : {0, 1, 2}) {
      formings.push_back(std::make_unique<Forming>(options(rank), fabric.open(rank)));
    }
    EXPECT_TRUE(test::comes_true([&] { return !asked().empty(); }, kSoon));
    formings[aborting]->abort("no ring is needed");
    for (const std::unique_ptr<Forming>& forming : formings) {
      const Ending ending = ending_of([&] { forming->wait_for(kSoon); });
      EXPECT_EQ(ending.code, ErrorCode::aborted) << ending.text;
      EXPECT_EQ(ending.rank, aborting);
      EXPECT_THAT(ending.text, HasSubstr("no ring is needed"));
    }
    EXPECT_EQ(asked().back(), "stopped");
  }
}

TEST_F(HeldRingsJob, EndWithAFormingThatIsFormedAndNotTaken) {
  HostFabric fabric(rings_of(plan_), plan_.world);
  std::vector<std::unique_ptr<Forming>> formings;
  for (const std::uint16_t rank : {0, 1, 2}) {
    formings.push_back(std::make_unique<Forming>(options(rank), fabric.open(rank)));
  }
  EXPECT_TRUE(formings[0]->wait_for(kSoon));
  formings.clear();
  EXPECT_EQ(asked().back(), "end 41");
}

TEST_F(HeldRingsJob, TheRestOfAGroupHasANewOne) {
  std::vector<ring::RingSpec> rings = rings_of(plan_);
  rings.push_back(rings.front());
  rings.back().id = kFirst + 2; // line 3, after the end of the first
  rings.back().members.erase(rings.back().members.begin());
  HostFabric fabric(rings, plan_.world);
  std::barrier summed(plan_.world);
  std::latch over(1);
  expect_none(run([&](std::uint16_t rank) {
    GroupOptions mine = options(rank);
    mine.switch_access.address = file_; // rank 1 will be rank 0
    std::optional<Group> group(std::in_place, mine, fabric.open(rank));
    expect_sum(*group);
    summed.arrive_and_wait();
    if (rank == 0) {
      group->abort();
      EXPECT_TRUE(is_asked_at_last("end 41"));
      group.reset();
      over.count_down();
      return;
    }
    over.wait();
    GroupOptions next = group->options();
    next.epoch = 0;
    Group rest = group->shrink(next, fabric.open(rank));
    EXPECT_EQ(rest.options().rings, Ids{kFirst + 2});
    EXPECT_EQ(rest.algorithm(), Algorithm::in_switch);
    expect_sum(rest);
  }));
  EXPECT_THAT(asked(), ElementsAre(HasSubstr("of 10.7.0.1 10.7.0.2 10.7.0.3"), "end 41",
                                   HasSubstr("of 10.7.0.2 10.7.0.3"), "end 43"));
}

TEST_F(HeldRingsJob, TheEnvironmentSaysWhatTheOptionsDoNot) {
  const Environment environment{{"WEIR_SWITCH", file_},
                                {"WEIR_SWITCH_CERTIFICATE", "/c.pem"},
                                {"WEIR_SWITCH_KEY", "/k.pem"},
                                {"WEIR_SWITCH_AUTHORITY", "/a.pem"},
                                {"WEIR_SWITCH_NAME", "a-switch"}};
  HostFabric fabric(rings_of(plan_), plan_.world);
  const auto form = [&](const SwitchAccess& access) {
    expect_none(run([&](std::uint16_t rank) {
      GroupOptions mine = options(rank);
      mine.rings = plan_.rings;
      mine.ring_ids = RingIds::given;
      mine.switch_access = access;
      Group group(mine, fabric.open(rank));
    }));
  };
  form({});
  EXPECT_THAT(asked(), ElementsAre(HasSubstr(" /c.pem /k.pem /a.pem a-switch"), "end 41"));
  form({.address = "unix:" + file_, .key = "/other.pem"});
  EXPECT_THAT(asked()[2], HasSubstr(" /c.pem /other.pem /a.pem a-switch"));
  form({.address = ""});
  EXPECT_EQ(asked().size(), 4U) << "the caller wants none";
}

TEST_F(HeldRingsJob, RanksAgreeWhoNamesTheRings) {
  HostFabric fabric(rings_of(plan_), plan_.world);
  const auto endings = run([&](std::uint16_t rank) {
    GroupOptions mine = options(rank);
    mine.ring_ids = rank == 2 ? RingIds::given : RingIds::open;
    Group group(mine, fabric.open(rank));
  });
  for (const Ending& ending : endings) {
    EXPECT_EQ(ending.code, ErrorCode::mismatch) << ending.text;
  }
  EXPECT_THAT(asked(), ElementsAre()) << "nothing is made before they agree";
}

TEST(AllocatedRings, TravelAsIdsOrAsAnError) {
  const Ids ids{0, 65536, UINT32_MAX};
  const AllocatedRings sent = MadeRings{ids, "fewer than 4"};
  const auto made = std::get<MadeRings>(decode_allocated_rings(encode(sent), {1, 3}, 4));
  EXPECT_EQ(made.ids, ids);
  EXPECT_EQ(made.shortage, "fewer than 4");
  const AllocatedRings refused = Error(ErrorCode::not_aggregated, std::nullopt, "no room");
  const Error error = std::get<Error>(decode_allocated_rings(encode(refused), {3, 3}, 4));
  EXPECT_EQ(error.code(), ErrorCode::not_aggregated);
  EXPECT_STREQ(error.what(), "no room");
}

TEST(AllocatedRings, ThatCannotBeReadAreAnError) {
  const Blob two = encode(AllocatedRings(MadeRings{{1, 2}, {}}));
  const Blob cut(two.begin(), two.end() - 1);
  const Blob many{0, 0xff, 0xff, 0xff, 0xff};
  for (const Blob& blob : {Blob{}, Blob{0}, Blob{2}, Blob(9, 2), two, cut, many}) {
    const RingCount three{3, 3};
    const Error error = std::get<Error>(decode_allocated_rings(blob, three, 4));
    EXPECT_EQ(error.code(), ErrorCode::transport_failure);
    EXPECT_EQ(error.rank(), 0);
  }
  const RingCount any{1, 8};
  EXPECT_TRUE(std::holds_alternative<Error>(decode_allocated_rings(cut, any, 4)));
}

} // namespace
} // namespace weir::host::held_rings_test
