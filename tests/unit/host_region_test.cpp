// SPDX-License-Identifier: BSD-3-Clause

/// A member of a region as the host library has it, over a connection that does what the test says,
/// and what ranks tell one another of a region. The numbers are those of docs/protocol.md §13.

#include "host/api/device.hpp"
#include "host/api/region.hpp"
#include "host/api/region_formation.hpp"
#include "host/region/region_notes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <gmock/gmock.h>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <sys/eventfd.h>
#include <unistd.h>
#include <vector>

namespace weir::host::host_region_test {
namespace {

using endpoint::SendKind;
using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr std::uint64_t kBase = 0x1234'5678'0000;
constexpr std::uint32_t kKey = 0xabc0;
constexpr std::uint32_t kViewKey = 0xbcd0; // of view 0; view 1 has one more
constexpr std::size_t kBytes = 4096;
constexpr std::uint16_t kRank = 2;
constexpr std::size_t kMostNotices = 65536; // include/weir/weir.h

/// What happens on a connection, and what has been asked of it. Shared with the test, since the
/// region owns the link.
class Script {
 public:
  Script() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

  ~Script() { ::close(event_); }

  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  /// One request more, once it is posted, behind all that has come.
  void complete() {
    {
      const std::lock_guard lock(mutex_);
      ++may_complete_;
    }
    wake();
  }

  void notify(std::uint32_t immediate) {
    add([immediate](RegionListener& listener) { listener.notified(immediate); });
  }

  void fail(const Error& error) {
    {
      const std::lock_guard lock(mutex_);
      failure_ = error;
    }
    wake();
  }

  std::vector<endpoint::SendRequest> posted() {
    const std::lock_guard lock(mutex_);
    return posted_;
  }

  std::size_t receives() {
    const std::lock_guard lock(mutex_);
    return receives_;
  }

  bool is_closed() {
    const std::lock_guard lock(mutex_);
    return is_closed_;
  }

 private:
  friend class ScriptedLink;

  void add(std::function<void(RegionListener&)> event) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    wake();
  }

  void wake() const { eventfd_write(event_, 1); }

  const int event_;
  std::mutex mutex_;
  std::vector<std::function<void(RegionListener&)>> events_;
  std::vector<endpoint::SendRequest> posted_;
  std::size_t may_complete_ = 0;
  std::size_t completed_ = 0;
  std::size_t receives_ = 0;
  std::optional<Error> failure_;
  bool is_closed_ = false;
};

class ScriptedLink : public RegionLink {
 public:
  explicit ScriptedLink(std::shared_ptr<Script> script) : script_(std::move(script)) {}

  RegionMember member() const override { return {}; }

  void connect(const MadeRegion& /*region*/, const RegionEnd& /*end*/) override {}

  bool post(const endpoint::SendRequest& request) override {
    const std::lock_guard lock(script_->mutex_);
    script_->posted_.push_back(request);
    return true;
  }

  void post_receive() override {
    const std::lock_guard lock(script_->mutex_);
    ++script_->receives_;
  }

  bool poll(RegionListener& listener) override {
    std::vector<std::function<void(RegionListener&)>> events;
    {
      const std::lock_guard lock(script_->mutex_);
      eventfd_t count = 0;
      eventfd_read(script_->event_, &count);
      events.swap(script_->events_);
      const std::size_t done = std::min(script_->may_complete_, script_->posted_.size());
      for (; script_->completed_ < done; ++script_->completed_) {
        events.emplace_back([](RegionListener& to) { to.completed(); });
      }
    }
    for (const auto& event : events) {
      event(listener);
    }
    return !events.empty();
  }

  std::optional<Error> failure() const override {
    const std::lock_guard lock(script_->mutex_);
    return script_->failure_;
  }

  void close() override {
    const std::lock_guard lock(script_->mutex_);
    script_->is_closed_ = true;
  }

  std::uint64_t progress() const override { return 0; }

  int descriptor() const override { return script_->event_; }

  bool arm() override { return true; }

  Deadline due() const override { return Deadline::max(); }

