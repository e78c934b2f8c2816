// SPDX-License-Identifier: BSD-3-Clause

/// The learning bridge: IEEE 802.1D §7, and docs/protocol.md I2.

#include "l2/bridge.hpp"
#include "l2/mac_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace weir::l2::l2_test {
namespace {

using Frame = std::vector<std::uint8_t>;
using wire::MacAddress;

MacAddress station(std::uint32_t number) {
  return from_number(std::uint64_t{0x02} << 40 | number);
}

Frame frame(const MacAddress& destination, const MacAddress& source) {
  Frame bytes(60);
  std::copy(destination.bytes.begin(), destination.bytes.end(), bytes.begin());
  std::copy(source.bytes.begin(), source.bytes.end(), bytes.begin() + 6);
  return bytes;
}

// ---- The table. ----

TEST(MacTable, NumbersAreAddresses) {
  const MacAddress mac{{0x01, 0x23, 0x45, 0x67, 0x89, 0xab}};
  EXPECT_EQ(to_number(mac), 0x0123456789abu);
  EXPECT_EQ(from_number(0x0123456789ab), mac);
}

TEST(MacTable, LearnsMovesAndForgets) {
  struct Step {
    const char* description;
    std::uint32_t heard; // station learnt at this step; 0: none
    std::uint16_t port;
    std::uint64_t now;
    std::uint32_t asked;
    std::optional<std::uint16_t> answer;
  };

  const std::vector<Step> steps{
      {"nothing is known", 0, 0, 0, 1, std::nullopt},
      {"learnt", 1, 0, 0, 1, 0},
      {"another is not", 0, 0, 1, 2, std::nullopt},
      {"known for the aging time", 0, 0, 100, 1, 0},
      {"and no longer", 0, 0, 101, 1, std::nullopt},
      {"learnt again", 1, 5, 200, 1, 5},
      {"moved", 1, 63, 210, 1, 63},
      {"refreshed by the move", 0, 0, 310, 1, 63},
      {"heard again, same port", 1, 63, 310, 1, 63},
      {"refreshed", 0, 0, 410, 1, 63},
      {"forgotten", 0, 0, 411, 1, std::nullopt},
      {"a clock that lags another lcore's", 3, 7, 500, 3, 7},
      {"is no reason to forget", 0, 0, 490, 3, 7},
      {"the address of zeros is one, too", 0xffffffff, 9, 500, 0xffffffff, 9},
  };
  MacTable table(64, 100);
  const auto mac = [](std::uint32_t number) {
    return number == 0xffffffff ? MacAddress{} : station(number);
  };
  EXPECT_EQ(table.port_of(MacAddress{}, 0), std::nullopt);
  for (const Step& step : steps) {
    if (step.heard != 0) {
      table.learn(mac(step.heard), step.port, step.now);
    }
    EXPECT_EQ(table.port_of(mac(step.asked), step.now), step.answer) << step.description;
  }
}

/// A table of 8 entries is one bucket of 8.
TEST(MacTable, AFullBucketGivesUpItsLongestSilentStation) {
  MacTable table(8, 1000);
  for (std::uint32_t i = 1; i <= 8; ++i) {
    table.learn(station(i), static_cast<std::uint16_t>(i), 10 * i);
  }
  table.learn(station(1), 1, 90); // now 2 was silent for longest
  table.learn(station(9), 9, 100);
  for (std::uint32_t i = 1; i <= 9; ++i) {
    const auto expected = i == 2 ? std::nullopt : std::optional(static_cast<std::uint16_t>(i));
    EXPECT_EQ(table.port_of(station(i), 100), expected) << i;
  }
}

/// However many stations a port invents, and however often it speaks.
TEST(MacTable, APortThatFloodsDisplacesItsOwnStations) {
  constexpr std::uint16_t flooding = 5;
  MacTable table(8, 1000);
  table.learn(station(1), 1, 0);
  table.learn(station(2), 2, 0);
  for (std::uint32_t i = 100; i < 1000; ++i) {
    table.learn(station(i), flooding, i / 2);
  }
  EXPECT_EQ(table.port_of(station(1), 500), 1);
  EXPECT_EQ(table.port_of(station(2), 500), 2);
  EXPECT_EQ(table.port_of(station(999), 500), flooding);
  table.learn(station(3), 2, 500);
  EXPECT_EQ(table.port_of(station(3), 500), 2) << "who has fewer gets a place";
  EXPECT_EQ(table.port_of(station(2), 500), 2);
}

TEST(MacTable, APortKeepsWhatAnotherWithFewerDoesNotNeed) {
  MacTable table(8, 1000);
  for (std::uint32_t i = 1; i <= 8; ++i) {
    table.learn(station(i), 1, i);
  }
  for (std::uint32_t i = 100; i < 200; ++i) {
    table.learn(station(i), 5, i);
  }
  unsigned kept = 0;
  for (std::uint32_t i = 1; i <= 8; ++i) {
    kept += table.port_of(station(i), 200) ? 1 : 0;
  }
  EXPECT_EQ(kept, 4u) << "half of the bucket";
}

TEST(MacTable, PinnedStationsCountForTheirPort) {
  MacTable table(8, 1000);
  for (std::uint32_t i = 1; i <= 4; ++i) {
    ASSERT_TRUE(table.pin(station(i), 1, 0));
    table.learn(station(10 + i), 2, 0);
  }
  table.learn(station(5), 1, 1);
  EXPECT_EQ(table.port_of(station(5), 1), std::nullopt) << "it would be port 1's fifth";
  EXPECT_FALSE(table.pin(station(5), 1, 1));
  for (std::uint32_t i = 1; i <= 4; ++i) {
    EXPECT_EQ(table.port_of(station(10 + i), 1), 2) << i;
  }
  table.learn(station(20), 3, 1);
  EXPECT_EQ(table.port_of(station(20), 1), 3) << "who has fewer gets a place";
}

/// Who does not know the secret cannot choose stations of one bucket of 128.
TEST(MacTable, StationsThatCollideUnderOneSecretDoNotUnderAnother) {
  constexpr wire::HashKey one{0x0123456789abcdef, 0xfedcba9876543210};
  constexpr wire::HashKey another{0x1122334455667788, 0x99aabbccddeeff01};
  std::vector<std::uint32_t> stations;
  for (std::uint32_t i = 0; stations.size() < 60; ++i) {
    const std::uint64_t hash =
        wire::folded_product(to_number(station(i)) ^ one.first, one.second | 1);
    if (hash % 128 == 0) {
      stations.push_back(i);
    }
  }
  const auto kept = [&](const wire::HashKey& key) {
    MacTable table(1024, 1000, key);
    for (const std::uint32_t i : stations) {
      table.learn(station(i), 1, 0);
    }
    return std::ranges::count_if(
        stations, [&](std::uint32_t i) { return table.port_of(station(i), 0).has_value(); });
  };
  EXPECT_EQ(kept(one), 8);
  EXPECT_GT(kept(another), 55);
}

TEST(MacTable, AnAgedStationIsGivenUpFirst) {
  MacTable table(8, 100);
  for (std::uint32_t i = 1; i <= 8; ++i) {
    table.learn(station(i), static_cast<std::uint16_t>(i), i == 5 ? 0 : 150);
  }
  table.learn(station(9), 9, 160);
  EXPECT_EQ(table.port_of(station(5), 160), std::nullopt);
  for (const std::uint32_t i : {1u, 2u, 3u, 4u, 6u, 7u, 8u, 9u}) {
    EXPECT_EQ(table.port_of(station(i), 160), i) << i;
  }
}

TEST(MacTable, AnotherAgingTimeHoldsAtOnce) {
  MacTable table(1024, 100);
  table.learn(station(1), 3, 0);
  EXPECT_EQ(table.port_of(station(1), 50), 3);
  table.set_aging(49);
  EXPECT_EQ(table.port_of(station(1), 50), std::nullopt);
  table.set_aging(200);
  EXPECT_EQ(table.port_of(station(1), 200), 3);
}

TEST(MacTable, ShowsEveryFreshStation) {
  MacTable table(1024, 100);
  std::map<std::uint64_t, std::pair<std::uint16_t, std::uint64_t>> expected;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const std::uint64_t heard = i % 2 == 0 ? 150 : 20;
    table.learn(station(i), static_cast<std::uint16_t>(i % 64), heard);
    if (i % 2 == 0) {
      expected[to_number(station(i))] = {static_cast<std::uint16_t>(i % 64), 200 - heard};
    }
  }
  std::map<std::uint64_t, std::pair<std::uint16_t, std::uint64_t>> shown;
  table.for_each(200, [&](const MacAddress& mac, std::uint16_t port, std::uint64_t silent,
                          std::uint64_t pins) {
    EXPECT_TRUE(shown.emplace(to_number(mac), std::pair(port, silent)).second);
    EXPECT_EQ(pins, 0u);
  });
  EXPECT_EQ(shown, expected);
}

