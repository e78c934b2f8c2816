// SPDX-License-Identifier: BSD-3-Clause

/// docs/protocol.md §3, "Connections": which queue pairs are remembered, and for how long.

#include "conn/connection_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace weir::conn::connection_table_test {
namespace {

// ---- Buckets. ----

using Numbers = BucketTable<std::uint64_t>;

constexpr HashKey kOneKey{.first = 0x0123456789abcdef, .second = 0xfedcba9876543210};
constexpr HashKey kAnotherKey{.first = 0x1122334455667788, .second = 0x99aabbccddeeff01};
constexpr std::size_t kPlaces = 16; // places of a key: two buckets of eight

std::optional<std::uint64_t> never_given_up(std::uint64_t /*entry*/) {
  return std::nullopt;
}

/// How many of the keys find room when no entry makes room for another.
std::size_t room_for(const std::vector<std::uint64_t>& keys, const HashKey& hash_key) {
  Numbers table(64, hash_key);
  std::size_t taken = 0;
  for (const std::uint64_t key : keys) {
    taken += table.insert(key, never_given_up) != nullptr ? 1 : 0;
  }
  return taken;
}

/// Keys whose places are all taken by others, with that hash key.
std::vector<std::uint64_t> keys_that_collide(const HashKey& hash_key, std::size_t count) {
  Numbers table(64, hash_key);
  std::uint64_t key = 0;
  while (table.insert(key, never_given_up) != nullptr) {
    ++key;
  }
  std::vector<std::uint64_t> refused;
  Numbers full = table; // a key that is rejected now stays rejected
  for (; refused.size() < count; ++key) {
    Numbers untouched = full;
    if (untouched.insert(key, never_given_up) == nullptr) {
      refused.push_back(key);
    }
  }
  return refused;
}

TEST(BucketTable, KeysThatCollideUnderOneSecretDoNotUnderAnother) {
  const std::vector<std::uint64_t> keys = keys_that_collide(kOneKey, 60);
  EXPECT_LT(room_for(keys, kOneKey), keys.size());
  EXPECT_EQ(room_for(keys, kAnotherKey), keys.size());
}

TEST(BucketTable, DrawsAnotherSecretEachTime) {
  const HashKey one = HashKey::random();
  const HashKey another = HashKey::random();
  EXPECT_NE(one.first, another.first);
  EXPECT_NE(one.second, another.second);
}

TEST(BucketTable, HasRoomForItsCapacity) {
  std::mt19937_64 random(7);
  for (const std::uint32_t capacity : {0u, 1u, 8u, 100u, 1024u, 5000u}) {
    Numbers table(capacity, kOneKey);
    for (std::uint32_t i = 0; i < capacity; ++i) {
      ASSERT_NE(table.insert(random() >> 1, never_given_up), nullptr) << i << " of " << capacity;
    }
    EXPECT_EQ(table.size(), capacity);
  }
}

/// With any content of the table, an insertion looks only at the key's own places, and replaces the
/// oldest entry there.
TEST(BucketTable, AnInsertionLooksAtABoundedPart) {
  std::mt19937_64 random(8);
  for (const std::uint32_t capacity : {8u, 1024u, 16384u}) {
    Numbers table(capacity, kOneKey);
    for (std::uint64_t key = 0; key < 4 * capacity; ++key) {
      std::size_t looks = 0;
      std::uint64_t greatest = 0;
      const std::uint32_t before = table.size();
      std::uint64_t* place = table.insert(key, [&](std::uint64_t entry) {
        ++looks;
        greatest = std::max(greatest, entry);
        return std::optional(entry);
      });
      ASSERT_NE(place, nullptr);
      ASSERT_LE(looks, kPlaces);
      ASSERT_EQ(table.size(), looks == kPlaces ? before : before + 1);
      *place = 1 + (random() >> 2);
    }
  }
}

TEST(BucketTable, TheEntryWithTheGreatestAgeMakesRoom) {
  Numbers table(1024, kOneKey);
  std::map<std::uint64_t, std::uint64_t> age_of_key;
  std::map<std::uint64_t, std::uint64_t> key_of_age;
  for (std::uint64_t key = 0; key < 8192; ++key) {
    std::uint64_t oldest = 0;
    std::size_t looks = 0;
    std::uint64_t* place = table.insert(key, [&](std::uint64_t age) {
      ++looks;
      oldest = std::max(oldest, age);
      return std::optional(age);
    });
    if (looks == kPlaces) {
      ASSERT_EQ(table.find(key_of_age[oldest]), nullptr) << key;
      age_of_key.erase(key_of_age[oldest]);
    }
    *place = 1 + key * 7919 % 16'381; // modulo a prime: all different
    age_of_key[key] = *place;
    key_of_age[*place] = key;
    ASSERT_EQ(table.size(), age_of_key.size());
  }
}

/// Entries stay in their places while others come and go.
TEST(BucketTable, EqualsAMapUnderRandomTraffic) {
  std::mt19937_64 random(9);
  Numbers table(64, kOneKey);
  std::map<std::uint64_t, std::uint64_t*> model;
  for (int round = 0; round < 100'000; ++round) {
    const std::uint64_t key = random() % 64;
    const auto known = model.find(key);
    ASSERT_EQ(table.find(key), known == model.end() ? nullptr : known->second);
    if (known != model.end()) {
      ASSERT_EQ(*known->second, key);
      ASSERT_TRUE(table.owns(*known->second));
    }
    if (known != model.end() && random() % 2 == 0) {
      table.erase(*known->second);
      model.erase(known);
    } else if (known == model.end()) {
      std::uint64_t* place = table.insert(key, never_given_up);
      if (place != nullptr) {
        ASSERT_EQ(*place, 0u) << "nothing of an older entry is left";
        *place = key;
        model[key] = place;
      }
    }
    ASSERT_EQ(table.size(), model.size());
  }
  std::size_t shown = 0;
  table.for_each({0, table.places()},
                 [&](std::uint64_t entry) { shown += model.contains(entry) ? 1 : 0; });
  EXPECT_EQ(shown, model.size());
  const std::uint64_t elsewhere = 0;
  EXPECT_FALSE(table.owns(elsewhere));
}

// ---- Connections. ----

constexpr std::uint64_t kAging = 100;
constexpr std::uint16_t kPort = 3; // of strangers

ConnectionTable::Settings settings(std::uint32_t ring, std::uint32_t plain) {
  return {.ring_entries = ring, .plain_entries = plain, .aging = kAging, .hash_key = {}};
}

Connection& add_plain(ConnectionTable& table, std::uint32_t qp, std::uint64_t now) {
  return table.put_stranger({1, qp}, kPort, ConnectionState::plain, now);
}

TEST(ConnectionTable, KeepsKeysApart) {
  ConnectionTable table(settings(8, 8));
  EXPECT_EQ(table.find_stranger({1, 5}, kPort, 0), nullptr);
  const Connection& first = add_plain(table, 5, 7);
  EXPECT_EQ(first.state, ConnectionState::plain);
  EXPECT_EQ(first.pair, 1);
  EXPECT_EQ(first.qp, 5u);
  EXPECT_EQ(first.last_seen, 7u);
  EXPECT_EQ(first.port, kPort);
  const Connection& other_pair = table.put_stranger({2, 5}, kPort, ConnectionState::foreign, 7);
  const Connection& other_qp = add_plain(table, 0xffffff, 7);
  const Connection& other_port = table.put_stranger({1, 5}, 63, ConnectionState::barred, 7);
  const Connection* ring = table.take_in({1, 5}, 7);
  EXPECT_EQ(table.find_stranger({1, 5}, kPort, 7), &first);
  EXPECT_EQ(table.find_stranger({2, 5}, kPort, 7), &other_pair);
  EXPECT_EQ(table.find_stranger({1, 0xffffff}, kPort, 7), &other_qp);
  EXPECT_EQ(table.find_stranger({1, 5}, 63, 7), &other_port);
  EXPECT_EQ(table.find_stranger({1, 5}, 0, 7), nullptr);
  EXPECT_EQ(table.find_ring({1, 5}, 7), ring);
  EXPECT_EQ(table.find_ring({2, 5}, 7), nullptr);
  EXPECT_EQ(table.size(), 5u);
}

/// A port's flood is its own affair (docs/security.md).
TEST(ConnectionTable, APortsStrangersDisplaceNoOthers) {
  ConnectionTable table(settings(4, 64));
  const Connection& known = table.put_stranger({1, 5}, kPort, ConnectionState::foreign, 0);
  for (std::uint32_t qp = 0; qp < 10'000; ++qp) {
    table.put_stranger({1, qp}, kPort + 1, ConnectionState::barred, 1 + qp % kAging);
  }
  EXPECT_EQ(table.find_stranger({1, 5}, kPort, kAging), &known);
  EXPECT_EQ(known.state, ConnectionState::foreign);
}

TEST(ConnectionTable, VisitsEveryPartOfItself) {
  ConnectionTable table(settings(8, 64));
  table.take_in({9, 9}, 0);
  for (std::uint16_t port = 0; port < 8; ++port) {
    table.put_stranger({port, port}, port, ConnectionState::plain, 0);
  }
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, table.places()}) {
    std::vector<std::uint16_t> pairs;
    for (std::size_t first = 0; first < table.places(); first += step) {
      table.for_each({first, step}, [&](const Connection& one) { pairs.push_back(one.pair); });
    }
    std::ranges::sort(pairs);
    EXPECT_EQ(pairs, (std::vector<std::uint16_t>{0, 1, 2, 3, 4, 5, 6, 7, 9})) << step;
  }
}