 private:
  const std::shared_ptr<Script> script_;
};

class HostRegion : public testing::Test {
 public:
  HostRegion() {
    MadeRegion made{.base = kBase, .key = kKey, .window = 16, .patience = std::chrono::seconds(10)};
    made.view_keys = {kViewKey, kViewKey + 1};
    made.ends.resize(kRank + 1);
    made.ends[kRank].token.fill(0x5a);
    region_ = std::make_shared<Region>(RegionParts{.number = ends_->next_number(),
                                                   .rank = kRank,
                                                   .memory = memory_,
                                                   .made = made,
                                                   .link = std::make_unique<ScriptedLink>(script_),
                                                   .ends = ends_,
                                                   .timeout = milliseconds(10'000),
                                                   .farewell = milliseconds(1)});
    script_->complete(); // the hello
    region_->begin(milliseconds(10'000));
  }

  ~HostRegion() override {
    region_->close([] { return true; });
  }

  Region& region() { return *region_; }

  /// Without the hello.
  std::vector<endpoint::SendRequest> posted() {
    std::vector<endpoint::SendRequest> all = script_->posted();
    all.erase(all.begin());
    return all;
  }

 protected:
  std::array<std::uint8_t, kBytes> memory_{};
  std::array<std::uint8_t, kBytes + 8> data_{};
  std::shared_ptr<Script> script_ = std::make_shared<Script>();
  std::shared_ptr<RegionEnds> ends_ = std::make_shared<RegionEnds>();
  std::shared_ptr<Region> region_;
};

template <typename Exception, typename Body>
std::string text_of(Body body) {
  try {
    body();
  } catch (const Exception& exception) {
    return exception.what();
  }
  return "nothing was thrown";
}

TEST_F(HostRegion, SaysHelloByItsToken) {
  const endpoint::SendRequest hello = script_->posted().at(0);
  EXPECT_EQ(hello.kind, SendKind::write);
  EXPECT_EQ(hello.remote_address, kBase);
  EXPECT_EQ(hello.remote_key, kKey);
  EXPECT_EQ(std::vector(hello.data.begin(), hello.data.end()), std::vector<std::uint8_t>(16, 0x5a));
}

TEST_F(HostRegion, WritesAtTheRegionsAddressWithItsRankAboveTheImmediate) {
  RegionPending plain = region().write(8, std::span(data_).first(24), std::nullopt);
  RegionPending tagged = region().write(kBytes - 1, std::span(data_).first(1), 0x123456);
  const auto all = posted();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].kind, SendKind::write);
  EXPECT_EQ(all[0].remote_address, kBase + 8);
  EXPECT_EQ(all[0].remote_key, kKey);
  EXPECT_EQ(all[0].data.size(), 24U);
  EXPECT_EQ(all[1].kind, SendKind::write_immediate);
  EXPECT_EQ(all[1].remote_address, kBase + kBytes - 1);
  EXPECT_EQ(all[1].immediate, 0x02123456U);
  EXPECT_FALSE(plain.test());
  script_->complete();
  plain.wait();
  EXPECT_FALSE(tagged.test());
  script_->complete();
  EXPECT_TRUE(tagged.wait_for(milliseconds(10'000)));
}

TEST_F(HostRegion, ReadsByTheKeyOfAView) {
  RegionPending read = region().read(1, 16, std::span(data_).first(32));
  const auto all = posted();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].kind, SendKind::read);
  EXPECT_EQ(all[0].remote_address, kBase + 16);
  EXPECT_EQ(all[0].remote_key, kViewKey + 1);
  EXPECT_EQ(all[0].target.data(), data_.data());
  EXPECT_EQ(all[0].target.size(), 32U);
  script_->complete();
  read.wait();
}

TEST_F(HostRegion, RefusesWhatIsNotWithinBeforeItPosts) {
  const auto write = [&](std::size_t offset, std::size_t bytes, std::uint32_t immediate) {
    return text_of<std::invalid_argument>(
        [&] { region().write(offset, std::span(data_).first(bytes), immediate); });
  };
  const auto read = [&](std::size_t view, std::size_t offset, std::size_t bytes) {
    return text_of<std::invalid_argument>(
        [&] { region().read(view, offset, std::span(data_).first(bytes)); });
  };
  EXPECT_THAT(write(0, kBytes + 1, 0),
              HasSubstr("bytes: found 4097 from offset 0; allowed: up to 4096"));
  EXPECT_THAT(write(kBytes, 1, 0), HasSubstr("bytes: found 1 from offset 4096"));
  EXPECT_THAT(write(SIZE_MAX, 2, 0), HasSubstr("bytes: found 2 from offset 18446744073709551615"));
  EXPECT_THAT(write(0, 1, 1 << 24), HasSubstr("immediate: found 16777216; allowed: 0 .. 16777215"));
  EXPECT_THAT(read(2, 0, 8), HasSubstr("view: found 2; allowed: 0 .. 1"));
  EXPECT_THAT(read(0, kBytes - 8, 16), HasSubstr("bytes: found 16 from offset 4088"));
  EXPECT_THAT(read(0, 4, 8), HasSubstr("multiples of 8"));
  EXPECT_THAT(read(0, 0, 4), HasSubstr("multiples of 8"));
  EXPECT_TRUE(posted().empty());
}

/// docs/regions.md: "A WRITE behind a READ of the same bytes needs the fence bit".
TEST_F(HostRegion, FencesAWriteBehindAReadOfTheSameBytes) {
  RegionPending read = region().read(0, 64, std::span(data_).first(64));
  for (const auto& [offset, bytes] : {std::pair{0, 64}, {0, 65}, {127, 1}, {128, 8}}) {
    region().write(static_cast<std::size_t>(offset),
                   std::span(data_).first(static_cast<std::size_t>(bytes)), std::nullopt);
  }
  script_->complete();
  read.wait();
  region().write(64, std::span(data_).first(64), std::nullopt);
  std::vector<endpoint::Fence> fences;
  for (const endpoint::SendRequest& request : posted()) {
    fences.push_back(request.fence);
  }
  using enum endpoint::Fence;
  EXPECT_EQ(fences, (std::vector{none, none, after_reads, after_reads, none, none}));
}

/// Until a notice is here.
std::optional<RegionNotice> await_notice(Region& region) {
  const Deadline end = Clock::now() + std::chrono::seconds(10);
  std::optional<RegionNotice> notice;
  while (!notice && Clock::now() < end) {
    notice = region.take_notice();
  }
  return notice;
}

TEST_F(HostRegion, TellsWhoWroteAnImmediate) {
  EXPECT_FALSE(region().take_notice());
  script_->notify(0x05'0000ff);
  script_->notify(0xff'ffffff);
  const auto first = await_notice(region());
  const auto second = await_notice(region());
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->rank, 5);
  EXPECT_EQ(first->immediate, 0xffU);
  EXPECT_EQ(second->rank, 255);
  EXPECT_EQ(second->immediate, 0xffffffU);
  EXPECT_EQ(script_->receives(), 2U) << "one again for each";
}

TEST_F(HostRegion, LetsWritersWaitWhenNobodyTakesNotices) {
  for (std::size_t notice = 0; notice < kMostNotices + 2; ++notice) {
    script_->notify(static_cast<std::uint32_t>(notice));
  }
  RegionPending last = region().write(0, {}, std::nullopt);
  script_->complete(); // behind all of them
  last.wait();
  EXPECT_EQ(script_->receives(), kMostNotices - 1);
  for (std::uint32_t due = 0; due < 4; ++due) {
    const auto notice = region().take_notice();
    ASSERT_TRUE(notice);
    EXPECT_EQ(notice->immediate, due);
  }
  EXPECT_EQ(script_->receives(), kMostNotices - 1 + 3) << "three were kept";
}

TEST_F(HostRegion, GivesTheReasonThatComesAfterTheConnectionsEnd) {
  RegionPending write = region().write(0, std::span(data_).first(8), std::nullopt);
  script_->fail(Error(ErrorCode::transport_failure, std::nullopt, "a fatal NAK"));
  EXPECT_FALSE(write.wait_for(milliseconds(50))) << "the switch may say more";
  ends_->note({.number = 2, .why = "another region"});
  ends_->note({.number = 1, .why = "it was withdrawn"});
  ends_->note({.number = 1, .why = "later"});
  try {
    write.wait();
    FAIL() << "it ended well";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_region);
    EXPECT_STREQ(error.what(), "it was withdrawn");
  }
  EXPECT_TRUE(script_->is_closed());
  EXPECT_EQ(text_of<Error>([&] { region().write(0, {}, std::nullopt); }), "it was withdrawn");
  EXPECT_EQ(text_of<Error>([&] { region().take_notice(); }), "it was withdrawn");
}

TEST_F(HostRegion, EndsWithItsGroup) {
  RegionPending read = region().read(0, 0, std::span(data_).first(8));
  std::optional<std::string> called;
  std::mutex mutex;
  read.on_done([&](const std::optional<Error>& error) {
    const std::lock_guard lock(mutex);
    called = error ? error->what() : "";
  });
  ends_->end_all(Error(ErrorCode::peer_died, 1, "rank 1 died"));
  EXPECT_EQ(text_of<Error>([&] { read.wait(); }), "rank 1 died");
  region().close([] { return true; }); // calls back what is left
  const std::lock_guard lock(mutex);
  EXPECT_EQ(called, "rank 1 died");
}

TEST_F(HostRegion, EndsItsRequestsWhenItIsClosed) {
  RegionPending write = region().write(0, std::span(data_).first(8), std::nullopt);
  unsigned asked = 0;
  region().close([&] { return ++asked == 2; });
  EXPECT_EQ(text_of<Error>([&] { write.wait(); }), "rank 2 closed its region");
  EXPECT_TRUE(script_->is_closed());
}

TEST(RegionEnds, TellsWhoWatchesTooLate) {
  RegionEnds ends;
  std::vector<std::string> told;
  const auto tell = [&](const Error& error) { told.emplace_back(error.what()); };
  ends.note({.number = 1, .why = "silent"});
  ends.watch(1, tell);
  ends.watch(2, tell);
  EXPECT_EQ(told, std::vector<std::string>{"silent"});
  ends.forget(1);
  ends.end_all(Error(ErrorCode::peer_died, 0, "rank 0 died"));
  ends.watch(3, tell);
  EXPECT_EQ(told, (std::vector<std::string>{"silent", "rank 0 died", "rank 0 died"}));
}

TEST(RegionEnds, WakesWhoeverDrivesTheGroupOnRank0) {
  RegionEnds ends;
  unsigned wakes = 0;
  ends.set_driver({.wake = [&] { ++wakes; }, .progress = {}});
  ends.note({.number = 1, .why = "heard of another rank"});
  EXPECT_FALSE(ends.has_untold());
  ends.tell({.number = 2, .why = "it was withdrawn"});
  EXPECT_EQ(wakes, 1U);
  ASSERT_TRUE(ends.has_untold());
  EXPECT_EQ(ends.take_untold().at(0).number, 2U);
  EXPECT_FALSE(ends.has_untold());
}

// ------------------------------------------------------------------------------------------ notes

RegionNote note_of(std::uint16_t rank) {
  RegionNote note{.bytes = 4096, .options = {}, .member = {}};
  note.options.window = 16;
  note.options.views = {{Operation::sum, DataType::i32}};
  note.member = RegionMember{.ip = *wire::parse_ip("10.0.0.1"),
                             .queue_pair = 0x100U + rank,
                             .first_psn = 0xfffff0U + rank,
                             .base = 0x7000'0000'0000U + rank,
                             .key = 0xfffffff0U + rank,
                             .ack_timeout = 14};
  return note;
}

std::vector<std::uint8_t> gathered(const std::vector<RegionNote>& notes) {
  std::vector<std::uint8_t> all;
  for (const RegionNote& note : notes) {
    const auto bytes = encode(note);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

TEST(RegionNotes, HaveEachMember) {
  const auto members = agreed_members(gathered({note_of(0), note_of(1)}));
  ASSERT_EQ(members.size(), 2U);
  EXPECT_EQ(wire::to_string(members[1].ip), "10.0.0.1");
  EXPECT_EQ(members[1].queue_pair, 0x101U);
  EXPECT_EQ(members[1].first_psn, 0xfffff1U);
  EXPECT_EQ(members[1].base, 0x7000'0000'0001U);
  EXPECT_EQ(members[1].key, 0xfffffff1U);
  EXPECT_EQ(members[1].ack_timeout, 14);
}

/// Every option counts: the switch is told rank 0's.
TEST(RegionNotes, DifferByAnyOption) {
  const std::vector<std::function<void(RegionNote&)>> changes{
      [](RegionNote& note) { note.bytes = 4097; },
      [](RegionNote& note) { note.options.window = 17; },
      [](RegionNote& note) { note.options.entries = 1; },
      [](RegionNote& note) { note.options.reads = 1; },
      [](RegionNote& note) { note.options.loopback = Loopback::own_writes; },
      [](RegionNote& note) { note.options.patience = std::chrono::seconds(1); },
      [](RegionNote& note) { note.options.forming = std::chrono::seconds(1); },
      [](RegionNote& note) { note.options.views.clear(); },
      [](RegionNote& note) { note.options.views[0].type = DataType::f32; },
      [](RegionNote& note) { note.options.views[0].operation = Operation::max; }};
  for (std::size_t change = 0; change < changes.size(); ++change) {
    std::vector<RegionNote> notes{note_of(0), note_of(1), note_of(2)};
    changes[change](notes[2]);
    try {
      agreed_members(gathered(notes));
      ADD_FAILURE() << "change " << change << " is allowed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::mismatch) << change;
      EXPECT_EQ(error.rank(), 2) << change;
    }
  }
}

TEST(RegionNotes, TellWhyARankHasNoEnd) {
  RegionNote failed = note_of(1);
  failed.member = Error(ErrorCode::transport_failure, 1, "rank 1: " + std::string(3000, 'x'));
  EXPECT_THAT(text_of<Error>([&] {
                agreed_members(gathered({note_of(0), failed}));
              }),
              testing::StartsWith("rank 1: xxxx"));
  auto strange = gathered({note_of(0), note_of(1)});
  strange[kRegionNoteBytes] ^= 1;
  EXPECT_THAT(text_of<Error>([&] { agreed_members(strange); }),
              HasSubstr("rank 1 does not make a region"));
}

TEST(RegionNotes, GiveOutTheRegionOrTheReason) {
  MadeRegion made{.id = 7,
                  .ip = *wire::parse_ip("10.0.0.254"),
                  .mac = *wire::parse_mac("02:57:45:00:00:01"),
                  .base = kBase,
                  .key = kKey,
                  .window = 64,
                  .patience = std::chrono::seconds(86400),
                  .view_keys = std::vector<std::uint32_t>(16, kViewKey),
                  .ends = std::vector<RegionEnd>(256)};
  made.ends[255] = {.queue_pair = 0xfffffe, .first_psn = 5, .token = {1, 2, 3}};
  const MadeRegion told = decode_region_answer(encode(RegionAnswer(made)), 256, 16);
  EXPECT_EQ(told.id, 7U);
  EXPECT_EQ(wire::to_string(told.ip), "10.0.0.254");
  EXPECT_EQ(wire::to_string(told.mac), "02:57:45:00:00:01");
  EXPECT_EQ(told.base, kBase);
  EXPECT_EQ(told.key, kKey);
  EXPECT_EQ(told.patience, std::chrono::seconds(86400));
  EXPECT_EQ(told.view_keys, made.view_keys);
  EXPECT_EQ(told.ends[255].queue_pair, 0xfffffeU);
  EXPECT_EQ(told.ends[255].token, made.ends[255].token);
  const RegionAnswer refused = Error(ErrorCode::no_region, std::nullopt, "switch X: no room");
  try {
    decode_region_answer(encode(refused), 256, 16);
    FAIL() << "it is a region";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_region);
    EXPECT_STREQ(error.what(), "switch X: no room");
  }
}

/// The device's complaint, not that of an interface of that name.
TEST(RegionLink, IsOfTheRdmaDeviceOverVerbs) {
  GroupOptions options;
  options.transport = TransportKind::verbs;
  options.device = "absent_0";
  Device device(options);
  std::array<std::uint8_t, 16> memory{};
  EXPECT_THAT(text_of<Error>([&] { device.open_region_link(options, memory, 1); }),
              testing::ContainsRegex("^device absent_0: (there are no RDMA devices here|not among "
                                     "the RDMA devices here|this build has no libibverbs)"));
}

TEST(RegionOptions, HaveLimits) {
  EXPECT_EQ(find_defect(RegionOptions{}, 16), "");
  EXPECT_EQ(find_defect(RegionOptions{}, 15), "bytes: found 15; allowed: 16 and more");
  EXPECT_EQ(find_defect({.reads = 17}, 16), "reads: found 17; allowed: 1 .. 16");
  EXPECT_EQ(find_defect({.views = std::vector<RegionView>(17)}, 16),
            "view_count: found 17; allowed: 0 .. 16");
  EXPECT_THAT(find_defect({.views = {{Operation::bitwise_and, DataType::f32}}}, 16),
              HasSubstr("weir_is_reducible"));
}

} // namespace
} // namespace weir::host::host_region_test
