// SPDX-License-Identifier: BSD-3-Clause

/// docs/protocol.md §3: message history, connection table, ring directory, and the classifier that
/// joins them.

#include "conn/classify.hpp"
#include "conn/connection_table.hpp"
#include "conn/message_history.hpp"
#include "conn/ring_directory.hpp"
#include "support/frame_builder.hpp"
#include "support/ring_job.hpp"
#include "wire/parse.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace weir::conn {
namespace {

using test::Built;
using test::Bytes;
using test::ExactCopy;
using test::FrameSpec;
using test::InaSpec;
using test::JobSpec;
using test::kSession;
using test::RingJob;

// ---- Message history. ----

/// No test can send 2^32 messages one by one, so those about the id's wrap start in front of it. An
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

  /// As if messages up to `newest` had come and gone unseen; the next begins at `psn`.
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

  /// What locate must find: whichever record has it. Empty when none has.
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
      const auto slot = m % (2 * window) * kPackets; // continuous, where id mod 2N is not
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

/// §3's words with numbers that never wrap: messages and PSNs as 64-bit integers, nothing forgotten
/// but by rule.
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

/// Messages with gaps between them, some never entered, some where they do not belong, in an order
/// that only the window bounds.
TEST(MessageHistory, LocateFindsWhatAScanOfAllRecordsFinds) {
  std::mt19937 random(37);
  const auto below = [&](std::uint32_t limit) {
    return static_cast<std::uint32_t>(random() % limit);
  };
  for (const std::uint32_t window : {1u, 2u, 3u, 16u, 100u, 1024u}) {
    History history(window);
    std::vector<std::uint32_t> begins{(1u << 24) - 3000}; // not wrapped
    history->begin(begins[0], {});
    unsigned found = 0;
    for (int round = 0; round < 20'000; ++round) {
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
    EXPECT_GT(found, 10'000u) << "N " << window;
    EXPECT_LT(found, 70'000u) << "N " << window;
  }
}

// ---- Connection table. ----

TEST(ConnectionTable, KeepsKeysApart) {
  ConnectionTable table(8, 100);
  EXPECT_EQ(table.find(1, 5, 0), nullptr);
  Connection* first = table.find_or_insert(1, 5, 0);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->state, ConnectionState::plain);
  EXPECT_EQ(first->pair, 1);
  EXPECT_EQ(first->qp, 5u);
  EXPECT_EQ(first->last_seen, 0u);
  Connection* other_pair = table.find_or_insert(2, 5, 0);
  Connection* other_qp = table.find_or_insert(1, 0xffffff, 0);
  EXPECT_NE(first, other_pair);
  EXPECT_NE(first, other_qp);
  EXPECT_EQ(table.find(1, 5, 0), first);
  EXPECT_EQ(table.find_or_insert(1, 5, 0), first);
  EXPECT_EQ(table.size(), 3u);
}

TEST(ConnectionTable, ForgetsIdleOnesButNoRings) {
  ConnectionTable table(4, 100);
  table.find_or_insert(1, 1, 0);
  table.find_or_insert(1, 2, 0)->state = ConnectionState::dead;
  table.find_or_insert(1, 3, 0)->state = ConnectionState::ring;
  EXPECT_NE(table.find(1, 1, 100), nullptr);
  EXPECT_NE(table.find(1, 2, 100), nullptr);
  EXPECT_EQ(table.find(1, 1, 101), nullptr);
  EXPECT_EQ(table.find(1, 2, 101), nullptr);
  EXPECT_NE(table.find(1, 3, 1'000'000), nullptr);
  EXPECT_EQ(table.size(), 1u);
  Connection* again = table.find_or_insert(1, 2, 200);
  EXPECT_EQ(again->state, ConnectionState::plain) << "nothing of the old one is left";
  EXPECT_EQ(again->packets, 0u);
}

TEST(ConnectionTable, AFullTableGivesUpTheLongestIdle) {
  ConnectionTable table(4, 1000);
  table.find_or_insert(1, 1, 40);
  table.find_or_insert(1, 2, 20);
  table.find_or_insert(1, 3, 10)->state = ConnectionState::ring;
  table.find_or_insert(1, 4, 30)->state = ConnectionState::dead;
  ASSERT_NE(table.find_or_insert(1, 5, 50), nullptr);
  EXPECT_EQ(table.size(), 4u);
  EXPECT_EQ(table.find(1, 2, 50), nullptr);
  for (const std::uint32_t qp : {1u, 3u, 4u, 5u}) {
    EXPECT_NE(table.find(1, qp, 50), nullptr) << qp;
  }
}

TEST(ConnectionTable, ATableFullOfRingsRefuses) {
  ConnectionTable table(3, 10);
  for (std::uint32_t qp = 0; qp < 3; ++qp) {
    table.find_or_insert(7, qp, 0)->state = ConnectionState::ring;
  }
  EXPECT_EQ(table.find_or_insert(7, 3, 1'000'000), nullptr);
  EXPECT_EQ(table.size(), 3u);
  EXPECT_NE(table.find_or_insert(7, 2, 1'000'000), nullptr) << "those that are in are found";
  ConnectionTable none(0, 10);
  EXPECT_EQ(none.find(1, 1, 0), nullptr);
  EXPECT_EQ(none.find_or_insert(1, 1, 0), nullptr);
}

/// A packet may take only so much time, whatever fills the table; what it does not find, a later
/// one does.
TEST(ConnectionTable, OneInsertionSearchesABoundedPart) {
  constexpr std::uint32_t capacity = 8 * ConnectionTable::kSearchCells;
  constexpr std::uint32_t cells = 4 * capacity; // the power of two above 2 capacity + 2
  constexpr std::uint32_t searches = cells / ConnectionTable::kSearchCells;
  std::uint32_t refused = 0;
  for (std::uint32_t plain = 0; plain < 16; ++plain) { // it may lie right behind the sweep
    ConnectionTable table(capacity, 1000);
    for (std::uint32_t qp = 0; qp < capacity; ++qp) {
      table.find_or_insert(1, qp, 0)->state =
          qp == plain ? ConnectionState::plain : ConnectionState::ring;
    }
    std::uint32_t tries = 1;
    while (table.find_or_insert(1, capacity, 1) == nullptr) {
      ASSERT_LE(++tries, searches);
    }
    refused += tries - 1;
    EXPECT_EQ(table.find(1, plain, 1), nullptr);
    EXPECT_EQ(table.size(), capacity);
  }
  EXPECT_GT(refused, 16 * searches / 4) << "found at once: the search had no bound";
}

using Key = std::pair<std::uint16_t, std::uint32_t>;

std::set<Key> keys_of(const ConnectionTable& table) {
  std::set<Key> keys;
  table.for_each([&](const Connection& connection) {
    EXPECT_TRUE(keys.emplace(connection.pair, connection.qp).second) << "shown twice";
  });
  return keys;
}

struct ModelConnection {
  Connection* connection = nullptr; // stays where it is for as long as it lives
  ConnectionState state{};
  std::uint64_t last_seen = 0;
};

/// Erasing moves what probing put behind; a map has no such worries.
TEST(ConnectionTable, EqualsAMapUnderRandomTraffic) {
  std::mt19937 random(32);
  constexpr std::uint64_t aging = 60;
  for (const std::uint32_t capacity :
       {1u, 5u, 15u, 31u}) { // the last are half full at most exactly
    ConnectionTable table(capacity, aging);
    std::map<Key, ModelConnection> model;
    std::uint64_t now = 0;
    const auto has_aged = [&](const ModelConnection& known) {
      return known.state != ConnectionState::ring && now - known.last_seen > aging;
    };
    for (int round = 0; round < 30000; ++round) {
      now += random() % 3;
      const Key key{static_cast<std::uint16_t>(1 + random() % 3), random() % (capacity + 5)};
      const auto known = model.find(key);
      const bool is_known = known != model.end() && !has_aged(known->second);
      if (known != model.end() && !is_known) {
        model.erase(known);
      }
      Connection* connection = nullptr;
      if (random() % 2 == 0) {
        connection = table.find(key.first, key.second, now);
        ASSERT_EQ(connection != nullptr, is_known);
      } else {
        connection = table.find_or_insert(key.first, key.second, now);
        const std::set<Key> left = keys_of(table);
        std::vector<Key> gone;
        for (const auto& [each, _] : model) {
          if (!left.contains(each)) {
            gone.push_back(each);
          }
        }
        if (connection == nullptr) {
          ASSERT_EQ(model.size(), capacity);
          ASSERT_TRUE(gone.empty());
          continue;
        }
        ASSERT_EQ(gone.size(), !is_known && model.size() == capacity ? 1u : 0u);
        for (const Key& each : gone) {
          ASSERT_NE(model[each].state, ConnectionState::ring);
          model.erase(each);
        }
      }
      if (connection == nullptr) {
        continue;
      }
      ASSERT_EQ(connection->pair, key.first);
      ASSERT_EQ(connection->qp, key.second);
      if (is_known) {
        ASSERT_EQ(connection, model[key].connection);
        ASSERT_EQ(connection->state, model[key].state);
      }
      if (random() % 4 == 0) {
        connection->state = static_cast<ConnectionState>(random() % 3);
      }
      connection->last_seen = now;
      model[key] = {connection, connection->state, now};
      ASSERT_EQ(table.size(), keys_of(table).size());
      ASSERT_LE(table.size(), capacity);
    }
  }
}

// ---- Ring directory. ----

TEST(RingDirectory, KnowsNeighboursAndNobodyElse) {
  RingJob three({.ring = 7, .world = 3});
  RingJob six({.ring = 9, .world = 4, .network = test::Network::ipv6});
  const RingDirectory directory({three.ring(), six.ring()});
  EXPECT_EQ(directory.pairs(), 7u);
  EXPECT_EQ(directory.rings().size(), 2u);
  EXPECT_EQ(directory.ring_with_id(7), 0);
  EXPECT_EQ(directory.ring_with_id(9), 1);
  EXPECT_EQ(directory.ring_with_id(0), std::nullopt);
  std::set<std::uint16_t> numbers;
  for (const RingJob* job : {&three, &six}) {
    for (std::uint16_t from = 0; from < job->spec().world; ++from) {
      for (std::uint16_t to = 0; to < job->spec().world; ++to) {
        const std::uint16_t pair = directory.pair_of(job->ip_of(from), job->ip_of(to));
        if (to == job->successor_of(from)) {
          EXPECT_TRUE(pair >= 1 && pair <= 7);
          EXPECT_TRUE(numbers.insert(pair).second);
          EXPECT_EQ(directory.group_of_pair(pair), directory.group_of_ring(job == &three ? 0 : 1));
        } else {
          EXPECT_EQ(pair, 0) << from << " to " << to;
        }
      }
    }
  }
  EXPECT_EQ(directory.pair_of(three.ip_of(0), six.ip_of(1)), 0);
  EXPECT_EQ(directory.pair_of(test::ip("192.0.2.1"), test::ip("192.0.2.2")), 0);
  EXPECT_NE(directory.group_of_ring(0), directory.group_of_ring(1));
}

TEST(RingDirectory, InARingOfTwoBothWaysAreNeighbours) {
  RingJob job({.world = 2});
  const RingDirectory directory({job.ring()});
  EXPECT_NE(directory.pair_of(job.ip_of(0), job.ip_of(1)), 0);
  EXPECT_NE(directory.pair_of(job.ip_of(1), job.ip_of(0)), 0);
  EXPECT_NE(directory.pair_of(job.ip_of(0), job.ip_of(1)),
            directory.pair_of(job.ip_of(1), job.ip_of(0)));
}

/// Rings given by their members' numbers; which of them end in one group.
TEST(RingDirectory, GroupsRingsThatShareAPair) {
  struct Row {
    const char* description;
    std::vector<std::vector<int>> rings;
    std::vector<std::vector<std::uint16_t>> groups;
  };

  const std::vector<Row> rows{
      {"strangers", {{1, 2, 3}, {4, 5, 6}}, {{0}, {1}}},
      {"a member in common is no pair", {{1, 2, 3}, {3, 4, 5}}, {{0}, {1}}},
      {"the same hosts the other way round", {{1, 2, 3}, {3, 2, 1}}, {{0}, {1}}},
      {"the same hosts", {{1, 2, 3}, {1, 2, 3}}, {{0, 1}}},
      {"one pair", {{1, 2, 3}, {1, 2, 4}}, {{0, 1}}},
      {"a ring that joins two", {{1, 2, 3}, {4, 5, 6}, {1, 2, 4, 5}}, {{0, 1, 2}}},
      {"a chain",
       {{1, 2, 9}, {3, 4, 10}, {5, 6, 11}, {5, 6, 3, 4}, {1, 2, 12}},
       {{0, 4}, {1, 2, 3}}},
      {"pairs of two and a ring through both", {{1, 2}, {2, 1, 3}}, {{0, 1}}},
  };
  for (const Row& row : rows) {
    std::vector<RingSpec> rings;
    for (const auto& members : row.rings) {
      RingSpec& ring = rings.emplace_back();
      ring.id = static_cast<std::uint32_t>(rings.size());
      for (const int member : members) {
        ring.members.push_back({test::ip(fmt::format("10.0.0.{}", member)), {}});
      }
    }
    const RingDirectory directory(rings);
    std::map<std::uint16_t, std::vector<std::uint16_t>> by_group;
    for (std::uint16_t ring = 0; ring < rings.size(); ++ring) {
      by_group[directory.group_of_ring(ring)].push_back(ring);
      for (std::uint16_t rank = 0; rank < rings[ring].world(); ++rank) {
        const auto pair = directory.pair_of(rings[ring].members[rank].ip,
                                            rings[ring].members[rings[ring].successor(rank)].ip);
        EXPECT_EQ(directory.group_of_pair(pair), directory.group_of_ring(ring)) << row.description;
      }
    }
    std::vector<std::vector<std::uint16_t>> groups;
    for (const auto& [_, members] : by_group) {
      groups.push_back(members);
    }
    std::sort(groups.begin(), groups.end());
    EXPECT_EQ(groups, row.groups) << row.description;
  }
}

TEST(RingDirectory, RefusesWhatItCannotNumber) {
  RingJob job({.ring = 7, .world = 2});
  EXPECT_THROW(RingDirectory({job.ring(), job.ring()}), std::invalid_argument) << "the same id";
  std::vector<RingSpec> many;
  for (std::uint32_t id = 0; id < 256; ++id) { // 256 x 256 members
    RingSpec& ring = many.emplace_back();
    ring.id = id;
    ring.members.resize(256);
  }
  EXPECT_THROW(RingDirectory{many}, std::invalid_argument);
  EXPECT_EQ(RingDirectory({}).pair_of({}, {}), 0);
}

TEST(RingDirectory, FindsEveryPairOfManyRings) {
  std::vector<RingJob> jobs;
  std::vector<RingSpec> rings;
  for (std::uint8_t i = 0; i < 40; ++i) {
    jobs.emplace_back(JobSpec{.ring = i, .world = 256, .network_id = i});
    rings.push_back(jobs.back().ring());
  }
  const RingDirectory directory(rings);
  EXPECT_EQ(directory.pairs(), 40u * 256u);
  for (const RingJob& job : jobs) {
    for (std::uint16_t rank = 0; rank < 256; ++rank) {
      const auto pair = directory.pair_of(job.ip_of(rank), job.ip_of(job.successor_of(rank)));
      ASSERT_NE(pair, 0);
      ASSERT_EQ(directory.group_of_pair(pair), job.spec().ring);
      ASSERT_EQ(directory.pair_of(job.ip_of(job.successor_of(rank)), job.ip_of(rank)), 0);
    }
  }
}

// ---- Classifier. ----

std::string text_of(const Verdict& verdict) {
  std::string text;
  switch (verdict.step) {
  case Verdict::Step::forward:
    text = verdict.foreign ? fmt::format("forward {}", name_of(*verdict.foreign)) : "forward";
    break;
  case Verdict::Step::forward_stale:
    text = fmt::format("stale {}.{}", verdict.ring, verdict.rank);
    break;
  case Verdict::Step::drop:
    text = fmt::format("drop {}", name_of(verdict.drop));
    break;
  case Verdict::Step::contribute:
    text = fmt::format("{}.{} message {} packet {}", verdict.ring, verdict.rank,
                       verdict.record->message, verdict.packet);
    break;
  }
  return verdict.flushed_ring ? fmt::format("{}, flush {}", text, *verdict.flushed_ring) : text;
}

constexpr std::uint64_t kAging = 1000;

/// A classifier for a few rings; frames go straight in.
class Bench {
 public:
  explicit Bench(const std::vector<RingSpec>& rings, std::uint32_t plain_entries = 16)
      : directory_(rings),
        classifier_(directory_, all(rings.size()),
                    {.session = kSession, .plain_entries = plain_entries, .aging = kAging}) {}

  std::string classify(const Built& built, std::uint16_t port = 0) {
    ExactCopy copy(built.bytes);
    wire::Frame frame;
    frame.data = copy.data();
    frame.length = static_cast<std::uint32_t>(built.bytes.size());
    frame.ingress = port;
    frame.packet = wire::parse(copy.bytes());
    frame.pair = directory_.pair_of(frame.packet.source, frame.packet.destination);
    if (frame.pair == 0) {
      return "not between neighbours";
    }
    return text_of(classifier_.classify(frame, now));
  }

  /// Says hello for every rank.
  void admit(const RingJob& job) {
    for (std::uint16_t rank = 0; rank < job.spec().world; ++rank) {
      const std::string answer = classify(job.hello(rank), job.port_of(rank));
      EXPECT_TRUE(answer.find("message 0 packet 0") != std::string::npos) << answer;
    }
  }

  Classifier& classifier() { return classifier_; }

  std::uint64_t now = 0;

 private:
  static std::vector<std::uint16_t> all(std::size_t rings) {
    std::vector<std::uint16_t> numbers;
    for (std::uint16_t ring = 0; ring < rings; ++ring) {
      numbers.push_back(ring);
    }
    return numbers;
  }

  RingDirectory directory_;
  Classifier classifier_;
};

struct Step {
  const char* description;
  Built frame;
  const char* expected;
};

void expect_steps(Bench& bench, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    EXPECT_EQ(bench.classify(step.frame), step.expected) << step.description;
  }
}

/// A message on this rank's QP that is no ring's.
Built plain(const RingJob& job, std::uint16_t rank, std::uint8_t opcode,
            std::uint32_t psn = 0x777) {
  FrameSpec spec = job.frame_of(rank);
  spec.opcode = opcode;
  spec.psn = psn;
  spec.payload = Bytes(64, 0x11);
  return build(spec);
}

constexpr std::uint8_t kFirst = 0x06; // RDMA WRITE
constexpr std::uint8_t kMiddle = 0x07;
constexpr std::uint8_t kLast = 0x08;
constexpr std::uint8_t kOnly = 0x0a;

/// Three packets.
Bytes data() {
  return Bytes(256 * 3 - 40 - 8, 0x22);
}

Built with_qp(Built frame, std::uint32_t qp) {
  frame.bytes[frame.bth + 5] = static_cast<std::uint8_t>(qp >> 16);
  frame.bytes[frame.bth + 6] = static_cast<std::uint8_t>(qp >> 8);
  frame.bytes[frame.bth + 7] = static_cast<std::uint8_t>(qp);
  seal(frame);
  return frame;
}

Built poked(Built frame, std::size_t ina_at, std::uint32_t value) {
  test::put32(frame.bytes, frame.payload + ina_at, value);
  seal(frame);
  return frame;
}

Built damaged(Built frame, std::size_t at) {
  frame.bytes[at] ^= 0x01;
  return frame;
}

TEST(Classifier, AHelloAdmitsAndNothingElse) {
  RingJob job({.world = 3});
  Bench bench({job.ring()});
  const auto message = job.message(0, 1, data());
  const auto other = job.message(1, 1, data());
  expect_steps(bench, {{"no hello: a FIRST begins the epoch and no more", message[0],
                        "drop no_connection, flush 0"},
                       {"no hello", message[0], "drop no_connection"},
                       {"no hello: middle", message[1], "drop unclassified"},
                       {"no hello: last", message[2], "drop unclassified"},
                       {"hello", job.hello(0), "0.0 message 0 packet 0"},
                       {"repeated hello", job.hello(0), "0.0 message 0 packet 0"},
                       {"another rank is not admitted by it", other[0], "drop no_connection"},
                       {"another QP neither", with_qp(message[0], 0x999), "drop no_connection"},
                       {"nor its middle", with_qp(message[1], 0x999), "drop unclassified"},
                       {"FIRST", message[0], "0.0 message 1 packet 0"},
                       {"MIDDLE", message[1], "0.0 message 1 packet 1"},
                       {"LAST", message[2], "0.0 message 1 packet 2"},
                       {"go-back-N into the middle", message[1], "0.0 message 1 packet 1"},
                       {"and from the start", message[0], "0.0 message 1 packet 0"}});
  const auto& classifier = bench.classifier();
  EXPECT_EQ(classifier.epoch_of(0), 1u);
  const MemberStatus status = classifier.status_of(0, 0);
  EXPECT_TRUE(status.connected);
  EXPECT_EQ(status.qp, job.qp_of(0));
  EXPECT_EQ(status.newest_message, 1u);
  EXPECT_EQ(status.packets, 7u);
  EXPECT_FALSE(classifier.status_of(0, 1).connected);
}

TEST(Classifier, EveryRankAndEncapsulationIsAdmitted) {
  for (const test::Network network : test::kNetworks) {
    for (const test::Verb verb : {test::Verb::send, test::Verb::write_immediate}) {
      RingJob job({.world = 5, .network = network, .verb = verb});
      Bench bench({job.ring()});
      bench.admit(job);
      for (std::uint16_t rank = 0; rank < 5; ++rank) {
        const auto packets = job.message(rank, 1, data());
        for (std::size_t k = 0; k < packets.size(); ++k) {
          EXPECT_EQ(bench.classify(packets[k]), fmt::format("0.{} message 1 packet {}", rank, k));
        }
      }
    }
  }
}

TEST(Classifier, NeverGuesses) {
  RingJob job({.world = 3});
  Bench bench({job.ring()});
  expect_steps(
      bench,
      {{"the middle of who knows what", plain(job, 0, kMiddle), "drop unclassified"},
       {"its end", plain(job, 0, kLast), "drop unclassified"},
       {"a SEND's middle", plain(job, 0, 0x01), "drop unclassified"},
       {"a plain message begins", plain(job, 0, kFirst), "forward"},
       {"its middle", plain(job, 0, kMiddle), "forward"},
       {"its end", plain(job, 0, kLast), "forward"},
       {"other QPs stay in the dark", with_qp(plain(job, 0, kMiddle), 0x999), "drop unclassified"},
       {"a plain ONLY will do", plain(job, 1, kOnly), "forward"},
       {"then", plain(job, 1, kMiddle), "forward"}});
  bench.now = kAging + 1;
  expect_steps(bench, {{"forgotten", plain(job, 0, kMiddle), "drop unclassified"}});
}

TEST(Classifier, APlainQpBecomesARingsAndStaysTheRings) {
  RingJob job({.world = 3});
  Bench bench({job.ring()});
  const auto message = job.message(0, 1, data());
  expect_steps(bench,
               {{"plain at first", plain(job, 0, kOnly), "forward"},
                {"its middle", plain(job, 0, kMiddle), "forward"},
                {"a ring's message finds it plain", message[0], "drop no_connection, flush 0"},
                {"hello", job.hello(0), "0.0 message 0 packet 0"},
                {"no longer", plain(job, 0, kMiddle), "drop unknown_message"},
                {"the ring's message", message[0], "0.0 message 1 packet 0"},
                {"a plain message in between passes", plain(job, 0, kFirst), "forward"},
                {"and changes nothing", message[1], "0.0 message 1 packet 1"},
                {"its own middle is no message of the ring", plain(job, 0, kMiddle),
                 "drop unknown_message"}});
}

TEST(Classifier, AnotherSessionIsAnotherSwitch) {
  RingJob job({.world = 3});
  Bench bench({job.ring()});
  bench.admit(job);
  const auto message = job.message(0, 1, data());
  expect_steps(bench, {{"an old session", poked(message[0], test::kInaSessionAt, kSession + 1),
                        "drop wrong_session"},
                       {"none", poked(message[0], test::kInaSessionAt, 0), "drop wrong_session"},
                       {"nothing was entered", message[1], "drop unknown_message"},
                       {"this one's", message[0], "0.0 message 1 packet 0"}});
}

TEST(Classifier, WhatABadIcrcSaysIsNotBelieved) {
  RingJob job({.world = 3});
  Bench bench({job.ring()});
  const Built hello = job.hello(0);
  const auto message = job.message(0, 1, data());
  const Built newer = poked(hello, test::kInaEpochAt, 9);
  expect_steps(bench, {{"hello", damaged(hello, hello.payload + test::kInaRankAt), "drop bad_icrc"},
                       {"plain", damaged(plain(job, 0, kOnly), 60), "drop bad_icrc"},
                       {"admitted nobody", plain(job, 0, kMiddle), "drop unclassified"},
                       {"good hello", hello, "0.0 message 0 packet 0, flush 0"},
                       {"epoch", damaged(newer, newer.icrc), "drop bad_icrc"},
                       {"FIRST", damaged(message[0], message[0].payload + 100), "drop bad_icrc"},
                       {"entered nothing", message[1], "drop unknown_message"},
                       {"good FIRST", message[0], "0.0 message 1 packet 0"}});
  EXPECT_EQ(bench.classifier().epoch_of(0), 1u);
}

TEST(Classifier, TheWindowAndTheHistoryOfAConnection) { // N = 2
  RingJob job({.world = 3});
  Bench bench({job.ring()});
  bench.admit(job);
  std::vector<std::vector<Built>> m;
  for (std::uint32_t id = 0; id < 12; ++id) {
    m.push_back(job.message(0, id, data()));
  }
  Built moved = m[1][0];
  moved.bytes[moved.bth + 11] ^= 0x40; // PSN
  seal(moved);
  expect_steps(bench, {{"M+N+1", m[3][0], "drop window_exceeded"},
                       {"M+1", m[1][0], "0.0 message 1 packet 0"},
                       {"at another PSN", moved, "drop history_conflict"},
                       {"M+N, over a hole", m[3][0], "0.0 message 3 packet 0"},
                       {"inside the hole", m[2][1], "drop unknown_message"},
                       {"the hole's FIRST", m[2][0], "0.0 message 2 packet 0"},
                       {"inside", m[2][1], "0.0 message 2 packet 1"},
                       {"onwards", m[5][0], "0.0 message 5 packet 0"},
                       {"M-2N, from its start", m[1][0], "stale 0.0"},
                       {"M-2N, from its middle", m[1][1], "stale 0.0"},
                       {"M-2N, its end", m[1][2], "stale 0.0"},
                       {"the hello", job.hello(0), "stale 0.0"},
                       {"M-2N+1", m[2][2], "0.0 message 2 packet 2"},
                       {"the hole at 4", m[4][2], "drop unknown_message"}});
}

TEST(Classifier, EveryPacketIsAsLongAsItsPlaceSays) {
  RingJob job({.world = 3});
  Bench bench({job.ring()});
  bench.admit(job);
  const auto message = job.message(0, 1, data());
  ASSERT_EQ(bench.classify(message[0]), "0.0 message 1 packet 0");
  const std::uint32_t psn = (job.spec().first_psn + 1) & 0xffffff;
  const auto at = [&](std::uint8_t opcode, std::uint32_t packet, std::size_t bytes) {
    FrameSpec spec = job.frame_of(0);
    spec.opcode = opcode;
    spec.psn = psn + packet;
    spec.payload = Bytes(bytes, 1);
    return build(spec);
  };
  expect_steps(bench,
               {{"a middle of less than an MTU", at(kMiddle, 1, 252), "drop length_mismatch"},
                {"of more", at(kMiddle, 1, 260), "drop length_mismatch"},
                {"a LAST in the middle", at(kLast, 1, 256), "drop length_mismatch"},
                {"a MIDDLE at the end", at(kMiddle, 2, 248), "drop length_mismatch"},
                {"a LAST too short", at(kLast, 2, 244), "drop length_mismatch"},
                {"a LAST too long", at(kLast, 2, 256), "drop length_mismatch"},
                {"a LAST of an odd length", at(kLast, 2, 247), "drop length_mismatch"},
                {"right", at(kMiddle, 1, 256), "0.0 message 1 packet 1"},
                {"right, with immediate", at(0x09, 2, 248), "0.0 message 1 packet 2"},
                {"right", at(kLast, 2, 248), "0.0 message 1 packet 2"}});
}

TEST(Classifier, NamesWhatIsMalformed) {
  RingJob job({.world = 3});
  RingJob six({.ring = 2, .world = 3, .network = test::Network::ipv6, .network_id = 6});
  Bench bench({job.ring(), six.ring()});
  bench.admit(job);
  FrameSpec fragment = job.frame_of(0);
  fragment.fragment = 0x2000;
  FrameSpec extension = six.frame_of(0);
  extension.next = 60;
  extension.ip_extensions = {17, 0, 1, 4, 0, 0, 0, 0};
  FrameSpec version = job.frame_of(0);
  version.transport_version = 2;
  Built cut = job.hello(0);
  cut.bytes.pop_back();
  expect_steps(bench, {{"fragment", build(fragment), "drop fragment"},
                       {"extension headers", build(extension), "drop ipv6_extension"},
                       {"transport version", build(version), "drop transport_version"},
                       {"length", cut, "drop length_mismatch"}});
}

// ---- What a member may not say. ----

struct Unacceptable {
  const char* description;
  std::function<void(InaSpec&, FrameSpec&, Bytes&)> change;
  const char* expected;
};

const std::vector<Unacceptable> kUnacceptable{
    {"nothing wrong", [](InaSpec&, FrameSpec&, Bytes&) {}, "0.0 message 1 packet 0"},
    {"RESULT", [](InaSpec& i, FrameSpec&, Bytes&) { i.flags = 1; }, "drop result_flag"},
    {"a reserved flag", [](InaSpec& i, FrameSpec&, Bytes&) { i.flags = 0x80; },
     "drop reserved_bits"},
    {"the flag beside RESULT", [](InaSpec& i, FrameSpec&, Bytes&) { i.flags = 0x02; },
     "drop reserved_bits"},
    {"collective 2", [](InaSpec& i, FrameSpec&, Bytes&) { i.collective = 2; },
     "drop unsupported_collective"},
    {"collective 255", [](InaSpec& i, FrameSpec&, Bytes&) { i.collective = 255; },
     "drop unsupported_collective"},
    {"operation 7", [](InaSpec& i, FrameSpec&, Bytes&) { i.operation = 7; },
     "drop unsupported_pair"},
    {"a user's operation", [](InaSpec& i, FrameSpec&, Bytes&) { i.operation = 128; },
     "drop unsupported_pair"},
    {"type 14", [](InaSpec& i, FrameSpec&, Bytes&) { i.data_type = 14; }, "drop unsupported_pair"},
    {"type 255", [](InaSpec& i, FrameSpec&, Bytes&) { i.data_type = 255; },
     "drop unsupported_pair"},
    {"xor of floats",
     [](InaSpec& i, FrameSpec&, Bytes&) {
       i.operation = 6;
       i.data_type = 0;
     },
     "drop unsupported_pair"},
    {"session", [](InaSpec& i, FrameSpec&, Bytes&) { i.session ^= 1; }, "drop wrong_session"},
    {"more than the ring's messages hold",
     [](InaSpec& i, FrameSpec& f, Bytes& d) {
       i.length = 1024 - 40 + 4;
       f.opcode = kFirst;
       d.resize(256 - 40);
     },
     "drop message_too_long"},
    {"2^32 - 1 bytes",
     [](InaSpec& i, FrameSpec& f, Bytes& d) {
       i.length = 0xffffffff;
       f.opcode = kFirst;
       d.resize(256 - 40);
     },
     "drop message_too_long"},
    {"as much as they hold",
     [](InaSpec& i, FrameSpec& f, Bytes& d) {
       i.length = 1024 - 40;
       f.opcode = kFirst;
       f.dma_length = 1024;
       d.resize(256 - 40);
     },
     "0.0 message 1 packet 0"},
    {"15 bytes of i32",
     [](InaSpec& i, FrameSpec&, Bytes& d) {
       i.length = 15;
       d.resize(15);
     },
     "drop partial_element"},
    {"20 bytes of f64",
     [](InaSpec& i, FrameSpec&, Bytes& d) {
       i.data_type = 4;
       i.length = 20;
       d.resize(20);
     },
     "drop partial_element"},
    {"15 bytes of u8",
     [](InaSpec& i, FrameSpec&, Bytes& d) {
       i.data_type = 6;
       i.length = 15;
       d.resize(15);
     },
     "0.0 message 1 packet 0"},
    {"no data",
     [](InaSpec& i, FrameSpec&, Bytes& d) {
       i.length = 0;
       d.clear();
     },
     "0.0 message 1 packet 0"},
    {"less data than it says", [](InaSpec&, FrameSpec&, Bytes& d) { d.resize(12); },
     "drop length_mismatch"},
    {"more data than it says", [](InaSpec&, FrameSpec&, Bytes& d) { d.resize(20); },
     "drop length_mismatch"},
    {"RETH says less", [](InaSpec&, FrameSpec& f, Bytes&) { f.dma_length = 52; },
     "drop length_mismatch"},
    {"RETH says more", [](InaSpec&, FrameSpec& f, Bytes&) { f.dma_length = 60; },
     "drop length_mismatch"},
    {"a FIRST of one packet", [](InaSpec&, FrameSpec& f, Bytes&) { f.opcode = kFirst; },
     "drop length_mismatch"},
    {"an ONLY of two packets",
     [](InaSpec& i, FrameSpec& f, Bytes& d) {
       i.length = 300;
       f.dma_length = 340;
       d.resize(256 - 40);
     },
     "drop length_mismatch"},
    {"a FIRST that is not full",
     [](InaSpec& i, FrameSpec& f, Bytes& d) {
       i.length = 300;
       f.opcode = kFirst;
       f.dma_length = 340;
       d.resize(252 - 40);
     },
     "drop length_mismatch"},
    {"a FIRST over the path MTU",
     [](InaSpec& i, FrameSpec& f, Bytes& d) {
       i.length = 300;
       f.opcode = kFirst;
       f.dma_length = 340;
       d.resize(260 - 40);
     },
     "drop length_mismatch"},
    {"a SEND has no RETH to disagree", [](InaSpec&, FrameSpec& f, Bytes&) { f.opcode = 0x04; },
     "0.0 message 1 packet 0"},
    {"a hello with an id",
     [](InaSpec& i, FrameSpec&, Bytes& d) {
       i.collective = 1;
       i.session = 0;
       i.length = 0;
       d.clear();
     },
     "drop bad_hello"},
    {"a hello with data",
     [](InaSpec& i, FrameSpec&, Bytes&) {
       i.collective = 1;
       i.session = 0;
       i.message = 0;
     },
     "drop bad_hello"},
    {"a hello with a session",
     [](InaSpec& i, FrameSpec&, Bytes& d) {
       i.collective = 1;
       i.message = 0;
       i.length = 0;
       d.clear();
     },
     "drop bad_hello"},
    {"an older epoch", [](InaSpec& i, FrameSpec&, Bytes&) { i.epoch = 4; }, "drop old_epoch"},
    {"a newer epoch without a hello", [](InaSpec& i, FrameSpec&, Bytes&) { i.epoch = 6; },
     "drop no_connection, flush 0"},
    {"version 0", [](InaSpec& i, FrameSpec&, Bytes&) { i.version = 0; }, "forward unknown_version"},
    {"version 2", [](InaSpec& i, FrameSpec&, Bytes&) { i.version = 2; }, "forward unknown_version"},
    {"no magic", [](InaSpec& i, FrameSpec&, Bytes&) { i.magic = 0x57454953; }, "forward"},
    {"ring", [](InaSpec& i, FrameSpec&, Bytes&) { i.ring = 3; }, "forward unknown_ring"},
    {"world above", [](InaSpec& i, FrameSpec&, Bytes&) { i.world = 4; }, "forward world_mismatch"},
    {"world below", [](InaSpec& i, FrameSpec&, Bytes&) { i.world = 2; }, "forward world_mismatch"},
    {"rank above", [](InaSpec& i, FrameSpec&, Bytes&) { i.rank = 3; }, "forward rank_out_of_range"},
    {"rank 65535", [](InaSpec& i, FrameSpec&, Bytes&) { i.rank = 0xffff; },
     "forward rank_out_of_range"},
    {"another's rank", [](InaSpec& i, FrameSpec&, Bytes&) { i.rank = 1; },
     "forward source_mismatch"},
};

TEST(Classifier, NamesWhatAMemberMayNotSay) {
  for (const Unacceptable& row : kUnacceptable) {
    RingJob job({.world = 3, .epoch = 5});
    Bench bench({job.ring()});
    bench.admit(job);
    InaSpec ina = job.ina_of(0, 1, 16);
    FrameSpec frame = job.frame_of(0);
    frame.opcode = kOnly;
    frame.psn = job.spec().first_psn + 1;
    Bytes payload(16, 7);
    row.change(ina, frame, payload);
    frame.payload = test::encode(ina);
    frame.payload.insert(frame.payload.end(), payload.begin(), payload.end());
    EXPECT_EQ(bench.classify(build(frame)), row.expected) << row.description;
  }
}

/// A header that is foreign never touches a ring, whatever else it says.
TEST(Classifier, ImpostorsChangeNothing) {
  RingJob job({.world = 3, .pins_ports = true});
  RingJob backwards({.ring = 2, .world = 3, .epoch = 1, .first_qp = 0x500});
  RingSpec reversed = backwards.ring();
  std::swap(reversed.members[0], reversed.members[2]); // so rank 0's host also sends to rank 2's
  Bench bench({job.ring(), reversed});
  bench.admit(job);
  const Built hello = poked(job.hello(0), test::kInaEpochAt, 9); // would flush, were it believed

  EXPECT_EQ(bench.classify(poked(hello, test::kInaRingAt, 77)), "forward unknown_ring");
  Built version = hello;
  version.bytes[version.payload + test::kInaVersionAt] = 3;
  seal(version);
  EXPECT_EQ(bench.classify(version), "forward unknown_version");
  EXPECT_EQ(bench.classify(poked(hello, test::kInaRankAt, 0x00000004)), "forward world_mismatch");
  EXPECT_EQ(bench.classify(poked(hello, test::kInaRankAt, 0x00030003)),
            "forward rank_out_of_range");
  EXPECT_EQ(bench.classify(poked(hello, test::kInaRankAt, 0x00020003)), "forward source_mismatch");

  FrameSpec to_another = job.frame_of(0);
  to_another.destination = job.ip_of(2);
  to_another.payload.assign(hello.bytes.begin() + static_cast<std::ptrdiff_t>(hello.payload),
                            hello.bytes.begin() +
                                static_cast<std::ptrdiff_t>(hello.payload + hello.payload_bytes));
  EXPECT_EQ(bench.classify(build(to_another)), "forward destination_mismatch");
  EXPECT_EQ(bench.classify(hello, 3), "forward port_mismatch");

  EXPECT_EQ(bench.classifier().epoch_of(0), 1u);
  EXPECT_EQ(bench.classifier().epoch_of(1), std::nullopt);
  EXPECT_EQ(bench.classifier().status_of(0, 0).newest_message, 0u);
  EXPECT_TRUE(bench.classifier().status_of(0, 0).connected);
  EXPECT_EQ(bench.classify(job.message(0, 1, data())[0]), "0.0 message 1 packet 0");
}

TEST(Classifier, AMembersPacketsComeFromItsPort) {
  RingJob job({.world = 3, .pins_ports = true});
  Bench bench({job.ring()});
  bench.admit(job);
  const auto message = job.message(1, 1, data());
  EXPECT_EQ(bench.classify(message[0], 0), "forward port_mismatch");
  EXPECT_EQ(bench.classify(message[0], 1), "0.1 message 1 packet 0");
  EXPECT_EQ(bench.classify(message[1], 0), "drop wrong_port");
  EXPECT_EQ(bench.classify(message[1], 1), "0.1 message 1 packet 1");
}

// ---- Epochs, resets, queue pairs that come and go. ----

TEST(Classifier, ANewerEpochFlushesAndAnOlderOneIsDropped) {
  RingJob job({.world = 3});
  Bench bench({job.ring()});
  bench.admit(job);
  RingJob old = job;
  RingJob restarted = job;
  restarted.restart(7);
  const auto before = old.message(0, 1, data());
  const auto after = restarted.message(0, 1, data());
  expect_steps(bench, {{"running", before[0], "0.0 message 1 packet 0"},
                       {"restarted: another rank's hello", restarted.hello(1),
                        "0.1 message 0 packet 0, flush 0"},
                       {"the old job's FIRST", before[0], "drop old_epoch"},
                       {"its middle", before[1], "drop dead_connection"},
                       {"its hello", old.hello(0), "drop old_epoch"},
                       {"its hello with a middling epoch",
                        poked(old.hello(0), test::kInaEpochAt, 6), "drop old_epoch"},
                       {"not admitted yet", after[0], "drop no_connection"},
                       {"hello", restarted.hello(0), "0.0 message 0 packet 0"},
                       {"running again", after[0], "0.0 message 1 packet 0"}});
  EXPECT_EQ(bench.classifier().epoch_of(0), 7u);
}

/// docs/protocol.md §4: epochs are plain numbers.
TEST(Classifier, NothingComesAfterTheLastEpoch) {
  RingJob job({.world = 2, .epoch = 0xfffffffe});
  Bench bench({job.ring()});
  bench.admit(job);
  RingJob last = job;
  last.restart(0xffffffff);
  EXPECT_EQ(bench.classify(last.hello(0)), "0.0 message 0 packet 0, flush 0");
  RingJob wrapped = job;
  wrapped.restart(0);
  EXPECT_EQ(bench.classify(wrapped.hello(0)), "drop old_epoch");
  bench.classifier().reset(0);
  EXPECT_EQ(bench.classify(wrapped.hello(0)), "drop old_epoch");
  EXPECT_EQ(bench.classify(last.hello(0)), "drop old_epoch");
}

TEST(Classifier, AnEpochMayRestartOnTheSameQp) {
  RingJob job({.world = 2});
  Bench bench({job.ring()});
  bench.admit(job);
  ASSERT_EQ(bench.classify(job.message(0, 1, data())[0]), "0.0 message 1 packet 0");
  const auto restarted = [&](const Built& frame) { return poked(frame, test::kInaEpochAt, 2); };
  expect_steps(
      bench, {{"hello", restarted(job.hello(0)), "0.0 message 0 packet 0, flush 0"},
              {"nothing of the old history", job.message(0, 1, data())[1], "drop unknown_message"},
              {"onwards", restarted(job.message(0, 1, data())[0]), "0.0 message 1 packet 0"}});
}

TEST(Classifier, AResetRingIsDeadUntilItsQpsArePlainOrItsEpochIsNew) {
  RingJob job({.world = 2});
  Bench bench({job.ring()});
  bench.admit(job);
  const auto message = job.message(0, 1, data());
  const auto other = job.message(1, 1, data());
  ASSERT_EQ(bench.classify(message[0]), "0.0 message 1 packet 0");
  bench.classifier().reset(0);
  EXPECT_FALSE(bench.classifier().status_of(0, 0).connected);
  RingJob restarted = job;
  restarted.restart(2);
  expect_steps(bench, {{"the middle of its messages", message[1], "drop dead_connection"},
                       {"their start", message[0], "drop old_epoch"},
                       {"a late hello", job.hello(0), "drop old_epoch"},
                       {"another rank's, too", other[1], "drop dead_connection"},
                       {"a plain message", plain(job, 0, kFirst), "forward"},
                       {"its middle", plain(job, 0, kMiddle), "forward"},
                       {"one QP's news is not another's", other[1], "drop dead_connection"},
                       {"a newer epoch", restarted.hello(0), "0.0 message 0 packet 0, flush 0"}});
  bench.now = kAging + 1;
  expect_steps(bench,
               {{"a dead one that aged is not known at all", other[1], "drop unclassified"}});
}

TEST(Classifier, AResetBeforeAnyEpochClosesNothing) {
  RingJob job({.world = 2});
  Bench bench({job.ring()});
  bench.classifier().reset(0);
  EXPECT_EQ(bench.classify(job.hello(0)), "0.0 message 0 packet 0, flush 0");
}

TEST(Classifier, ALaterHelloTakesTheRankOver) {
  RingJob job({.world = 3});
  Bench bench({job.ring()});
  bench.admit(job);
  const auto message = job.message(0, 1, data());
  ASSERT_EQ(bench.classify(message[0]), "0.0 message 1 packet 0");
  constexpr std::uint32_t qp = 0x999;
  expect_steps(bench, {{"hello on another QP", with_qp(job.hello(0), qp), "0.0 message 0 packet 0"},
                       {"the old QP's middle", message[1], "drop dead_connection"},
                       {"the old QP's FIRST", message[0], "drop no_connection"},
                       {"a late copy of the old QP's hello", job.hello(0), "drop dead_connection"},
                       {"the new QP", with_qp(message[0], qp), "0.0 message 1 packet 0"},
                       {"its middle", with_qp(message[1], qp), "0.0 message 1 packet 1"}});
  EXPECT_EQ(bench.classifier().status_of(0, 0).qp, qp);
}

TEST(Classifier, AQpThatGoesToAnotherRingLeavesItsOwn) {
  RingJob one({.ring = 1, .world = 2});
  RingJob two({.ring = 2, .world = 2}); // the same hosts and QPs
  Bench bench({one.ring(), two.ring()});
  bench.admit(one);
  ASSERT_EQ(bench.classify(two.hello(0)), "1.0 message 0 packet 0, flush 1");
  EXPECT_FALSE(bench.classifier().status_of(0, 0).connected);
  EXPECT_TRUE(bench.classifier().status_of(0, 1).connected);
  EXPECT_TRUE(bench.classifier().status_of(1, 0).connected);
  EXPECT_EQ(bench.classify(one.message(0, 1, data())[0]), "drop no_connection");
  EXPECT_EQ(bench.classify(two.message(0, 1, data())[0]), "1.0 message 1 packet 0");
  bench.classifier().reset(0); // must not touch the QP that is ring 2's now
  EXPECT_EQ(bench.classify(two.message(0, 1, data())[1]), "1.0 message 1 packet 1");
}

TEST(Classifier, TwoRingsOfTheSameHostsKeepApart) {
  RingJob one({.ring = 1, .world = 3, .first_qp = 0x100});
  RingJob two({.ring = 2, .world = 3, .epoch = 40, .first_qp = 0x200});
  Bench bench({one.ring(), two.ring()});
  bench.admit(one);
  bench.admit(two);
  EXPECT_EQ(bench.classify(one.message(0, 1, data())[0]), "0.0 message 1 packet 0");
  EXPECT_EQ(bench.classify(two.message(0, 1, data())[0]), "1.0 message 1 packet 0");
  EXPECT_EQ(bench.classify(one.message(0, 1, data())[2]), "0.0 message 1 packet 2");
  two.restart(41);
  EXPECT_EQ(bench.classify(two.hello(0)), "1.0 message 0 packet 0, flush 1");
  EXPECT_EQ(bench.classify(one.message(0, 1, data())[1]), "0.0 message 1 packet 1");
  EXPECT_EQ(bench.classifier().epoch_of(0), 1u);
}

/// However many QPs neighbours open, a ring's own are never given up for them.
TEST(Classifier, PlainQpsCannotCrowdOutARing) {
  RingJob job({.world = 2});
  Bench bench({job.ring()}, 3);
  bench.admit(job);
  for (std::uint32_t qp = 0x1000; qp < 0x1200; ++qp) {
    ++bench.now;
    ASSERT_EQ(bench.classify(with_qp(plain(job, qp % 2, kOnly), qp)), "forward");
  }
  EXPECT_LE(bench.classifier().connections().size(), 3u + 2 * 2);
  for (std::uint16_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(bench.classify(job.message(rank, 1, data())[0]),
              fmt::format("0.{} message 1 packet 0", rank));
  }
}

} // namespace
} // namespace weir::conn