TEST(MacTable, EqualsAMapWhileThereIsRoom) {
  std::mt19937 random(21);
  MacTable table(1 << 14, 50); // 60 stations in 2048 buckets of 8: none is full
  std::map<std::uint32_t, std::pair<std::uint16_t, std::uint64_t>> model;
  std::uint64_t now = 0;
  for (int round = 0; round < 50000; ++round) {
    now += random() % 3;
    const std::uint32_t number = random() % 60;
    if (random() % 2 == 0) {
      const auto port = static_cast<std::uint16_t>(random() % 64);
      table.learn(station(number), port, now);
      model[number] = {port, now};
    }
    const auto known = model.find(number);
    const bool is_fresh = known != model.end() && now - known->second.second <= 50;
    ASSERT_EQ(table.port_of(station(number), now),
              is_fresh ? std::optional(known->second.first) : std::nullopt);
  }
}

TEST(MacTable, RoundsItsSizeUp) {
  const std::size_t bucket = MacTable::bytes_for(1);
  EXPECT_EQ(MacTable::bytes_for(0), bucket);
  EXPECT_EQ(MacTable::bytes_for(8), bucket);
  EXPECT_EQ(MacTable::bytes_for(9), 2 * bucket);
  EXPECT_EQ(MacTable::bytes_for(17), 4 * bucket);
  MacTable smallest(0, 10);
  smallest.learn(station(1), 3, 0);
  EXPECT_EQ(smallest.port_of(station(1), 0), 3);
}

