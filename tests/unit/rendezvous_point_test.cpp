// SPDX-License-Identifier: BSD-3-Clause

/// Ranks that find rank 0 by an all-gather of their own.

#include "host/base/host_addresses.hpp"
#include "host/rendezvous/rendezvous.hpp"
#include "host/rendezvous/rendezvous_point.hpp"
#include "host_job.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstdint>
#include <cstring>
#include <gmock/gmock.h>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weir::host::rendezvous_point_test {
namespace {

/// The all-gather of threads.
class SharedMemory {
 public:
  explicit SharedMemory(std::uint16_t world) : parts_(world), barrier_(world) {}

  /// As rank `rank` calls it.
  AllGather of(std::uint16_t rank) {
    return [this, rank](const void* in, std::size_t bytes, void* out) {
      const auto* begin = static_cast<const std::uint8_t*>(in);
      parts_[rank].assign(begin, begin + bytes);
      barrier_.arrive_and_wait();
      for (std::size_t other = 0; other < parts_.size(); ++other) {
        std::memcpy(static_cast<std::uint8_t*>(out) + other * bytes, parts_[other].data(), bytes);
      }
      ++calls_;
      return 0;
    };
  }

  int calls() const { return calls_; }

  std::vector<std::vector<std::uint8_t>>& parts() { return parts_; }