TEST(ConnectionTable, AStrangersStateIsReplaced) {
  ConnectionTable table(settings(8, 8));
  Connection& first = add_plain(table, 5, 0);
  first.count_packet(7);
  const Connection& again = table.put_stranger({1, 5}, kPort, ConnectionState::announced, 9);
  EXPECT_EQ(&again, &first);
  EXPECT_EQ(again.state, ConnectionState::announced);
  EXPECT_EQ(again.packets, 1u);
  EXPECT_EQ(again.last_seen, 9u);
  EXPECT_EQ(table.size(), 1u);
}

TEST(ConnectionTable, ForgetsAQueuePairByAllPorts) {
  ConnectionTable table(settings(8, 64));
  for (std::uint16_t port = 0; port < 64; ++port) {
    table.put_stranger({1, 5}, port, ConnectionState::plain, 0);
  }
  const Connection& other = add_plain(table, 6, 0);
  const Connection* ring = table.take_in({1, 5}, 0);
  table.forget_strangers({1, 5});
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(table.find_stranger({1, 6}, kPort, 0), &other);
  EXPECT_EQ(table.find_ring({1, 5}, 0), ring);
}

struct AgingRow {
  const char* description;
  ConnectionState state;
  std::uint16_t hellos;
  std::uint64_t aging;
  std::uint64_t lasts;                 // silence after which it is unchanged
  std::optional<ConnectionState> then; // result of find() one millisecond later
};

