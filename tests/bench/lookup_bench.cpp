// SPDX-License-Identifier: BSD-3-Clause

/// What it takes to find out whose a RoCE frame's addresses are, beside a table whose hash has no
/// key.

#include "measurement.hpp"
#include "ring/ring_set.hpp"
#include "support/colliding_rings.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::bench {
namespace {

constexpr std::string_view kPart = "lookup";
constexpr std::size_t kLookups = 1 << 16;
constexpr std::uint16_t kMembers = 256;

using AddressPair = std::pair<wire::IpAddress, wire::IpAddress>;

/// As ring::RingSet once was: open addressing, as many probes as it takes.
class UnkeyedTable {
 public:
  explicit UnkeyedTable(const std::vector<AddressPair>& pairs)
      : pairs_(pairs), cells_(std::bit_ceil(2 * pairs.size() + 2)) {
    for (std::size_t pair = 0; pair < pairs_.size(); ++pair) {
      cells_[cell_of(pairs_[pair])] = static_cast<std::uint16_t>(pair + 1);
    }
  }

  std::uint16_t pair_of(const AddressPair& addresses) const { return cells_[cell_of(addresses)]; }

 private:
  std::size_t cell_of(const AddressPair& addresses) const {
    const std::size_t mask = cells_.size() - 1;
    std::size_t cell = test::UnkeyedHash::of(addresses.first, addresses.second) & mask;
    while (cells_[cell] != 0 && pairs_[cells_[cell] - 1u] != addresses) {
      cell = (cell + 1) & mask;
    }
    return cell;
  }

  std::vector<AddressPair> pairs_;
  std::vector<std::uint16_t> cells_;
};

std::vector<ring::RingSpec> usual_rings(std::uint32_t rings) {
  std::vector<ring::RingSpec> specs;
  for (std::uint32_t id = 0; id < rings; ++id) {
    ring::RingSpec spec{.id = id, .members = {}};
    for (std::uint32_t member = 0; member < kMembers; ++member) {
      const std::array<std::uint8_t, 4> ip{10, 0, static_cast<std::uint8_t>(id),
                                           static_cast<std::uint8_t>(member)};
      spec.members.push_back({wire::IpAddress::from_v4(ip.data()), {}});
    }
    specs.push_back(spec);
  }
  return specs;
}

std::vector<AddressPair> pairs_of(const std::vector<ring::RingSpec>& rings) {
  std::vector<AddressPair> pairs;
  for (const ring::RingSpec& ring : rings) {
    for (std::size_t member = 0; member < ring.members.size(); ++member) {
      const auto& own = ring.members[member].ip;
      const auto& next = ring.members[(member + 1) % ring.members.size()].ip;
      pairs.emplace_back(own, next);
      pairs.emplace_back(next, own);
    }
  }
  return pairs;
}

template <typename Find>
double ns_of(const std::vector<AddressPair>& asked, Find&& find) {
  std::uint64_t sum = 0;
  const double seconds = cpu_seconds_of([&] {
    for (const AddressPair& addresses : asked) {
      sum += find(addresses);
    }
  });
  const volatile std::uint64_t kept = sum;
  static_cast<void>(kept);
  return seconds * 1e9 / static_cast<double>(asked.size());
}

struct Work {
  std::string_view members;
  std::string_view asked;
  std::vector<ring::RingSpec> rings;
  std::vector<AddressPair> asks;
};

std::vector<AddressPair> drawn_from(const std::vector<AddressPair>& pairs) {
  std::mt19937 random(1);
  std::vector<AddressPair> drawn(kLookups);
  std::ranges::generate(drawn, [&] { return pairs[random() % pairs.size()]; });
  return drawn;
}

/// Two rings' members in turn are nobody's neighbours.
std::vector<AddressPair> strangers(std::vector<AddressPair> pairs) {
  for (std::size_t pair = 0; pair < pairs.size(); ++pair) {
    pairs[pair].second = pairs[(pair + 2 * kMembers) % pairs.size()].second;
  }
  return drawn_from(pairs);
}

std::vector<Work> all_work() {
  const auto usual = usual_rings(16);
  const auto chosen = test::colliding_rings(16, kMembers);
  std::vector<AddressPair> chosen_forward;
  for (const ring::RingSpec& ring : chosen) {
    for (std::size_t member = 0; member + 1 < ring.members.size(); ++member) {
      chosen_forward.emplace_back(ring.members[member].ip, ring.members[member + 1].ip);
    }
  }
  return {{"usual", "neighbours", usual, drawn_from(pairs_of(usual))},
          {"usual", "strangers", usual, strangers(pairs_of(usual))},
          {"chosen to collide", "neighbours", chosen, drawn_from(chosen_forward)}};
}

void measure(const Work& work, unsigned round) {
  const ring::RingSet set(work.rings, wire::HashKey::random());
  const UnkeyedTable unkeyed(pairs_of(work.rings));
  const double before = ns_of(work.asks, [&](const auto& ask) { return unkeyed.pair_of(ask); });
  const double now =
      ns_of(work.asks, [&](const auto& ask) { return set.pair_of(ask.first, ask.second); });
  report(kPart, Case().with("members", work.members).with("asked", work.asked), round,
         {{"look-up", now, "ns", "without a key"}, {"without a key", before, "ns"}});
}

} // namespace
} // namespace weir::bench

int main(int argc, char** argv) {
  using namespace weir::bench;
  const Options options = read_options(argc, argv, {kPart}, {.full = 9, .quick = 3});
  const auto work = all_work();
  for (unsigned round = 0; round < options.rounds; ++round) {
    tell_progress(kPart, round, options);
    for (const Work& one : work) {
      if (Case().with("members", one.members).with("asked", one.asked).is_wanted(options)) {
        measure(one, round);
      }
    }
  }
  return 0;
}