 private:
  std::vector<std::vector<std::uint8_t>> parts_;
  std::barrier<> barrier_;
  std::atomic<int> calls_ = 0;
};

RendezvousPlan plan_with(const AllGather& all_gather, std::uint16_t rank, std::uint16_t world) {
  RendezvousPlan plan{rank, world, "127.0.0.1:0", milliseconds(3000)};
  plan.all_gather = all_gather;
  return plan;
}

TEST(RendezvousPoint, NeedsNoPortThatWasAgreed) {
  SharedMemory memory(4);
  const auto endings = run_ranks(4, [&](std::uint16_t rank) {
    Rendezvous rendezvous(plan_with(memory.of(rank), rank, 4));
    const std::vector<Blob> all = rendezvous.gather(Blob(rank + 1, 9));
    EXPECT_EQ(all[3], Blob(4, 9));
  });
  expect_none(endings);
  EXPECT_EQ(memory.calls(), 4) << "once on each rank";
}

/// Rank 0 draws a secret, so who finds its port is still a stranger.
TEST(RendezvousPoint, GivesTheRanksASecret) {
  SharedMemory memory(2);
  const auto endings = run_ranks(2, [&](std::uint16_t rank) {
    if (rank == 0) {
      Rendezvous rendezvous(plan_with(memory.of(0), 0, 2));
      rendezvous.gather({});
      EXPECT_EQ(rendezvous.callers_turned_away(), 1);
      return;
    }
    const RendezvousPoint place = share_rendezvous_point(memory.of(1), {1, 2}, {});
    ASSERT_EQ(place.endpoints.size(), 1);
    const std::string address = place.endpoints[0].text();
    EXPECT_EQ(address.find("127.0.0.1:"), 0) << address;
    EXPECT_EQ(place.secret.size(), 32);
    EXPECT_GT(std::set(place.secret.begin(), place.secret.end()).size(), 8U) << "not drawn";
    const Ending stranger = ending_of([&] { Rendezvous({1, 2, address, milliseconds(1000)}); });
    EXPECT_NE(stranger.text.find("rank 0 has a secret"), std::string::npos) << stranger.text;
    Rendezvous({1, 2, address, milliseconds(1000), {"", place.secret}}).gather({});
  });
  expect_none(endings);
}

TEST(RendezvousPoint, TheJobsOwnSecretStays) {
  SharedMemory memory(2);
  const auto endings = run_ranks(2, [&](std::uint16_t rank) {
    RendezvousPlan plan = plan_with(memory.of(rank), rank, 2);
    plan.credentials.secret = rank == 0 ? "0123456789abcdef" : "0123456789abcdeF";
    plan.timeout = milliseconds(500);
    Rendezvous(plan).gather({});
  });
  EXPECT_NE(endings[1].text.find("rank 0 has another secret"), std::string::npos)
      << endings[1].text;
  EXPECT_EQ(endings[0].code, ErrorCode::rendezvous_timeout) << endings[0].text;
}

TEST(RendezvousPoint, AnAllGatherThatFailsIsAnError) {
  const AllGather failing = [](const void*, std::size_t, void*) { return -7; };
  for (const std::uint16_t rank : {0, 1}) {
    const Ending ending = ending_of([&] { Rendezvous(plan_with(failing, rank, 2)); });
    EXPECT_EQ(ending.code, ErrorCode::transport_failure) << ending.text;
    EXPECT_EQ(ending.rank, rank);
    EXPECT_NE(ending.text.find("returned -7 on rank"), std::string::npos) << ending.text;
  }
}

TEST(RendezvousPoint, ARankThatCannotComeTellsTheOthers) {
  SharedMemory memory(3);
  const auto endings = run_ranks(3, [&](std::uint16_t rank) {
    if (rank == 2) {
      share_failure(memory.of(2), {2, 3}, "interface eth9: not found");
      return;
    }
    Rendezvous(plan_with(memory.of(rank), rank, 3));
  });
  for (const std::size_t rank : {0, 1}) {
    EXPECT_EQ(endings[rank].code, ErrorCode::transport_failure) << endings[rank].text;
    EXPECT_EQ(endings[rank].rank, 2);
    EXPECT_EQ(endings[rank].text, "rank 2 cannot come: interface eth9: not found");
  }
}

TEST(RendezvousPoint, RankZeroTellsThatItCannotListen) {
  SharedMemory memory(2);
  const auto endings = run_ranks(2, [&](std::uint16_t rank) {
    RendezvousPlan plan = plan_with(memory.of(rank), rank, 2);
    plan.address = "203.0.113.7:0"; // of documentation (RFC 5737), so not this host's
    Rendezvous rendezvous(plan);
  });
  for (const Ending& ending : endings) {
    EXPECT_EQ(ending.code, ErrorCode::transport_failure) << ending.text;
    EXPECT_NE(ending.text.find("cannot listen at 203.0.113.7:0"), std::string::npos) << ending.text;
  }
}

/// The same rank twice, as when the caller's group is not this group.
TEST(RendezvousPoint, RanksInAnotherOrderAreAMistake) {
  SharedMemory memory(2);
  const auto endings = run_ranks(2, [&](std::uint16_t rank) {
    const AllGather all_gather = memory.of(rank);
    const AllGather mixed_up = [&](const void* in, std::size_t bytes, void* out) {
      const int status = all_gather(in, bytes, out);
      auto* parts = static_cast<std::uint8_t*>(out);
      std::swap_ranges(parts, parts + bytes, parts + bytes);
      return status;
    };
    Rendezvous(plan_with(mixed_up, rank, 2));
  });
  for (const Ending& ending : endings) {
    EXPECT_EQ(ending.code, ErrorCode::mismatch) << ending.text;
    EXPECT_NE(ending.text.find("place 0 holds rank 1 of 2; due is rank 0 of 2"), std::string::npos)
        << ending.text;
  }
}

/// A note that says more bytes of text than there are, from a rank with other memory.
TEST(RendezvousPoint, ReadsNothingBehindANote) {
  const AllGather forged = [](const void* in, std::size_t bytes, void* out) {
    auto* parts = static_cast<std::uint8_t*>(out);
    std::memcpy(parts, in, bytes);
    parts[41] = 0xff; // the text's length
    parts[42] = 0xff;
    std::memcpy(parts + bytes, in, bytes);
    parts[bytes + 5] = 1;
    return 0;
  };
  EXPECT_NO_THROW(share_rendezvous_point(forged, {0, 2}, {{{"127.0.0.1", "1"}}, "secret"}));
}

TEST(RendezvousPoint, WholeGroupsMeetAtIt) {
  const JobPlan plan{.world = 3};
  HostFabric fabric(rings_of(plan), plan.world, kSession);
  SharedMemory memory(plan.world);
  const auto endings = run_ranks(plan.world, [&](std::uint16_t rank) {
    GroupOptions options = options_of(plan, rank, "127.0.0.1:0");
    options.job = "three";
    options.secret = "0123456789abcdef";
    options.all_gather = memory.of(rank);
    Group group(options, fabric.open(rank));
    std::vector<std::uint32_t> data(1000, rank + 1U);
    group.all_reduce(data.data(), data.data(), data.size(), DataType::u32, Operation::sum);
    EXPECT_EQ(data, std::vector<std::uint32_t>(1000, 6));
    EXPECT_EQ(group.statistics().callers_turned_away, 0);
  });
  expect_none(endings);
}

using Reach = HostAddress::Reach;

TEST(HostAddresses, AnnouncesTheLoopbackOnlyWithoutANetwork) {
  const std::vector<HostAddress> alone{{"127.0.0.1", Reach::this_host, "lo"},
                                       {"::1", Reach::this_host, "lo"}};
  EXPECT_EQ(announced(alone, ""), (std::vector<std::string>{"127.0.0.1", "::1"}));
  std::vector<HostAddress> all = alone;
  all.push_back({"192.0.2.1", Reach::network, "eth0"});
  all.push_back({"192.0.2.2", Reach::network, "eth1"});
  EXPECT_EQ(announced(all, ""), (std::vector<std::string>{"192.0.2.1", "192.0.2.2"}));
  EXPECT_EQ(announced(all, "192.0.2.2"), (std::vector<std::string>{"192.0.2.2", "192.0.2.1"}));
  EXPECT_EQ(announced(all, "10.0.0.1"), (std::vector<std::string>{"192.0.2.1", "192.0.2.2"}))
      << "the data path's address, which the kernel does not know";
}

/// The other ranks of the job are elsewhere, and came to one another by the networks.
TEST(HostAddresses, ALoopbackByWhichARankWasMetIsNotToldToOthers) {
  const std::vector<HostAddress> all{{"127.0.0.1", Reach::this_host, "lo"},
                                     {"192.0.2.1", Reach::network, "eth0"},
                                     {"198.51.100.1", Reach::network, "eth1"}};
  using Hosts = std::vector<std::string>;
  const auto told = [&](const std::set<std::string>& met) { return announced(all, met); };
  EXPECT_EQ(told({"198.51.100.1"}), (Hosts{"198.51.100.1"}));
  EXPECT_EQ(told({"127.0.0.1"}), (Hosts{"192.0.2.1", "198.51.100.1"}));
  EXPECT_EQ(told({"fe80::1%eth0"}), (Hosts{"192.0.2.1", "198.51.100.1"}));
  EXPECT_EQ(told({"127.0.0.1", "198.51.100.1"}), (Hosts{"192.0.2.1", "198.51.100.1"}));
  const std::vector<HostAddress> alone{{"127.0.0.1", Reach::this_host, "lo"}};
  EXPECT_EQ(announced(alone, std::set<std::string>{"fe80::1%eth0"}), (Hosts{"fe80::1%eth0"}))
      << "there is no other";
  EXPECT_TRUE(are_of_this_host({"127.0.0.1"}, all));
  EXPECT_FALSE(are_of_this_host({"127.0.0.1", "192.0.2.1"}, all));
  EXPECT_FALSE(are_of_this_host({"127.0.0.9"}, all));
}

/// Rank 0 may listen there, and nobody can connect there.
TEST(HostAddresses, AWildcardIsNone) {
  EXPECT_TRUE(is_wildcard("0.0.0.0"));
  EXPECT_TRUE(is_wildcard("::"));
  EXPECT_FALSE(is_wildcard("10.0.0.0"));
  EXPECT_FALSE(is_wildcard("::1"));
}

TEST(HostAddresses, OfAnInterfaceMustBeOne) {
  const auto at = [](const char* text, const char* interface) {
    return HostAddress{text, Reach::network, interface};
  };
  const std::vector<HostAddress> all{
      at("fd00::1", "both"), at("10.0.0.1", "both"),     at("fd00::2", "both"),
      at("fd00::3", "six"),  at("10.0.0.2", "two"),      at("10.0.0.3", "two"),
      at("fd00::4", "two"),  at("fd00::5", "two sixes"), at("fd00::6", "two sixes")};
  EXPECT_EQ(own_address(all, "both"), "10.0.0.1");
  EXPECT_EQ(own_address(all, "six"), "fd00::3");
  const std::vector<std::pair<const char*, const char*>> refused{
      {"two", "interface two has 2 IPv4 addresses: 10.0.0.2, 10.0.0.3; allowed: "},
      {"two sixes", "interface two sixes has 2 IPv6 addresses: fd00::5, fd00::6; allowed: "},
      {"bare", "interface bare has no address that other hosts can use; allowed: "}};
  for (const auto& [interface, text] : refused) {
    try {
      own_address(all, interface);
      FAIL() << interface;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::transport_failure);
      EXPECT_THAT(error.what(), testing::StartsWith(std::string("ip: not given, and ") + text));
    }
  }
}

TEST(HostAddresses, AreReadFromTheKernel) {
  const std::vector<HostAddress> addresses = read_host_addresses();
  const auto is_loopback = [](const HostAddress& address) {
    return address.text == "127.0.0.1" && address.reach == Reach::this_host &&
           address.interface == "lo";
  };
  EXPECT_TRUE(std::any_of(addresses.begin(), addresses.end(), is_loopback));
}

} // namespace
} // namespace weir::host::rendezvous_point_test