/// For ThreadSanitizer, and to check that a reader sees all of a station or nothing. Two lcores
/// learn while both read. A station is learnt only on ports that its number allows.
TEST(MacTable, TwoLcoresLearnAndLookUpAtOnce) {
  constexpr int kRounds = 20000;
  MacTable table(16, 1000); // two buckets, used by both
  std::atomic<int> wrong{0};
  const auto lcore = [&](std::uint32_t seed) {
    std::mt19937 random(seed);
    for (int round = 0; round < kRounds; ++round) {
      const std::uint32_t number = random() % 40;
      const auto port = static_cast<std::uint16_t>(number % 8 * 8 + random() % 8);
      table.learn(station(number), port, static_cast<std::uint64_t>(round));
      const std::uint32_t other = random() % 40;
      const auto answer = table.port_of(station(other), static_cast<std::uint64_t>(round));
      wrong += answer && *answer / 8 != other % 8 ? 1 : 0;
    }
  };
  std::thread first(lcore, 1);
  std::thread second(lcore, 2);
  first.join();
  second.join();
  EXPECT_EQ(wrong.load(), 0);
}

// ---- Pins. ----

std::uint64_t pins_of(const MacTable& table, const MacAddress& station) {
  std::uint64_t found = 0;
  table.for_each(0, [&](const MacAddress& mac, std::uint16_t, std::uint64_t, std::uint64_t pins) {
    found += mac == station ? pins : 0;
  });
  return found;
}

TEST(MacTable, APinnedStationStaysWhereItIs) {
  MacTable table(64, 100);
  table.learn(station(1), 3, 0);
  ASSERT_TRUE(table.pin(station(1), 3, 0));
  table.learn(station(1), 5, 10);
  EXPECT_EQ(table.port_of(station(1), 10), 3) << "not learnt elsewhere";
  EXPECT_EQ(table.port_of(station(1), 1'000'000), 3) << "does not age";
  table.unpin(station(1), 3, 1'000'000);
  EXPECT_EQ(table.port_of(station(1), 1'000'100), 3) << "ages from then on";
  EXPECT_EQ(table.port_of(station(1), 1'000'101), std::nullopt);
  table.learn(station(1), 5, 1'000'200);
  EXPECT_EQ(table.port_of(station(1), 1'000'200), 5);
}

TEST(MacTable, APinTakesNobodyElsesStation) {
  MacTable table(64, 100);
  EXPECT_TRUE(table.pin(station(1), 5, 0)) << "it was never heard";
  table.learn(station(2), 3, 0);
  EXPECT_FALSE(table.pin(station(2), 5, 100)) << "it is at another port";
  EXPECT_EQ(table.port_of(station(2), 100), 3);
  EXPECT_TRUE(table.pin(station(2), 5, 101)) << "it was silent for the aging time";
  EXPECT_EQ(table.port_of(station(2), 101), 5);
}

