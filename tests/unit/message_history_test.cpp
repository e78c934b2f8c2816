// SPDX-License-Identifier: BSD-3-Clause

/// docs/protocol.md §3, "message history".

#include "conn/message_history.hpp"
#include "support/sanitized.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace weir::conn::message_history_test {
namespace {

/// No test can send 2^32 messages one by one, so tests of the id's wrap start just before it. An
/// explicit instantiation may name a private member.
template <std::uint64_t MessageHistory::*Member>
struct Newest {
  friend std::uint64_t& newest_of(MessageHistory& history) { return history.*Member; }
};

template struct Newest<&MessageHistory::newest_>;

std::uint64_t& newest_of(MessageHistory& history);

constexpr std::uint32_t kPackets = 8; // L

/// A history and its records.
class History {
 public:
  explicit History(std::uint32_t window) : records_(2 * window), history_(records_, kPackets) {}

  MessageHistory* operator->() { return &history_; }

  /// As if messages up to `newest` had come and gone without this history. The next begins at
  /// `psn`.
  void start_at(std::uint64_t newest, std::uint32_t psn) {
    history_.begin(0, {});
    for (MessageRecord& record : records_) {
      record = {.first_psn = psn};
    }
    newest_of(history_) = newest;
  }

  std::string enter(std::uint32_t id, std::uint32_t psn, std::uint32_t packets,
                    std::uint32_t data_bytes = 0) {
    const auto [entry, record] =
        history_.enter(id, psn & 0xffffff, packets, {.data_bytes = data_bytes});
    switch (entry) {
    case MessageHistory::Entry::entered:
      return fmt::format("entered {} slot {}", record->message, record->first_slot);
    case MessageHistory::Entry::repeat:
      return fmt::format("repeat {}", record->message);
    case MessageHistory::Entry::stale:
      return "stale";
    case MessageHistory::Entry::too_far:
      return "too far";
    case MessageHistory::Entry::conflict:
      return "conflict";
    }
    return "?";
  }

  std::string locate(std::uint32_t psn) {
    const auto located = history_.locate(psn & 0xffffff);
    switch (located.place) {
    case MessageHistory::Place::inside:
      return fmt::format("packet {} of {}", located.packet, located.record->message);
    case MessageHistory::Place::stale:
      return "stale";
    case MessageHistory::Place::unknown:
      return "unknown";
    }
    return "?";
  }

  /// The record that locate() must find. Empty when none has the PSN.
  std::string scan(std::uint32_t psn) const {
    for (const MessageRecord& record : records_) {
      const std::uint32_t packet = (psn - record.first_psn) & 0xffffff;
      if (packet < record.packets) {
        return fmt::format("packet {} of {}", packet, record.message);
      }
    }
    return "";
  }

