// SPDX-License-Identifier: BSD-3-Clause

/// What the ranks of a new group open and tell one another for the day on which one of them dies.

#include "host/bootstrap/lineage.hpp"
#include "host_job.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>

namespace weir::host {
namespace {

RendezvousPlan plan_of(std::uint16_t rank, const std::string& address) {
  return {.rank = rank, .world = 2, .address = address, .timeout = milliseconds(10'000)};
}

/// The soft limit of open descriptors while the object lives.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t most) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit limit{.rlim_cur = most, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &limit);
  }

  ~DescriptorLimit() { setrlimit(RLIMIT_NOFILE, &before_); }

  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

 private:
  rlimit before_{};
};

/// Rank 1 has no descriptor for a listener. The other rank has one already, and waits.
TEST(Lineage, ARankThatCannotListenIsNamedOnAllRanks) {
  const std::string address = free_address();
  const auto endings = run_ranks(2, [&](std::uint16_t rank) {
    const RendezvousPlan plan = plan_of(rank, address);
    Rendezvous rendezvous(plan);
    rendezvous.gather(Blob{}); // as when a group is formed
    if (rank == 0) {
      rendezvous.gather(Blob{});
    } else {
      const DescriptorLimit none(3);
      found_lineage(rendezvous, plan);
    }
  });
  for (const Ending& ending : endings) {
    EXPECT_EQ(ending.code, ErrorCode::transport_failure);
    EXPECT_EQ(ending.rank, 1);
    EXPECT_EQ(ending.text, "rank 1: cannot listen at 127.0.0.1:0: Too many open files");
  }
}

} // namespace
} // namespace weir::host