const std::vector<AgingRow> kAgingRows{
    {"dead", ConnectionState::dead, 0, 7000, 7000, std::nullopt},
    {"live", ConnectionState::live, 0, 100, 1'000'000, ConnectionState::live},
    {"live, a hello waits", ConnectionState::live, 1, 100, 1'000'000, ConnectionState::live},
    {"a hello waits", ConnectionState::unclassified, 1, 0, 1'000'000,
     ConnectionState::unclassified},
    {"dead, a hello waits", ConnectionState::dead, 1, 7000, 7000, ConnectionState::unclassified},
};

TEST(ConnectionTable, ForgetsSilentOnesButNoLiveOnes) {
  for (const AgingRow& row : kAgingRows) {
    SCOPED_TRACE(row.description);
    ConnectionTable table(settings(8, 8));
    Connection* connection = table.take_in({1, 9}, 50);
    ASSERT_NE(connection, nullptr);
    connection->state = row.state;
    connection->hellos = row.hellos;
    connection->aging = row.aging;
    ASSERT_EQ(table.find_ring({1, 9}, 50 + row.lasts), connection);
    EXPECT_EQ(connection->state, row.state);
    const Connection* later = table.find_ring({1, 9}, 51 + row.lasts);
    ASSERT_EQ(later != nullptr, row.then.has_value());
    if (later != nullptr) {
      EXPECT_EQ(later->state, *row.then);
      EXPECT_EQ(later->hellos, row.hellos);
    }
    EXPECT_EQ(table.size(), row.then ? 1u : 0u);
  }
}