 private:
  std::vector<MessageRecord> records_;
  MessageHistory history_;
};

struct HistoryStep {
  const char* description;
  bool is_start; // FIRST or ONLY of message `id`; else any other packet
  std::uint32_t id;
  std::uint32_t psn; // relative to the hello's
  std::uint32_t packets;
  const char* expected;
};

/// N = 2: the history is M-3 .. M. Every message has three packets; m's begin at 1 + 3 (m - 1).
const std::vector<HistoryStep> kHistorySteps{
    {"the hello is known", false, 0, 0, 0, "packet 0 of 0"},
    {"nothing in front of it is", false, 0, 0xffffff, 0, "unknown"},
    {"nor behind it", false, 0, 1, 0, "unknown"},
    {"a repeat of the hello in another shape", true, 0, 0, 2, "conflict"},
    {"M+N+1", true, 3, 7, 3, "too far"},
    {"before the sequence", true, 0xffffffff, 0xfffffd, 3, "too far"},
    {"M+1", true, 1, 1, 3, "entered 1 slot 8"},
    {"its middle", false, 0, 2, 0, "packet 1 of 1"},
    {"its last", false, 0, 3, 0, "packet 2 of 1"},
    {"past its end", false, 0, 4, 0, "unknown"},
    {"a repeat", true, 1, 1, 3, "repeat 1"},
    {"the same message elsewhere", true, 1, 2, 3, "conflict"},
    {"the same with other packets", true, 1, 1, 2, "conflict"},
    {"M+N over M, past the hole at 2", true, 3, 3, 3, "conflict"},
    {"M+N leaves a hole at 2", true, 3, 7, 3, "entered 3 slot 24"},
    {"inside the hole: its FIRST was lost", false, 0, 5, 0, "unknown"},
    {"behind the hole", false, 0, 8, 0, "packet 1 of 3"},
    {"filling the hole over its predecessor", true, 2, 3, 3, "conflict"},
    {"filling the hole into its successor", true, 2, 5, 3, "conflict"},
    {"filling the hole", true, 2, 4, 3, "entered 2 slot 16"},
    {"inside it now", false, 0, 5, 0, "packet 1 of 2"},
    {"M+N+1 again", true, 6, 16, 3, "too far"},
    {"4 pushes the hello out", true, 4, 10, 3, "entered 4 slot 0"},
    {"a repeat of the hello is stale", true, 0, 0, 1, "stale"},
    {"so is its PSN", false, 0, 0, 0, "stale"},
    {"and any before it", false, 0, 0xfffff0, 0, "stale"},
    {"M-2N+1 is still inside", false, 0, 3, 0, "packet 2 of 1"},
    {"and its repeat no news", true, 1, 1, 3, "repeat 1"},
    {"6 leaves a hole at 5, pushes 1 and 2 out", true, 6, 16, 3, "entered 6 slot 16"},
    {"1 is stale", true, 1, 1, 3, "stale"},
    {"M-2N is stale wherever it says it begins", true, 2, 99, 3, "stale"},
    {"the last PSN before the floor", false, 0, 6, 0, "stale"},
    {"the first past it", false, 0, 7, 0, "packet 0 of 3"},
    {"inside the hole at 5, never stale", false, 0, 13, 0, "unknown"},
    {"its last packet", false, 0, 15, 0, "unknown"},
    {"8 pushes 3 and 4 out, 5 stays a hole", true, 8, 22, 3, "entered 8 slot 0"},
    {"inside the hole at 5 still", false, 0, 14, 0, "unknown"},
    {"before it", false, 0, 12, 0, "stale"},
    {"5 at last", true, 5, 13, 3, "entered 5 slot 8"},
    {"inside 5", false, 0, 15, 0, "packet 2 of 5"},
    {"a message ahead, far away in PSNs", true, 9, 25 + 1000, 3, "entered 9 slot 8"},
    {"the gap in front of it", false, 0, 500, 0, "unknown"},
};

TEST(MessageHistory, FollowsTheTableOfThePage) {
  // The 24-bit PSN wraps at each of the steps in turn, and nowhere.
  for (const std::uint32_t base :
       {5000u, 0u, 0xffffffu, 0xfffffeu, 0xfffff9u, 0xfffff4u, 0xffffe8u}) {
    History history(2);
    history->begin(base, {});
    for (const HistoryStep& step : kHistorySteps) {
      const std::string answer = step.is_start
                                     ? history.enter(step.id, base + step.psn, step.packets)
                                     : history.locate(base + step.psn);
      EXPECT_EQ(answer, step.expected) << step.description << ", hello at " << base;
    }
  }
}

TEST(MessageHistory, AMessageLiesBetweenItsNearestKnownNeighbours) {
  History history(3);
  history->begin(0, {});
  EXPECT_EQ(history.enter(3, 10, 2), "entered 3 slot 24");
  EXPECT_EQ(history.enter(1, 9, 3), "conflict") << "reaches into 3, past the hole at 2";
  EXPECT_EQ(history.enter(2, 0, 2), "conflict") << "begins inside 0, before the hole at 1";
  EXPECT_EQ(history.enter(1, 7, 2), "entered 1 slot 8");
  EXPECT_EQ(history.enter(2, 9, 1), "entered 2 slot 16");
}

TEST(MessageHistory, AnotherShapeOfTheSameMessageConflicts) {
  History history(1);
  history->begin(0, {});
  EXPECT_EQ(history.enter(1, 1, 2, 300), "entered 1 slot 8");
  EXPECT_EQ(history.enter(1, 1, 2, 304), "conflict");
  EXPECT_EQ(history.enter(1, 1, 2, 300), "repeat 1");
}

TEST(MessageHistory, BeginForgetsEverything) {
  History history(1);
  history->begin(10, {});
  for (std::uint32_t m = 1; m < 6; ++m) {
    history.enter(m, 10 + m, 1);
  }
  EXPECT_EQ(history->newest(), 5u);
  EXPECT_EQ(history.locate(12), "stale");
  history->begin(500, {});
  EXPECT_EQ(history->newest(), 0u);
  EXPECT_EQ(history.locate(12), "unknown") << "no floor yet";
  EXPECT_EQ(history.locate(15), "unknown");
  EXPECT_EQ(history.locate(500), "packet 0 of 0");
  EXPECT_EQ(history.enter(5, 15, 1), "too far");
}

TEST(MessageHistory, VisitsKnownMessagesAloneFromAPsnOn) {
  History history(2); // of four messages
  history->begin(0, {});
  history.enter(1, 1, 2);
  history.enter(3, 1u << 22, 1); // message 2 is missing, and four million PSNs are left out
  history.enter(4, (1u << 22) + 1, 3);
  const auto visited_from = [&](std::uint32_t psn, std::size_t most = 4) {
    std::vector<std::string> visited;
    history->for_each_known_from(psn, [&](const MessageRecord& record) {
      visited.push_back(fmt::format("{} at {:#x}", record.message, record.first_psn));
      return visited.size() < most;
    });
    return visited;
  };
  using Texts = std::vector<std::string>;
  const Texts all{"1 at 0x1", "3 at 0x400000", "4 at 0x400001"};
  EXPECT_EQ(visited_from(0xfffff0), all) << "before the oldest";
  EXPECT_EQ(visited_from(1), all);
  EXPECT_EQ(visited_from(2), all);
  EXPECT_EQ(visited_from(1u << 22), (Texts{"3 at 0x400000", "4 at 0x400001"}));
  EXPECT_EQ(visited_from((1u << 22) + 2), Texts{"4 at 0x400001"});
  EXPECT_EQ(visited_from(1, 1), Texts{"1 at 0x1"});
}

/// A guess says which slot to load before its packet is served. Slots are as on the page, §4:
/// (message mod 2N) x L + k.
TEST(MessageHistory, GuessesTheSlotsOfTheLastMessageAndOfANextOneAsLong) {
  History history(2); // four messages of eight slots
  history->begin(100, {});
  for (std::uint32_t message = 1; message <= 6; ++message) {
    const std::uint32_t first = 101 + 5 * (message - 1);
    history.enter(message, first, 5);
    for (std::uint32_t packet = 0; packet < 5; ++packet) {
      EXPECT_EQ(history->probable_slot(first + packet), message % 4 * 8 + packet);
      EXPECT_EQ(history->probable_slot(first + 5 + packet), (message + 1) % 4 * 8 + packet);
    }
    EXPECT_EQ(history->probable_slot(first + 10), std::nullopt);
    EXPECT_EQ(history->probable_slot(first - 1), std::nullopt);
  }
}

TEST(MessageHistory, MessageIdsWrapForAnyWindow) {
  constexpr std::uint64_t wrap = std::uint64_t{1} << 32;
  for (const std::uint32_t window : {1, 2, 3, 4, 5, 7}) {
    History history(window);
    const std::uint64_t start = wrap - 3;
    std::uint32_t psn = 0xfffffa;
    history.start_at(start, psn);
    std::map<std::uint64_t, std::uint32_t> begins;
    for (std::uint64_t m = start + 1; m < wrap + 20; ++m, psn += 2) {
      begins[m] = psn;
      const auto slot = m % (2 * window) * kPackets; // continuous; id mod 2N is not
      EXPECT_EQ(history.enter(static_cast<std::uint32_t>(m), psn, 2),
                fmt::format("entered {} slot {}", m, slot));
      EXPECT_EQ(history.locate(psn + 1), fmt::format("packet 1 of {}", m));
      EXPECT_EQ(history.enter(static_cast<std::uint32_t>(m + window + 1), psn + 50, 2), "too far");
      if (m > start + 2 * window) {
        const std::uint64_t oldest = m - 2 * window + 1;
        EXPECT_EQ(history.enter(static_cast<std::uint32_t>(oldest), begins[oldest], 2),
                  fmt::format("repeat {}", oldest));
        EXPECT_EQ(history.enter(static_cast<std::uint32_t>(oldest - 1), begins[oldest - 1], 2),
                  "stale");
        EXPECT_EQ(history.locate(begins[oldest - 1] + 1), "stale");
      }
    }
  }
}

/// §3 with numbers that never wrap: messages and PSNs as 64-bit integers. It forgets only by the
/// rules.
class HistoryModel {
 public:
  HistoryModel(std::int64_t window, std::int64_t newest) : window_(window), newest_(newest) {}