/// Whoever wants a station need only send one frame with its address before the pin. In seconds,
/// because contests are kept in seconds.
TEST(MacTable, APinTakesNoStationThatWasHeardAtTwoPorts) {
  constexpr std::uint64_t aging = 300'000;
  constexpr std::uint64_t start = 1'234'567;
  MacTable table(64, aging);
  table.learn(station(1), 3, start);
  table.learn(station(1), 5, start + 1);
  EXPECT_EQ(table.port_of(station(1), start + 1), 5) << "a bridge believes the last frame";
  EXPECT_FALSE(table.pin(station(1), 5, start + 1));
  EXPECT_FALSE(table.pin(station(1), 3, start + 1));
  table.learn(station(1), 3, start + 2);
  EXPECT_FALSE(table.pin(station(1), 3, start + 2)) << "nor does its owner have it alone";
  for (std::uint64_t now = start + 2; now <= start + aging + 2; now += 10'000) {
    table.learn(station(1), 3, now);
    EXPECT_FALSE(table.pin(station(1), 3, now)) << now;
  }
  EXPECT_TRUE(table.pin(station(1), 3, start + aging + 2'000))
      << "it has it alone for the aging time";
}

TEST(MacTable, AStationThatIsHeardElsewhereWhilePinnedIsNotPinnedAgain) {
  constexpr std::uint64_t aging = 300'000;
  MacTable table(64, aging);
  ASSERT_TRUE(table.pin(station(1), 5, 0)) << "nobody's yet";
  table.learn(station(1), 3, 1000); // its owner comes
  EXPECT_EQ(table.port_of(station(1), 1000), 5);
  EXPECT_FALSE(table.pin(station(1), 5, 1000)) << "nor for another ring";
  table.unpin(station(1), 5, 1000);
  EXPECT_FALSE(table.pin(station(1), 5, 1000));
  table.learn(station(1), 3, 1001);
  EXPECT_EQ(table.port_of(station(1), 1001), 3);
}

TEST(MacTable, APinIsMovedWhereverTheStationIsHeard) {
  MacTable table(64, 100);
  ASSERT_TRUE(table.pin(station(1), 3, 0));
  table.learn(station(1), 5, 1);
  EXPECT_TRUE(table.move_pin(station(1), 3, 4, 2));
  EXPECT_EQ(table.port_of(station(1), 1'000'000), 4);
  EXPECT_EQ(pins_of(table, station(1)), 1u);
  EXPECT_FALSE(table.move_pin(station(1), 3, 6, 2)) << "it is not pinned there";
  EXPECT_EQ(table.port_of(station(1), 1'000'000), 4);
}

TEST(MacTable, APinThatOthersShareIsNotMoved) {
  MacTable table(64, 100);
  ASSERT_TRUE(table.pin(station(1), 3, 0));
  ASSERT_TRUE(table.pin(station(1), 3, 0));
  EXPECT_FALSE(table.move_pin(station(1), 3, 4, 1));
  EXPECT_EQ(table.port_of(station(1), 1), 3);
  EXPECT_EQ(pins_of(table, station(1)), 1u);
}

TEST(MacTable, EveryPinHasItsUnpin) {
  MacTable table(64, 100);
  ASSERT_TRUE(table.pin(station(1), 3, 0));
  ASSERT_TRUE(table.pin(station(1), 3, 0));
  EXPECT_EQ(pins_of(table, station(1)), 2u);
  EXPECT_FALSE(table.pin(station(1), 4, 0)) << "one port at a time";
  table.unpin(station(1), 4, 0);
  EXPECT_EQ(pins_of(table, station(1)), 2u) << "not the port it is pinned to";
  table.unpin(station(1), 3, 0);
  table.learn(station(1), 4, 1);
  EXPECT_EQ(table.port_of(station(1), 1), 3);
  table.unpin(station(1), 3, 1);
  table.unpin(station(1), 3, 1); // one too many
  table.learn(station(1), 4, 2);
  EXPECT_EQ(table.port_of(station(1), 2), 4);
  EXPECT_TRUE(table.pin(station(1), 5, 1000));
}

TEST(MacTable, CountsSoManyPins) {
  MacTable table(64, 100);
  std::uint64_t pins = 0;
  while (pins < 10'000 && table.pin(station(1), 63, 0)) {
    ++pins;
  }
  EXPECT_EQ(pins_of(table, station(1)), pins);
  EXPECT_EQ(table.port_of(station(1), 0), 63) << "the count does not run into the port";
  EXPECT_EQ(pins, 511u);
}

/// A table of 8 entries is one bucket of 8.
TEST(MacTable, APinnedStationMakesNoRoom) {
  MacTable table(8, 100);
  for (std::uint32_t i = 1; i <= 7; ++i) {
    ASSERT_TRUE(table.pin(station(i), static_cast<std::uint16_t>(i), 0));
  }
  for (std::uint32_t i = 100; i < 200; ++i) { // they share the last place
    table.learn(station(i), 9, i);
    EXPECT_EQ(table.port_of(station(i), i), 9);
  }
  EXPECT_TRUE(table.pin(station(8), 8, 300)) << "takes what was only learnt";
  EXPECT_FALSE(table.pin(station(9), 9, 300)) << "no room for a pin";
  table.learn(station(10), 9, 300);
  EXPECT_EQ(table.port_of(station(10), 300), std::nullopt);
  for (std::uint32_t i = 1; i <= 8; ++i) {
    EXPECT_EQ(table.port_of(station(i), 300), i) << i;
  }
}

TEST(MacTable, ForgetsAPortButNotItsPinnedStations) {
  MacTable table(64, 100);
  for (std::uint32_t i = 1; i <= 20; ++i) {
    table.learn(station(i), static_cast<std::uint16_t>(i % 2), 0);
  }
  ASSERT_TRUE(table.pin(station(1), 1, 0));
  table.forget_port(1);
  for (std::uint32_t i = 2; i <= 20; ++i) {
    EXPECT_EQ(table.port_of(station(i), 0),
              i % 2 == 0 ? std::optional<std::uint16_t>(0) : std::nullopt)
        << i;
  }
  EXPECT_EQ(table.port_of(station(1), 0), 1);
}

/// One lcore pins and unpins stations at their own ports. The other sends with their addresses from
/// other ports. Each pin comes so late that what was heard before is forgotten.
TEST(MacTable, NobodyStealsAStationThatIsPinnedMeanwhile) {
  constexpr int kRounds = 20000;
  constexpr std::uint64_t kLate = 1'000'000'000'000;
  MacTable table(16, 1'000'000); // two buckets, used by both
  std::atomic<bool> is_over{false};
  std::thread thief([&] {
    std::mt19937 random(3);
    for (std::uint64_t now = 0; !is_over.load(); ++now) {
      table.learn(station(random() % 10), 60, now);
    }
  });
  std::mt19937 random(4);
  int wrong = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint32_t number = random() % 10;
    const auto port = static_cast<std::uint16_t>(number);
    if (!table.pin(station(number), port, kLate)) {
      ++wrong;
      continue;
    }
    for (int look = 0; look < 4; ++look) {
      wrong += table.port_of(station(number), 0) != port ? 1 : 0;
    }
    table.unpin(station(number), port, 0);
  }
  is_over = true;
  thief.join();
  EXPECT_EQ(wrong, 0);
}

// ---- The bridge. ----

constexpr std::uint64_t kAging = 1000;

/// Four ports; stations 1, 2, 3 have sent frames from ports 1, 2, 3.
TEST(MacTable, ATiedStationNeitherAgesNorMoves) {
  MacTable table(16, 300);
  ASSERT_TRUE(table.tie(station(1), 0, 0));
  EXPECT_TRUE(table.is_tied(station(1)));
  table.learn(station(1), 5, 10);
  table.forget_port(0);
  EXPECT_EQ(table.port_of(station(1), 1'000'000), 0);
  table.learn(station(1), 0, 1'000'010);
  table.untie(station(1), 1'000'020);
  EXPECT_FALSE(table.is_tied(station(1)));
  EXPECT_EQ(table.port_of(station(1), 1'000'320), 0) << "as if it was heard then";
  EXPECT_EQ(table.port_of(station(1), 1'000'321), std::nullopt);
  table.untie(station(1), 1'000'330); // one too many
  table.learn(station(1), 5, 1'000'340);
  EXPECT_EQ(table.port_of(station(1), 1'000'340), 5);
}

TEST(MacTable, ATieWinsOverWhatWasLearntAndPinned) {
  MacTable table(16, 300);
  table.learn(station(1), 3, 0);
  ASSERT_TRUE(table.tie(station(1), 63, 1));
  EXPECT_EQ(table.port_of(station(1), 1), 63);
  ASSERT_TRUE(table.pin(station(2), 3, 0));
  ASSERT_TRUE(table.tie(station(2), 4, 1));
  EXPECT_EQ(table.port_of(station(2), 1), 4);
  table.unpin(station(2), 3, 2);
  EXPECT_EQ(table.port_of(station(2), 1'000'000), 4);
  ASSERT_TRUE(table.tie(station(2), 5, 3)) << "to another port";
  EXPECT_EQ(table.port_of(station(2), 3), 5);
}

TEST(MacTable, ATiedStationIsPinnedWhereItIs) {
  MacTable table(16, 300);
  ASSERT_TRUE(table.tie(station(1), 3, 0));
  EXPECT_FALSE(table.pin(station(1), 4, 0));
  ASSERT_TRUE(table.pin(station(1), 3, 0));
  EXPECT_EQ(pins_of(table, station(1)), 1u);
  EXPECT_TRUE(table.is_tied(station(1)));
  EXPECT_FALSE(table.move_pin(station(1), 3, 4, 1)) << "the configuration wins";
  EXPECT_EQ(table.port_of(station(1), 1), 3);
  ASSERT_TRUE(table.pin(station(1), 3, 1));
  table.untie(station(1), 2);
  EXPECT_EQ(table.port_of(station(1), 1'000'000), 3) << "still pinned";
  table.unpin(station(1), 3, 1'000'000);
  EXPECT_EQ(table.port_of(station(1), 1'000'301), std::nullopt);
}

TEST(MacTable, EightTiesCloseABucket) {
  MacTable table(8, 300);
  for (std::uint32_t i = 0; i < 8; ++i) {
    table.learn(station(100 + i), 1, 0);
    ASSERT_TRUE(table.tie(station(i), 7, 0)) << i;
  }
  EXPECT_FALSE(table.tie(station(8), 8, 0));
  EXPECT_FALSE(table.pin(station(8), 8, 0));
  table.learn(station(8), 8, 0);
  EXPECT_EQ(table.port_of(station(8), 0), std::nullopt);
}

TEST(MacTable, TellsImpostorsOfTiedStations) {
  MacTable table(16, 300);
  table.learn(station(1), 3, 0);
  ASSERT_TRUE(table.pin(station(2), 3, 0));
  EXPECT_FALSE(table.is_tied_elsewhere(station(1), 5));
  ASSERT_TRUE(table.tie(station(4), 3, 0));
  EXPECT_FALSE(table.is_tied_elsewhere(station(1), 5)) << "it moves";
  EXPECT_FALSE(table.is_tied_elsewhere(station(2), 5)) << "rings have rules of their own";
  EXPECT_FALSE(table.is_tied_elsewhere(station(4), 3));
  EXPECT_TRUE(table.is_tied_elsewhere(station(4), 5));
  table.untie(station(4), 0);
  EXPECT_FALSE(table.is_tied_elsewhere(station(4), 5));
}

class FourPorts : public testing::Test {
 protected:
  FourPorts() {
    for (std::uint16_t port = 1; port < 4; ++port) {
      bridge_.learn(frame(station(99), station(port)), port, 0);
    }
  }

  MacTable stations_{1024, kAging};
  Bridge bridge_{stations_, 4};
};

TEST_F(FourPorts, SendsWhereItShould) {
  struct Row {
    const char* description;
    MacAddress destination;
    std::uint16_t ingress;
    std::uint64_t now;
    PortSet ports;
    DropReason drop; // when ports is 0
  };

  const auto group = [](std::uint64_t number) { return from_number(number); };
  const DropReason none{};
  const std::vector<Row> rows{
      {"known", station(2), 0, 1, 0b0100, none},
      {"known, from elsewhere", station(2), 3, 1, 0b0100, none},
      {"behind the ingress port", station(2), 2, 1, 0, DropReason::same_port},
      {"unknown", station(50), 0, 1, 0b1110, none},
      {"unknown, from the last port", station(50), 3, 1, 0b0111, none},
      {"aged", station(2), 0, kAging + 1, 0b1110, none},
      {"aged, from its own port", station(2), 2, kAging + 1, 0b1011, none},
      {"broadcast", group(0xffffffffffff), 1, 1, 0b1101, none},
      {"multicast", group(0x01005e000001), 2, 1, 0b1011, none},
      {"spanning tree", group(0x0180c2000000), 0, 1, 0, DropReason::link_local},
      {"pause", group(0x0180c2000001), 0, 1, 0, DropReason::link_local},
      {"LLDP", group(0x0180c200000e), 0, 1, 0, DropReason::link_local},
      {"the last reserved", group(0x0180c200000f), 0, 1, 0, DropReason::link_local},
      {"the first that is not", group(0x0180c2000010), 0, 1, 0b1110, none},
      {"the one before the block", group(0x0180c1ffffff), 0, 1, 0b1110, none},
      {"a station that looks like the block", group(0x0080c2000001), 0, 1, 0b1110, none},
  };
  for (const Row& row : rows) {
    const Egress egress =
        bridge_.egress_of(frame(row.destination, station(60)), row.ingress, row.now);
    SCOPED_TRACE(row.description);
    EXPECT_EQ(egress.ports, row.ports);
    if (row.ports == 0) {
      EXPECT_EQ(egress.drop, row.drop);
    }
  }
}

TEST_F(FourPorts, NeverLearnsAGroupAddress) {
  const MacAddress broadcast = from_number(0xffffffffffff);
  const MacAddress multicast = from_number(0x01005e000001);
  bridge_.learn(frame(station(1), broadcast), 2, 1);
  bridge_.learn(frame(station(1), multicast), 2, 1);
  EXPECT_EQ(stations_.port_of(broadcast, 1), std::nullopt);
  EXPECT_EQ(stations_.port_of(multicast, 1), std::nullopt);
}

TEST_F(FourPorts, ANeighbourTeachesNothingWhereAnotherSwitchIs) {
  const auto port_of_neighbour = [&](std::uint32_t number, std::uint16_t ingress) {
    bridge_.learn_neighbour(frame(station(99), station(number)), ingress, 1);
    return stations_.port_of(station(number), 1);
  };
  EXPECT_EQ(port_of_neighbour(20, 2), 2);
  bridge_.lead_to_switches(0b0100);
  EXPECT_EQ(port_of_neighbour(21, 2), std::nullopt);
  EXPECT_EQ(port_of_neighbour(1, 2), 1) << "nor does it move";
  EXPECT_EQ(port_of_neighbour(22, 3), 3) << "where hosts are";
  bridge_.learn(frame(station(99), station(23)), 2, 1);
  EXPECT_EQ(stations_.port_of(station(23), 1), 2) << "from any other frame";
  bridge_.shut(0b1000, Bridge::Why::configured);
  EXPECT_EQ(port_of_neighbour(24, 3), std::nullopt);
  bridge_.lead_to_switches(0);
  EXPECT_EQ(port_of_neighbour(21, 2), 2);
}

TEST_F(FourPorts, FollowsAStationThatMoves) {
  bridge_.learn(frame(station(1), station(2)), 3, 5);
  EXPECT_EQ(bridge_.egress_of(frame(station(2), station(60)), 0, 5).ports, 0b1000u);
  EXPECT_EQ(bridge_.egress_of(frame(station(2), station(60)), 3, 5).drop, DropReason::same_port);
}

TEST_F(FourPorts, PinsASourceToWhereItsFrameCameIn) {
  const auto pin = bridge_.pin_source(frame(station(1), station(2)), 2, 1);
  ASSERT_TRUE(pin.has_value());
  EXPECT_EQ(pin->station, station(2));
  EXPECT_EQ(pin->port, 2);
  bridge_.learn(frame(station(1), station(2)), 1, 5);
  EXPECT_EQ(bridge_.egress_of(frame(station(2), station(60)), 0, 5).ports, 0b0100u);
  EXPECT_FALSE(bridge_.pin_source(frame(station(1), station(2)), 1, 5).has_value()) << "elsewhere";
  bridge_.unpin(*pin, 6);
  bridge_.learn(frame(station(1), station(2)), 1, 7);
  EXPECT_EQ(bridge_.egress_of(frame(station(2), station(60)), 0, 7).ports, 0b0010u);
}

TEST_F(FourPorts, PinsNobodyElsesSource) {
  EXPECT_FALSE(bridge_.pin_source(frame(station(1), station(2)), 3, 1).has_value());
  EXPECT_EQ(bridge_.egress_of(frame(station(2), station(60)), 0, 1).ports, 0b0100u);
  for (const std::uint64_t group : {0xffffffffffffu, 0x01005e000001u, 0x0180c2000000u}) {
    EXPECT_FALSE(bridge_.pin_source(frame(station(1), from_number(group)), 3, 1).has_value());
    EXPECT_EQ(stations_.port_of(from_number(group), 1), std::nullopt);
  }
}

TEST_F(FourPorts, AShutPortIsNoneOfTheBridges) {
  bridge_.shut(0b0100, Bridge::Why::configured);
  const MacAddress broadcast = from_number(0xffffffffffff);
  EXPECT_TRUE(bridge_.is_shut(2));
  EXPECT_EQ(bridge_.egress_of(frame(broadcast, station(60)), 0, 1).ports, 0b1010u);
  EXPECT_EQ(bridge_.egress_of(frame(station(1), station(60)), 0, 1).ports, 0b0010u);
  const auto is_dropped = [&](const MacAddress& destination, std::uint16_t ingress) {
    const Egress egress = bridge_.egress_of(frame(destination, station(60)), ingress, 1);
    return egress.ports == 0 && egress.drop == DropReason::not_bridged;
  };
  EXPECT_TRUE(is_dropped(station(2), 0)) << "known there before";
  EXPECT_TRUE(is_dropped(station(1), 2)) << "from there";
  EXPECT_TRUE(is_dropped(station(50), 2));
  EXPECT_TRUE(is_dropped(broadcast, 2));
  EXPECT_EQ(bridge_.others_of(2), 0u);
  EXPECT_EQ(bridge_.others_of(0), 0b1010u);
  bridge_.learn(frame(station(1), station(71)), 2, 1);
  EXPECT_EQ(stations_.port_of(station(71), 1), std::nullopt);
  EXPECT_FALSE(bridge_.pin_source(frame(station(1), station(71)), 2, 1).has_value());
  EXPECT_EQ(Bridge::egress_by(2, 0).ports, 0b0100u) << "what names its port goes there";
  const std::uint16_t from_switch = UINT16_MAX;
  EXPECT_EQ(bridge_.egress_of(frame(station(1), station(60)), from_switch, 1).ports, 0b0010u);
  EXPECT_TRUE(is_dropped(station(2), from_switch));
}

TEST_F(FourPorts, APortIsOpenWhenNoReasonShutsIt) {
  bridge_.shut(0b0100, Bridge::Why::configured);
  bridge_.shut(0b1100, Bridge::Why::loop);
  bridge_.shut(0, Bridge::Why::configured);
  EXPECT_TRUE(bridge_.is_shut(2));
  bridge_.shut(0b1000, Bridge::Why::loop);
  EXPECT_FALSE(bridge_.is_shut(2));
  EXPECT_TRUE(bridge_.is_shut(3));
  EXPECT_EQ(bridge_.egress_of(frame(station(2), station(60)), 0, 1).ports, 0b0100u);
}

TEST_F(FourPorts, APinDoesNotMoveToAShutPort) {
  const auto pin = bridge_.pin_source(frame(station(1), station(2)), 2, 1);
  ASSERT_TRUE(pin.has_value());
  bridge_.shut(0b1000, Bridge::Why::configured);
  EXPECT_FALSE(bridge_.move(*pin, 3, 1).has_value());
  EXPECT_EQ(stations_.port_of(station(2), 1), 2);
  EXPECT_EQ(stations_.port_of(station(2), kAging + 2), std::nullopt) << "pinned no more";
}

TEST(Bridge, SendsByTheOnePortThatIsNamed) {
  EXPECT_EQ(Bridge::egress_by(2, 0).ports, 0b0100u);
  EXPECT_EQ(Bridge::egress_by(63, 0).ports, PortSet{1} << 63);
  EXPECT_EQ(Bridge::egress_by(2, 2).ports, 0u);
  EXPECT_EQ(Bridge::egress_by(2, 2).drop, DropReason::same_port);
}

TEST_F(FourPorts, DropsRuntsAndLearnsNothingFromThem) {
  const Frame whole = frame(station(2), station(70));
  for (std::size_t length = 0; length < 14; ++length) {
    const Frame cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    bridge_.learn(cut, 0, 1);
    const Egress egress = bridge_.egress_of(cut, 0, 1);
    EXPECT_EQ(egress.ports, 0u) << length;
    EXPECT_EQ(egress.drop, DropReason::runt) << length;
  }
  EXPECT_EQ(stations_.port_of(station(70), 1), std::nullopt);
  const Frame shortest(whole.begin(), whole.begin() + 14);
  EXPECT_EQ(bridge_.egress_of(shortest, 0, 1).ports, 0b0100u);
}

TEST(Bridge, FloodsToEveryOtherPortWhateverTheirNumber) {
  for (std::uint16_t ports = 1; ports <= kMaxPorts; ++ports) {
    MacTable stations(8, kAging);
    Bridge bridge(stations, ports);
    for (std::uint16_t ingress = 0; ingress < ports; ++ingress) {
      PortSet others = 0;
      for (std::uint16_t port = 0; port < ports; ++port) {
        others |= port == ingress ? 0 : PortSet{1} << port;
      }
      const Egress egress = bridge.egress_of(frame(station(1), station(2)), ingress, 0);
      ASSERT_EQ(egress.ports, others) << ingress << " of " << ports;
      if (ports == 1) {
        EXPECT_EQ(egress.drop, DropReason::no_egress);
      }
      bridge.learn(frame(station(1), station(3)), ingress, 0);
      const Egress known =
          bridge.egress_of(frame(station(3), station(2)), (ingress + 1) % ports, 0);
      ASSERT_EQ(known.ports, ports == 1 ? 0 : PortSet{1} << ingress);
    }
  }
}

TEST(Bridge, PortsComeAndGo) {
  MacTable stations(8, kAging);
  Bridge bridge(stations, 3);
  const auto flooded_to = [&](std::uint16_t ingress) {
    return bridge.egress_of(frame(station(1), station(2)), ingress, 0).ports;
  };
  bridge.add_port(7);
  EXPECT_EQ(flooded_to(0), 0b1000'0110u);
  EXPECT_EQ(flooded_to(7), 0b0000'0111u);
  bridge.remove_port(1);
  EXPECT_EQ(flooded_to(0), 0b1000'0100u);
  bridge.add_port(1);
  bridge.remove_port(7);
  EXPECT_EQ(flooded_to(0), 0b0110u);
}

} // namespace
} // namespace weir::l2::l2_test