TEST(ConnectionTable, ForgetsSilentStrangers) {
  for (const auto state : {ConnectionState::plain, ConnectionState::announced,
                           ConnectionState::foreign, ConnectionState::barred}) {
    ConnectionTable table(settings(8, 8));
    const Connection& stranger = table.put_stranger({1, 9}, kPort, state, 50);
    EXPECT_EQ(table.find_stranger({1, 9}, kPort, 50 + kAging), &stranger);
    EXPECT_EQ(table.find_stranger({1, 9}, kPort, 51 + kAging), nullptr);
    EXPECT_EQ(table.size(), 0u);
  }
}

TEST(ConnectionTable, NothingOfAForgottenOneIsLeft) {
  ConnectionTable table(settings(4, 4));
  Connection& first = add_plain(table, 1, 0);
  first.count_packet(0);
  EXPECT_EQ(table.find_stranger({1, 1}, kPort, kAging + 1), nullptr);
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(add_plain(table, 1, 200).packets, 0u);
  EXPECT_EQ(table.take_in({2, 2}, 200)->packets, 0u);
}

TEST(ConnectionTable, AStrangerSilentForLongestGivesWay) {
  ConnectionTable table(settings(4, 8)); // two buckets, sixteen places
  std::uint32_t qp = 0;
  for (; table.size() < kPlaces; ++qp) {
    add_plain(table, qp, 10);
  }
  Connection* oldest = table.find_stranger({1, qp - 1}, kPort, 10);
  ASSERT_NE(oldest, nullptr);
  oldest->last_seen = 1;
  const std::uint32_t oldest_qp = qp - 1;
  for (const std::uint32_t end = qp + 6; qp < end; ++qp) { // some look only at the other bucket
    add_plain(table, qp, 40);
  }
  EXPECT_EQ(table.find_stranger({1, oldest_qp}, kPort, 40), nullptr);
  EXPECT_EQ(table.size(), kPlaces);
}

TEST(ConnectionTable, StrangersTakeNoPlaceOfRings) {
  ConnectionTable table(settings(64, 8));
  for (std::uint32_t qp = 0; qp < 1000; ++qp) {
    add_plain(table, qp, qp);
  }
  std::vector<Connection*> rings;
  for (std::uint32_t qp = 5000; qp < 5064; ++qp) {
    rings.push_back(table.take_in({1, qp}, 1000));
    ASSERT_NE(rings.back(), nullptr) << qp;
    rings.back()->state = ConnectionState::live;
  }
  for (std::uint32_t qp = 0; qp < 1000; ++qp) {
    add_plain(table, qp, 2000 + qp);
  }
  for (std::uint32_t qp = 5000; qp < 5064; ++qp) {
    EXPECT_EQ(table.find_ring({1, qp}, 1'000'000), rings[qp - 5000]) << qp;
  }
}