  void know(std::int64_t message, std::int64_t psn, std::uint32_t packets) {
    known_[message] = {psn, packets};
  }

  std::string enter(std::int64_t message, std::int64_t psn, std::uint32_t packets) {
    if (message > newest_ + window_ || message < 0) {
      return "too far";
    }
    if (message <= newest_ - 2 * window_) {
      return "stale";
    }
    if (const auto found = known_.find(message); found != known_.end()) {
      return found->second == std::pair(psn, packets) ? fmt::format("repeat {}", message)
                                                      : "conflict";
    }
    newest_ = std::max(newest_, message);
    known_[message] = {psn, packets};
    while (known_.begin()->first <= newest_ - 2 * window_) {
      floor_ = known_.begin()->second.first + known_.begin()->second.second;
      known_.erase(known_.begin());
    }
    return fmt::format("entered {} slot {}", message, message % (2 * window_) * kPackets);
  }

  std::string locate(std::int64_t psn) const {
    for (const auto& [message, record] : known_) {
      if (psn >= record.first && psn < record.first + record.second) {
        return fmt::format("packet {} of {}", psn - record.first, message);
      }
    }
    return floor_ && psn < *floor_ ? "stale" : "unknown";
  }

  std::int64_t newest() const { return newest_; }

 private:
  std::int64_t window_;
  std::int64_t newest_;
  std::map<std::int64_t, std::pair<std::int64_t, std::uint32_t>> known_;
  std::optional<std::int64_t> floor_;
};

TEST(MessageHistory, EqualsTheModelUnderLossAndRepetition) {
  std::mt19937 random(31);
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % limit);
  };
  for (const std::int64_t window : {1, 2, 3, 4, 6}) {
    for (const std::int64_t start : {std::int64_t{0}, (std::int64_t{1} << 32) - 40}) {
      History history(static_cast<std::uint32_t>(window));
      HistoryModel model(window, start);
      std::vector<std::int64_t> begins{(1 << 24) - 200}; // PSN of message start + i
      std::vector<std::uint32_t> lengths{1};
      if (start == 0) {
        history->begin(static_cast<std::uint32_t>(begins[0]), {});
        model.know(0, begins[0], 1);
      } else {
        history.start_at(static_cast<std::uint64_t>(start), static_cast<std::uint32_t>(begins[0]));
      }
      for (int i = 0; i < 400; ++i) { // what the host will ever send
        begins.push_back(begins.back() + lengths.back());
        lengths.push_back(static_cast<std::uint32_t>(1 + below(kPackets)));
      }
      for (int round = 0; round < 4000 && model.newest() < start + 380; ++round) {
        const std::int64_t ahead = random() % 3 == 0 ? below(window + 2) : -below(3 * window);
        const std::int64_t message = std::max(start, model.newest() + ahead);
        const auto index = static_cast<std::size_t>(message - start);
        if (random() % 2 == 0) {
          ASSERT_EQ(history.enter(static_cast<std::uint32_t>(message),
                                  static_cast<std::uint32_t>(begins[index]), lengths[index]),
                    model.enter(message, begins[index], lengths[index]))
              << "N " << window << ", message " << message;
        } else {
          const std::int64_t psn = begins[index] + below(lengths[index]);
          ASSERT_EQ(history.locate(static_cast<std::uint32_t>(psn)), model.locate(psn))
              << "N " << window << ", inside message " << message;
        }
        ASSERT_EQ(history->newest(), static_cast<std::uint64_t>(model.newest()));
      }
    }
  }
}

