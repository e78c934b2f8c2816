// SPDX-License-Identifier: BSD-3-Clause

/// Ranks that meet at a listener which was there before their group, by its handle.

#include "host/api/forming.hpp"
#include "host/base/host_addresses.hpp"
#include "host/rendezvous/listener.hpp"
#include "host_job.hpp"
#include "rank_zero.hpp"
#include "support/comes_true.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <cstdint>
#include <gmock/gmock.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace weir::host::listener_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::chrono::seconds kAtOnce{4};

std::shared_ptr<Listener> listen_on(const std::string& address) {
  return std::make_shared<Listener>(address, "");
}

Endpoint first_endpoint(const Listener& listener) {
  return read_handle(listener.handle_text()).endpoints.front();
}

/// Three ranks that know nothing of one another but a handle.
class Handle : public testing::Test {
 protected:
  GroupOptions options(std::uint16_t rank) const {
    GroupOptions options = options_of(plan_, rank, "");
    options.form_timeout = milliseconds(30'000);
    if (rank == 0) {
      options.listener = listener_;
    } else {
      options.handle = listener_->handle_text();
    }
    return options;
  }

  Forming start(std::uint16_t rank) { return start(options(rank)); }

  Forming start(const GroupOptions& options) { return {options, fabric_.open(options.rank)}; }

  /// All have started.
  static void expect_group(std::vector<Forming>& formings) {
    expect_none(run_ranks(static_cast<std::uint16_t>(formings.size()), [&](std::uint16_t place) {
      EXPECT_TRUE(formings[place].wait_for(milliseconds(30'000)));
      Group group = std::move(*formings[place].take());
      expect_sum(group);
    }));
  }

  const JobPlan plan_{.world = 3};
  HostFabric fabric_{rings_of(plan_), plan_.world, kSession};
  std::shared_ptr<Listener> listener_ = listen_on("127.0.0.1:0");
};

/// Longer than a rank waits for one that says nothing where there are several addresses.
TEST_F(Handle, LeadsRanksThatComeBeforeRankZeroForms) {
  listener_ = listen_on("");
  std::vector<Forming> formings;
  formings.push_back(start(1));
  formings.push_back(start(2));
  std::this_thread::sleep_for(milliseconds(1500));
  formings.push_back(start(0));
  expect_group(formings);
}

TEST_F(Handle, LeadsRanksByIpv6) {
  listener_ = listen_on("[::1]:0");
  EXPECT_EQ(first_endpoint(*listener_).host, "::1");
  std::vector<Forming> formings;
  for (const std::uint16_t rank : {0, 1, 2}) {
    formings.push_back(start(rank));
  }
  expect_group(formings);
}

TEST_F(Handle, OfAListenerEverywhereHasTheAddressesOfTheHost) {
  const auto hosts = announced(read_host_addresses(), std::string());
  const RendezvousPoint point = read_handle(listen_on("")->handle_text());
  ASSERT_FALSE(point.endpoints.empty());
  for (const Endpoint& endpoint : point.endpoints) {
    EXPECT_THAT(hosts, testing::Contains(endpoint.host));
  }
  const Listener preferring("", hosts.back());
  EXPECT_EQ(first_endpoint(preferring).host, hosts.back());
}

/// Ranks may still be told more than the handle, and anybody may see it on its way.
TEST_F(Handle, AJobsOwnSecretIsNeededToo) {
  const auto with_secret = [&](std::uint16_t rank, const std::string& secret) {
    GroupOptions own = options(rank);
    own.secret = secret;
    return own;
  };
  std::vector<Forming> formings;
  formings.push_back(start(with_secret(0, "0123456789abcdef")));
  for (const std::string& secret : {std::string("0123456789abcdeF"), std::string()}) {
    const Forming wrong = start(with_secret(1, secret));
    const Ending ending = ending_of([&] { wrong.wait_for(kAtOnce); });
    EXPECT_EQ(ending.code, ErrorCode::mismatch) << ending.text;
    EXPECT_THAT(ending.text, HasSubstr("another secret"));
  }
  formings.push_back(start(with_secret(1, "0123456789abcdef")));
  formings.push_back(start(with_secret(2, "0123456789abcdef")));
  expect_group(formings);
}

/// Silent ones, one that speaks another protocol, one that joins without the secret; and all of
/// them before anybody hears them.
TEST_F(Handle, StrangersTakeNobodysPlace) {
  const Endpoint place = first_endpoint(*listener_);
  std::vector<Socket> strangers;
  for (int count = 0; count < 600; ++count) {
    strangers.push_back(ConnectionAttempts({place}).next(Clock::now() + kAtOnce));
    ASSERT_TRUE(strangers.back());
  }
  say(strangers[0], "GET / HTTP/1.1\r\n\r\n");
  say(strangers[1], raw_join(1, 3));
  std::vector<Forming> formings;
  formings.push_back(start(1));
  formings.push_back(start(0));
  std::this_thread::sleep_for(milliseconds(100));
  formings.push_back(start(2));
  EXPECT_TRUE(formings[1].wait_for(milliseconds(30'000)));
  Group group = std::move(*formings[1].take());
  EXPECT_GT(group.statistics().callers_turned_away, 2);
  group.abort();
}

TEST_F(Handle, OfAnotherListenerIsOfNoUseHere) {
  const Endpoint place = first_endpoint(*listener_);
  RendezvousPoint forged = read_handle(listen_on("127.0.0.1:0")->handle_text());
  GroupOptions lost = options(1);
  lost.handle.assign(reinterpret_cast<const char*>(make_handle(forged).data()), kHandleBytes);
  lost.form_timeout = milliseconds(300);
  const Forming nobody = start(lost); // that listener is closed
  EXPECT_EQ(ending_of([&] { nobody.wait_for(kAtOnce); }).code, ErrorCode::rendezvous_timeout);
  forged.endpoints = {place};
  lost.handle.assign(reinterpret_cast<const char*>(make_handle(forged).data()), kHandleBytes);
  lost.form_timeout = milliseconds(30'000);
  std::vector<Forming> formings;
  formings.push_back(start(0));
  const Forming other = start(lost);
  const Ending ending = ending_of([&] { other.wait_for(kAtOnce); });
  EXPECT_EQ(ending.code, ErrorCode::mismatch);
  EXPECT_THAT(ending.text, HasSubstr("rank 0 has another secret"));
  formings.push_back(start(1));
  formings.push_back(start(2));
  expect_group(formings);
}

/// So what is late of one group is a stranger to the next.
TEST_F(Handle, ServesOneGroupAlone) {
  std::optional<Forming> first(start(0));
  EXPECT_THROW(start(0), std::invalid_argument);
  first->abort("we have seen enough");
  EXPECT_THROW(start(0), std::invalid_argument);
  GroupOptions late = options(1);
  late.form_timeout = milliseconds(300);
  listener_ = listen_on("127.0.0.1:0");
  std::vector<Forming> formings;
  for (const std::uint16_t rank : {0, 1, 2}) {
    formings.push_back(start(rank));
  }
  expect_group(formings);
  first.reset(); // who has aborted still tells its callers so, until it has looked up
  const Ending ending = ending_of([&] { start(late).wait_for(kAtOnce); });
  EXPECT_EQ(ending.code, ErrorCode::rendezvous_timeout) << ending.text;
}

TEST_F(Handle, LeavesNoPortWhenItsListenerIsClosedOrUsed) {
  const Endpoint place = first_endpoint(*listener_);
  listener_.reset();
  EXPECT_TRUE(listen_at(place));
  listener_ = listen_on("127.0.0.1:0");
  const Endpoint used = first_endpoint(*listener_);
  std::optional<Forming> forming(start(0));
  forming.reset();
  EXPECT_TRUE(listen_at(used));
}

TEST_F(Handle, AnAbortReachesTheRanksThatItLedHere) {
  Forming first = start(1);
  const Forming leader = start(0);
  std::this_thread::sleep_for(milliseconds(300));
  first.abort("no more");
  const Ending ending = ending_of([&] { leader.wait_for(kAtOnce); });
  EXPECT_EQ(ending.code, ErrorCode::aborted);
  EXPECT_THAT(ending.text, HasSubstr("no more"));
}

/// Twice: what is left of a group needs no handle.
TEST_F(Handle, AGroupShrinksWithoutIt) {
  HostFabric plain({}, plan_.world);
  std::barrier formed(plan_.world);
  std::barrier summed(plan_.world - 1);
  expect_none(run_ranks(plan_.world, [&](std::uint16_t rank) {
    GroupOptions own = options(rank);
    own.fallback = Fallback::ring;
    own.timeout = milliseconds(3000);
    Group group(own, plain.open(rank));
    formed.arrive_and_wait();
    if (rank == 0) {
      group.abort();
      return;
    }
    GroupOptions next = group.options();
    next.epoch = 0;
    Group rest = group.shrink(next, plain.open(rank));
    expect_sum(rest);
    summed.arrive_and_wait();
    GroupOptions again = rest.options();
    again.epoch = 0;
    Group last = rest.shrink(again, plain.open(rank));
    expect_sum(last);
  }));
}

TEST_F(Handle, SaysWhichOptionsDoNotGoTogether) {
  struct Row {
    const char* text;
    std::uint16_t rank;
    void (*change)(GroupOptions& options);
  };

  const std::vector<Row> rows{
      {"listener: found rendezvous '10.0.0.1:1' too", 0,
       [](GroupOptions& options) { options.rendezvous = "10.0.0.1:1"; }},
      {"handle: found an all_gather too", 1,
       [](GroupOptions& options) {
         options.all_gather = [](const void*, std::size_t, void*) { return 1; };
       }},
      {"listener: found one on rank 1", 1,
       [](GroupOptions& options) { options.listener = listen_on("127.0.0.1:0"); }},
      {"listener: found none on rank 0", 0,
       [](GroupOptions& options) {
         options.handle = options.listener->handle_text();
         options.listener.reset();
       }},
      {"handle: found another listener's", 0,
       [](GroupOptions& options) { options.handle = listen_on("127.0.0.1:0")->handle_text(); }},
      {"handle: found bytes that were changed", 2,
       [](GroupOptions& options) { options.handle.back() = '!'; }},
  };
  for (const Row& row : rows) {
    GroupOptions wrong = options(row.rank);
    row.change(wrong);
    EXPECT_THAT(find_defect(wrong), StartsWith(row.text));
  }
  GroupOptions both = options(0);
  both.handle = listener_->handle_text();
  EXPECT_EQ(find_defect(both), "");
}

} // namespace
} // namespace weir::host::listener_test