TEST(ConnectionTable, TakingInFindsWhatIsIn) {
  ConnectionTable table(settings(8, 8));
  Connection* known = table.take_in({1, 5}, 30);
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(known->state, ConnectionState::unclassified);
  known->hellos = 1;
  EXPECT_EQ(table.take_in({1, 5}, 40), known);
}

/// A table with rings' connections in one state and no free place. The first one was silent for
/// longest.
ConnectionTable full_of(ConnectionState state, std::uint16_t hellos) {
  ConnectionTable table(settings(8, 8)); // two buckets, sixteen places
  for (std::uint32_t qp = 0; table.size() < kPlaces; ++qp) {
    Connection* connection = table.take_in({1, qp}, 10);
    if (connection != nullptr) { // else its own places are taken
      connection->hellos = 1;
      connection->last_seen = qp == 0 ? 1 : 10;
    }
  }
  for (std::uint32_t qp = 0; qp < 1000; ++qp) {
    if (Connection* connection = table.find_ring({1, qp}, 10)) {
      connection->state = state;
      connection->hellos = hellos;
      connection->aging = 1'000'000;
    }
  }
  return table;
}

TEST(ConnectionTable, ADeadConnectionSilentForLongestGivesWayToAHello) {
  ConnectionTable table = full_of(ConnectionState::dead, 0);
  for (std::uint32_t qp = 5000; qp < 5006; ++qp) { // some look only at the other bucket
    ASSERT_NE(table.take_in({1, qp}, 50), nullptr);
  }
  EXPECT_EQ(table.find_ring({1, 0}, 50), nullptr);
  EXPECT_EQ(table.size(), kPlaces);
}

TEST(ConnectionTable, NeitherLiveNorWaitedOnGivesWay) {
  ConnectionTable live = full_of(ConnectionState::live, 0);
  ConnectionTable waited_on = full_of(ConnectionState::dead, 1);
  for (std::uint32_t qp = 5000; qp < 5006; ++qp) {
    EXPECT_EQ(live.take_in({1, qp}, 1'000'000), nullptr);
    EXPECT_EQ(waited_on.take_in({1, qp}, 50), nullptr);
  }
  EXPECT_NE(live.take_in({1, 0}, 1'000'000), nullptr) << "those that are in are found";
  EXPECT_EQ(waited_on.size(), kPlaces);
}

struct UnusedRow {
  const char* description;
  ConnectionState state;
  std::uint16_t hellos;
  bool is_used;
};

const std::vector<UnusedRow> kUnusedRows{
    {"nothing known, none waits any more", ConnectionState::unclassified, 0, false},
    {"another waits", ConnectionState::unclassified, 1, true},
    {"live", ConnectionState::live, 0, true},
    {"dead", ConnectionState::dead, 0, true},
};

TEST(ConnectionTable, ForgetsConnectionsThatNobodyUses) {
  for (const UnusedRow& row : kUnusedRows) {
    SCOPED_TRACE(row.description);
    ConnectionTable table(settings(8, 8));
    Connection* connection = table.take_in({1, 5}, 0);
    connection->state = row.state;
    connection->hellos = row.hellos;
    connection->aging = kAging;
    table.forget_unused(*connection);
    EXPECT_EQ(table.find_ring({1, 5}, 20), row.is_used ? connection : nullptr);
    EXPECT_EQ(table.size(), row.is_used ? 1u : 0u);
  }
}

TEST(ConnectionTable, ShowsAll) {
  ConnectionTable table(settings(8, 8));
  add_plain(table, 5, 0);
  table.take_in({2, 6}, 0);
  std::map<std::pair<std::uint16_t, std::uint32_t>, int> shown;
  for (std::size_t first = 0; first < table.places(); first += 3) {
    table.for_each({first, 3}, [&](const Connection& each) { ++shown[{each.pair, each.qp}]; });
  }
  EXPECT_EQ(shown,
            (std::map<std::pair<std::uint16_t, std::uint32_t>, int>{{{1, 5}, 1}, {{2, 6}, 1}}));
}

} // namespace
} // namespace weir::conn::connection_table_test