/// Messages with gaps between them, some never entered, some at wrong places, in an order that only
/// the window limits.
TEST(MessageHistory, LocateFindsWhatAScanOfAllRecordsFinds) {
  constexpr unsigned rounds = test::rounds(20'000);
  std::mt19937 random(37);
  const auto below = [&](std::uint32_t limit) {
    return static_cast<std::uint32_t>(random() % limit);
  };
  for (const std::uint32_t window : {1u, 2u, 3u, 16u, 100u, 1024u}) {
    History history(window);
    std::vector<std::uint32_t> begins{(1u << 24) - 3000}; // not wrapped
    history->begin(begins[0], {});
    unsigned found = 0;
    for (unsigned round = 0; round < rounds; ++round) {
      const auto newest = static_cast<std::uint32_t>(history->newest());
      const std::uint32_t oldest = newest < 2 * window ? 0 : newest - 2 * window + 1;
      while (begins.size() <= newest + window) {
        begins.push_back(begins.back() + kPackets + (below(8) == 0 ? below(300) : 0));
      }
      const std::uint32_t jump = 1 + (below(200) == 0 ? below(window) : 0);
      const std::uint32_t id = below(3) == 0 ? newest + jump : oldest + below(newest - oldest + 1);
      const std::uint32_t astray = below(10) == 0 ? below(40) - 20 : 0;
      history.enter(id, begins[id] + astray, 1 + below(kPackets));
      for (int look = 0; look < 4; ++look) {
        const std::uint32_t near = begins[oldest + below(newest + 1 - oldest)];
        const std::uint32_t psn = (near + below(3 * kPackets) - kPackets) & 0xffffff;
        const std::string expected = history.scan(psn);
        const std::string located = history.locate(psn);
        ASSERT_EQ(located.starts_with("packet") ? located : "", expected)
            << "N " << window << ", PSN " << psn << ", round " << round;
        found += !expected.empty();
      }
    }
    EXPECT_GT(found, rounds / 2) << "N " << window;
    EXPECT_LT(found, 4 * rounds - rounds / 2) << "N " << window;
  }
}

} // namespace
} // namespace weir::conn::message_history_test
