// SPDX-License-Identifier: BSD-3-Clause

/// lib/plan/netsim compared with the real code: the same all-reduces by the real queue pairs and
/// switch (tests/bench/allreduce_job.hpp) and by their model.

#include "allreduce_job.hpp"
#include "netsim/weir_run.hpp"
#include "plan/algorithms.hpp"
#include "plan/fabric.hpp"
#include "plan/generators.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace weir {
namespace {

constexpr double kTolerance = 0.05;

plan::Topology star_of(std::uint16_t ranks) {
  return plan::make_star(ranks,
                         {static_cast<std::uint64_t>(bench::kBitsPerNs * 1e9), bench::kDelay});
}

struct Both {
  double real = 0; // ns
  double model = 0;
};

netsim::WeirSettings modelled(const bench::AllReduce& wanted, std::uint64_t seed) {
  using Choice = netsim::HostTraits::Choice;
  netsim::WeirSettings settings;
  settings.host.choice =
      wanted.hosts.choice == bench::Choice::by_link ? Choice::by_link : Choice::at_once;
  settings.loss = wanted.links.loss / 1e6;
  settings.seed = seed;
  return settings;
}

Both in_switch(const bench::AllReduce& wanted, std::uint64_t seed) {
  const plan::Topology star = star_of(wanted.ranks);
  netsim::WeirSettings settings = modelled(wanted, seed);
  settings.mending = netsim::Mending::from_cache;
  settings.mending_floor = 60 * netsim::kMicrosecond;
  const netsim::WeirResult model = netsim::run_weir(
      star, plan::plan_fabric(star, plan::every_node(star), 1), wanted.bytes, settings);
  return {static_cast<double>(bench::reduce_in_switch(wanted, seed).duration),
          static_cast<double>(model.duration) / netsim::kNanosecond};
}

Both round_the_ring(const bench::AllReduce& wanted, std::uint64_t seed) {
  const plan::Topology star = star_of(wanted.ranks);
  const netsim::WeirResult model =
      netsim::run_host_ring(star, plan::every_node(star), wanted.bytes, modelled(wanted, seed));
  return {static_cast<double>(bench::reduce_round_the_ring(wanted, seed).duration),
          static_cast<double>(model.duration) / netsim::kNanosecond};
}

class Agreement : public testing::TestWithParam<std::tuple<int, int, bench::Choice>> {
 protected:
  bench::AllReduce wanted() const {
    const auto [ranks, kib, choice] = GetParam();
    bench::AllReduce wanted{.ranks = static_cast<std::uint16_t>(ranks),
                            .bytes = static_cast<std::size_t>(kib) << 10};
    wanted.hosts.choice = choice;
    return wanted;
  }
};

TEST_P(Agreement, ThroughTheSwitch) {
  const Both times = in_switch(wanted(), 1);
  EXPECT_NEAR(times.model / times.real, 1, kTolerance);
}

TEST_P(Agreement, RoundTheRing) {
  const Both times = round_the_ring(wanted(), 1);
  EXPECT_NEAR(times.model / times.real, 1, kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Agreement,
                         testing::Combine(testing::Values(2, 4, 8), testing::Values(64, 1024),
                                          testing::Values(bench::Choice::at_once,
                                                          bench::Choice::by_link)));

/// Different packets are lost, so the times differ. This compares the medians, with a factor that a
/// wrong rule would exceed by far: without go-back-N storms four ranks would take 1.1 link times
/// and not some twenty.
class AgreementUnderLoss : public testing::TestWithParam<bench::Choice> {};

TEST_P(AgreementUnderLoss, MediansAreOfOneKind) {
  bench::AllReduce wanted{
      .ranks = 4, .bytes = 2 << 20, .links = bench::lossy_link(network::kPercent)};
  wanted.hosts.choice = GetParam();
  std::vector<double> ratios[2];
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Both through = in_switch(wanted, seed);
    const Both round = round_the_ring(wanted, seed);
    ratios[0].push_back(through.model / through.real);
    ratios[1].push_back(round.model / round.real);
  }
  for (std::vector<double>& ratio : ratios) {
    std::sort(ratio.begin(), ratio.end());
    EXPECT_GT(ratio[2], 0.5);
    EXPECT_LT(ratio[2], 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Choices, AgreementUnderLoss,
                         testing::Values(bench::Choice::at_once, bench::Choice::by_link));

} // namespace
} // namespace weir
