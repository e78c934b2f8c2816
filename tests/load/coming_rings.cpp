// SPDX-License-Identifier: BSD-3-Clause
#include "coming_rings.hpp"

#include "control/memory.hpp"
#include "often.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <random>
#include <string_view>
#include <vector>

namespace weir::load {
namespace {

constexpr unsigned kRounds = often(4);
constexpr std::uint32_t kRings = 50;
constexpr std::uint32_t kFirstId = 1000;
constexpr std::uint32_t kMostMembers = 6;
constexpr std::uint32_t kMostWindow = 4;
constexpr std::uint32_t kMostPackets = 8;
constexpr unsigned kSeed = 1;

/// The hosts of a ring, no other ring's, are the same in each round.
ring::RingSpec coming_ring(std::uint32_t number, std::mt19937& random) {
  const auto dice = [&](std::uint32_t most) {
    return static_cast<std::uint32_t>(1 + random() % most);
  };
  ring::RingSpec ring{.id = kFirstId + number,
                      .window = dice(kMostWindow),
                      .max_message_bytes = 1024 * dice(kMostPackets)};
  const std::uint32_t members = 2 + number % (kMostMembers - 1);
  for (std::uint32_t member = 0; member < members; ++member) {
    const std::array<std::uint8_t, 4> address{10, 61, static_cast<std::uint8_t>(number),
                                              static_cast<std::uint8_t>(member + 1)};
    ring.members.push_back({wire::IpAddress::from_v4(address.data()), std::nullopt});
  }
  return ring;
}

constexpr std::uint32_t kReloaded = 10;

/// The coming rings as the configuration has them.
std::string in_yaml(std::string_view keys) {
  std::string text;
  for (std::uint32_t number = 0; number < kReloaded; ++number) {
    text += fmt::format("  - {{ id: {}, members: [{{ ip: 10.62.{}.1 }}, {{ ip: 10.62.{}.2 }}], {} "
                        "}}\n",
                        kFirstId + number, number, number, keys);
  }
  return text;
}

unsigned stops_to_add(control::Switch& weir, const ring::RingSpec& ring) {
  const std::uint64_t before = weir.inspector().stop_times().stops;
  weir.rings().add(ring);
  return static_cast<unsigned>(weir.inspector().stop_times().stops - before);
}

/// Every other ring as one whose lease has run out; its fate is the same.
void take_away(control::Switch& weir, std::uint32_t id) {
  if (id % 2 == 0) {
    weir.rings().withdraw(id, {});
    return;
  }
  weir.rings().reclaim_if(id, [](const control::TendedRing&, std::uint64_t) {
    return control::Grounds{control::ReclaimReason::lease};
  });
}

} // namespace

std::string room_for_coming_rings() {
  const std::uint32_t slots = 2 * kMostWindow * kMostPackets;
  const std::uint32_t waiting = conn::WaitingHellos::kPerChild * kMostMembers;
  return fmt::format("spare: {{ rings: {}, members: {}, frames: {}, ports: 1 }}\n", kRings,
                     kRings * kMostMembers, kRings * (slots * (kMostMembers - 1) + waiting));
}

Reloads reload_again_and_again(control::Switch& weir) {
  struct Step {
    std::string rings;
    unsigned stops;
  };

  const std::vector<Step> steps{
      {in_yaml("window: 1, max_message_bytes: 1024"), kReloaded},
      {in_yaml("window: 1, max_message_bytes: 1024, patience: 5"), 1},
      {in_yaml("window: 2, max_message_bytes: 4096"), 3 * kReloaded},
      {"", 2 * kReloaded},
      {"", 0},
  };
  const std::size_t memory = control::available_memory();
  const std::string file = weir.inspector().config()->file;
  const std::string text = config::read_file(file);
  const std::uint64_t before = weir.inspector().stop_times().stops;
  Reloads seen;
  for (unsigned round = 0; round < kRounds; ++round) {
    for (const Step& step : steps) {
      std::ofstream(file) << text << step.rings;
      weir.reload().apply();
      ++seen.reloads;
      seen.stops_needed += step.stops;
    }
  }
  seen.stops = weir.inspector().stop_times().stops - before;
  seen.are_as_before = weir.reload().rehearse().empty() && control::available_memory() == memory;
  return seen;
}

ComingRings let_rings_come_and_go(control::Switch& weir) {
  std::mt19937 random(kSeed);
  const std::size_t memory = control::available_memory();
  const std::size_t rings = weir.inspector().ring_set()->present().size();
  ComingRings seen;
  for (unsigned round = 0; round < kRounds; ++round) {
    std::vector<std::uint32_t> ids;
    for (std::uint32_t number = 0; number < kRings; ++number) {
      const ring::RingSpec ring = coming_ring(number, random);
      seen.most_stops = std::max(seen.most_stops, stops_to_add(weir, ring));
      ids.push_back(ring.id);
      ++seen.made;
    }
    std::ranges::shuffle(ids, random);
    for (const std::uint32_t id : ids) {
      take_away(weir, id);
    }
  }
  seen.are_gone = weir.inspector().ring_set()->present().size() == rings &&
                  control::available_memory() == memory;
  return seen;
}

} // namespace weir::load
