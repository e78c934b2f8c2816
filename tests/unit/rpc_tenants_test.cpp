// SPDX-License-Identifier: BSD-3-Clause

/// Who a caller is by his certificate, what his part is, and what a tenant may order.

#include "control/switch.hpp"
#include "gate/certificate.hpp"
#include "rpc/caller.hpp"
#include "rpc/caller_shares.hpp"
#include "rpc/ring_messages.hpp"
#include "rpc/tenant_backend.hpp"
#include "rpc/too_many.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <gmock/gmock.h>
#include <optional>
#include <string>
#include <vector>

namespace weir::rpc::rpc_tenants_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

config::Config config_with(const std::string& control, const std::string& tenants) {
  return config::parse_config(
      fmt::format("ports: [{{name: p0, device: a}}]\n"
                  "control: {{listen: ['[::1]:1'], tls: {{certificate: a, key: b, "
                  "client_authority: c}}{}}}\n{}",
                  control, tenants),
      "f");
}

constexpr const char* kOperators = ", operators: [root, admin@dc1]";
constexpr const char* kTenants = "tenants: [{name: red}, {name: blue}]\n";
constexpr const char* kDenied = "-";

/// "": an operator; a tenant's name; kDenied.
std::string who(const gate::Peer& peer, const config::Config& config) {
  try {
    const Caller caller = caller_of(peer, config);
    return caller.is_operator() ? "" : caller.name;
  } catch (const NotAllowed&) {
    return kDenied;
  }
}

TEST(Caller, IsWhoHisCertificateSays) {
  struct Row {
    const char* control;
    const char* tenants;
    std::vector<std::string> names;
    std::string caller;
  };

  for (const Row& row : std::vector<Row>{
           {"", "", {"anybody"}, ""}, // as before there were tenants
           {"", kTenants, {"anybody"}, kDenied},
           {"", kTenants, {"red"}, "red"},
           {"", kTenants, {"Red"}, kDenied},
           {kOperators, "", {"anybody"}, kDenied},
           {kOperators, "", {"root"}, ""},
           {kOperators, kTenants, {"admin@dc1"}, ""},
           {kOperators, kTenants, {"blue"}, "blue"},
           {kOperators, kTenants, {"blu"}, kDenied},
           {", operators: []", "", {"root"}, kDenied},
           {"", "", {}, kDenied}, // a network without a name
           {kOperators, kTenants, {""}, kDenied},
           {kOperators, kTenants, {"root", "red"}, kDenied},
       }) {
    const config::Config config = config_with(row.control, row.tenants);
    EXPECT_EQ(who({.is_local = false, .address = {}, .common_names = row.names}, config),
              row.caller)
        << row.control << ' ' << row.tenants << (row.names.empty() ? "" : row.names.front());
    EXPECT_EQ(who({.is_local = true, .address = {}, .common_names = {}}, config), "")
        << "the door has looked at who calls";
  }
}

/// Of `openssl req -x509 -subj /CN=red/O=Weir/CN=root`.
constexpr const char* kTwoNames =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBrTCCAVOgAwIBAgIUGgYTQByMGjxPx2TQLuEM0ilrZhEwCgYIKoZIzj0EAwIw\n"
    "LDEMMAoGA1UEAwwDcmVkMQ0wCwYDVQQKDARXZWlyMQ0wCwYDVQQDDARyb290MB4X\n"
    "DTI2MTEyNzA4MzQxOVoXDTI2MTEyOTA4MzQxOVowLDEMMAoGA1UEAwwDcmVkMQ0w\n"
    "CwYDVQQKDARXZWlyMQ0wCwYDVQQDDARyb290MFkwEwYHKoZIzj0CAQYIKoZIzj0D\n"
    "AQcDQgAE8o07gff+emLLPUgW7VEyan7CZPgAg4h9rFw1+OzcdlOgxzxrDb7r6qoF\n"
    "end+GAIMP0CXFhi00+1dLjyl230/faNTMFEwHQYDVR0OBBYEFJo/C4GiNTsmeuIZ\n"
    "uOj1KTwyxID1MB8GA1UdIwQYMBaAFJo/C4GiNTsmeuIZuOj1KTwyxID1MA8GA1Ud\n"
    "EwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIhALhdAlme3qUJmEhstXV/qj5v\n"
    "4d3BCfcFa8cWf36DGwM6AiAgi62tu7vbVdD+j+41rcaMwcl4oYNSRwfpzEeDv6PU\n"
    "YA==\n"
    "-----END CERTIFICATE-----\n";

TEST(Certificate, TellsEachOfItsCommonNames) {
  EXPECT_THAT(gate::common_names_in(kTwoNames), ElementsAre("red", "root"));
  EXPECT_THAT(gate::common_names_in("no certificate"), ElementsAre());
}

const Caller kLocal{};
const Caller kRoot{CallerKind::remote_operator, "root"};
const Caller kRed{CallerKind::tenant, "red"};
const Caller kBlue{CallerKind::tenant, "blue"};

/// How many of `most` orders `take` does before it throws TooMany.
template <typename Take>
std::size_t taken(std::size_t most, Take&& take) {
  for (std::size_t count = 0; count < most; ++count) {
    try {
      take();
    } catch (const TooMany&) {
      return count;
    }
  }
  return most;
}

TEST(CallerShares, AFloodLeavesTheOthersTheirRequests) {
  CallerShares shares;
  const auto passed = [&shares](const Caller& caller, std::size_t asked) {
    return taken(asked, [&] { shares.count_requests(caller, 1); });
  };
  EXPECT_LT(passed(kRed, 100'000), 100'000U);
  EXPECT_EQ(passed(kBlue, 40), 40U);
  EXPECT_EQ(passed(kRoot, 40), 40U);
  EXPECT_LT(passed(kRoot, 100'000), 100'000U);
  EXPECT_EQ(passed(kLocal, 40), 40U);
}

TEST(CallerShares, WhoHasAllItsPlacesLeavesTheOthersTheirs) {
  const config::Config config = config_with(kOperators, kTenants);
  CallerShares shares;
  std::vector<Places::Place> places;
  const auto watchers = [&](const Caller& caller) {
    return taken(1000, [&] { places.push_back(shares.take_watcher(caller, config)); });
  };
  const auto held_rings = [&](const Caller& caller) {
    return taken(1000, [&] { places.push_back(shares.take_held_ring(caller, config)); });
  };
  for (const Caller* const caller : {&kRed, &kBlue, &kRoot}) {
    EXPECT_EQ(watchers(*caller), 8U) << caller->name; // docs/control.md
    EXPECT_EQ(held_rings(*caller), 64U) << caller->name;
  }
  EXPECT_EQ(watchers(kLocal), 32U);
  EXPECT_EQ(held_rings(kLocal), 256U);
  places.clear();
  EXPECT_EQ(watchers(kRed), 8U);
}

TEST(Places, EachOfManyNamesHasOne) {
  Places places(32);
  std::vector<Places::Place> taken;
  const auto take = [&](const std::string& name, std::optional<std::size_t> names) {
    auto place = places.take(name, names);
    const bool is_taken = place.has_value();
    if (is_taken) {
      taken.push_back(std::move(*place));
    }
    return is_taken;
  };
  for (int name = 0; name < 50; ++name) {
    EXPECT_TRUE(take(std::to_string(name), 50)) << name;
    EXPECT_FALSE(take(std::to_string(name), 50)) << name;
  }
  taken.clear();
  int count = 0;
  while (take(std::to_string(count / 8), std::nullopt)) { // names of which nobody knows how many
    ++count;
  }
  EXPECT_EQ(count, 32);
}

/// Answers' bytes, which are known when the answer is there.
TEST(Places, HaveRoomForWhoHasNoneOrLessThanHisPart) {
  constexpr std::size_t most = 100;
  Places places(most);
  std::vector<Places::Place> taken;
  EXPECT_TRUE(places.has_room("a", 4));
  taken.push_back(places.take_some("a", 24));
  EXPECT_TRUE(places.has_room("a", 4)) << "a quarter is 25";
  taken.push_back(places.take_some("a", 1000));
  EXPECT_FALSE(places.has_room("a", 4));
  EXPECT_TRUE(places.has_room("b", 4)) << "however much another one has";
  taken.push_back(places.take_some("b", 1));
  EXPECT_TRUE(places.has_room("b", 4)) << "while its part is not full";
  taken.push_back(places.take_some("b", 24));
  EXPECT_FALSE(places.has_room("b", 4));
  for (const char* const name : {"c", "d"}) {
    taken.push_back(places.take_some(name, 25));
  }
  taken.push_back(places.take_some("e", 1));
  EXPECT_FALSE(places.has_room("e", std::nullopt)) << "four parts are taken";
  taken.clear();
  EXPECT_TRUE(places.has_room("a", 4));
  taken.push_back(places.take_some("only", 99));
  EXPECT_TRUE(places.has_room("only", 1));
  taken.push_back(places.take_some("only", 1));
  EXPECT_FALSE(places.has_room("only", 1));
}

TEST(CallerShares, WhoReadsNothingIsAnsweredNoMoreAndTheOthersAre) {
  const config::Config config = config_with(kOperators, kTenants);
  CallerShares shares;
  std::vector<Places::Place> unread;
  for (const Caller* const caller : {&kRed, &kRoot, &kLocal}) {
    EXPECT_NO_THROW(shares.expect_room_for_answer(*caller, config)) << caller->name;
    unread.push_back(shares.take_answer(*caller, kMostAnswerBytes));
    EXPECT_THROW(shares.expect_room_for_answer(*caller, config), TooMany) << caller->name;
  }
  EXPECT_NO_THROW(shares.expect_room_for_answer(kBlue, config));
  unread.clear();
  EXPECT_NO_THROW(shares.expect_room_for_answer(kRed, config));
}

TEST(Caller, IsToldWhatIsAllowed) {
  const config::Config config = config_with(kOperators, kTenants);
  EXPECT_THAT(
      [&] { caller_of({.is_local = false, .address = {}, .common_names = {"mallory"}}, config); },
      ThrowsMessage<NotAllowed>("certificate: found the common name 'mallory'; allowed: a "
                                "name under control.operators or under tenants"));
}

/// Writes down what it is told, and by whom. It knows no ring: who asks it whose a ring is, before
/// the order, learns nothing.
class Book : public Backend {
 public:
  std::vector<std::string> orders;

  command::Answer execute(const command::Words& words, const Principal& principal) override {
    orders.push_back(fmt::format("{}: {}", principal.tenant, fmt::join(words, " ")));
    return std::string("done");
  }

  report::Report ask(const command::Words& words, const Principal& principal) override {
    orders.push_back(fmt::format("{}: asks {}", principal.tenant, fmt::join(words, " ")));
    return {};
  }

  command::Words completions(std::string_view line, const Principal& principal) override {
    orders.push_back(fmt::format("{}: completes {}", principal.tenant, line));
    return {};
  }

  std::vector<ListedRing> rings() override { return {}; }

  void add_ring(const ring::RingSpec& ring, const Principal& principal) override {
    orders.push_back(fmt::format("{}: add {} of {}", principal.tenant, ring.id, ring.tenant));
  }

  ring::RingBirth hold_ring(ring::RingSpec& ring, const Principal& principal) override {
    orders.push_back(fmt::format("{}: hold {} of {}", principal.tenant, ring.id, ring.tenant));
    return ring.id;
  }

  void drain_ring(std::uint32_t id, std::chrono::seconds quiet,
                  const Principal& principal) override {
    orders.push_back(fmt::format("{}: drain {} for {} s", principal.tenant, id, quiet.count()));
  }

  control::MadeRegion hold_region(const control::WantedRegion& wanted,
                                  const Principal& principal) override {
    orders.push_back(fmt::format("{}: hold a region of {}", principal.tenant, wanted.tenant));
    return {};
  }

  void remove_orphan(ring::RingBirth) override {}

  bool has_ring(ring::RingBirth) override { return true; }

  void remove_ring(std::uint32_t id, const Principal& principal) override {
    orders.push_back(fmt::format("{}: remove {}", principal.tenant, id));
  }

  std::shared_ptr<const config::Config> config() override {
    return std::make_shared<const config::Config>(config_);
  }

  void check_lcores() override {}

 private:
  const config::Config config_ = config_with("", kTenants);
};

/// The switch decides, when it carries the order out (tests/unit/ring_orders_test.cpp).
TEST(TenantBackend, GivesEveryOrderAsItsTenant) {
  Book book;
  TenantBackend red_backend(book, "red");
  Backend& red = red_backend;
  red.execute({"reset", "ring", "1"});
  red.remove_ring(2);
  red.drain_ring(1, std::chrono::seconds(7));
  red.add_ring({.id = 4, .members = {}, .tenant = "red"});
  red.add_ring({.id = 5, .members = {}});
  ring::RingSpec held{.id = 6, .members = {}};
  EXPECT_EQ(red.hold_ring(held), 6U);
  EXPECT_EQ(held.tenant, "red") << "the answer has it";
  red.execute({"reset", "ring", "1"}, {}); // nobody is an operator by this backend
  red.remove_ring(2, {"blue"});
  red.drain_ring(2, std::chrono::seconds(7), {"blue"});
  red.add_ring({.id = 7, .members = {}}, {});
  EXPECT_THAT(book.orders, ElementsAre("red: reset ring 1", "red: remove 2", "red: drain 1 for 7 s",
                                       "red: add 4 of red", "red: add 5 of red",
                                       "red: hold 6 of red", "red: reset ring 1", "red: remove 2",
                                       "red: drain 2 for 7 s", "red: add 7 of red"));
}

/// Of regions a tenant sees its own.
TEST(TenantBackend, AsksAndHoldsRegionsAsItsTenant) {
  Book book;
  TenantBackend red_backend(book, "red");
  Backend& red = red_backend;
  red.ask({"show", "region", "all"});
  red.ask({"show", "region", "all"}, {}); // nobody is an operator by this backend
  red.completions("show region ", {"blue"});
  red.hold_region({.spec = {}, .tenant = "red"});
  red.hold_region({.spec = {}, .tenant = ""}, {});
  EXPECT_THAT(book.orders, ElementsAre("red: asks show region all", "red: asks show region all",
                                       "red: completes show region ", "red: hold a region of red",
                                       "red: hold a region of red"));
}

/// By which a watcher asks: its caller's backend has ended.
TEST(Caller, AsksAsItsTenant) {
  EXPECT_EQ(kRed.principal().tenant, "red");
  EXPECT_TRUE(kRoot.principal().is_operator());
  EXPECT_TRUE(kLocal.principal().is_operator());
}

TEST(TenantBackend, AddsNothingOfAnother) {
  Book book;
  TenantBackend red_backend(book, "red");
  Backend& red = red_backend;
  EXPECT_THROW(red.add_ring({.id = 4, .members = {}, .tenant = "blue"}), NotAllowed);
  ring::RingSpec foreign{.id = 4, .members = {}, .tenant = "blue"};
  EXPECT_THROW(red.hold_ring(foreign), NotAllowed);
  EXPECT_THAT([&] { red.hold_region({.spec = {}, .tenant = "blue"}); },
              ThrowsMessage<NotAllowed>("region.tenant: found blue; allowed: red, or none"));
  EXPECT_THAT(book.orders, ElementsAre());
}

TEST(RingMessages, HaveTheTenant) {
  Book book;
  v1::Ring message;
  message.set_id(7);
  message.set_window(2);
  message.set_max_message_bytes(4096);
  message.add_members()->set_ip("10.0.0.1");
  message.add_members()->set_ip("10.0.0.2");
  EXPECT_EQ(ring_of(message, *book.config()).tenant, "");
  message.set_tenant("blue");
  const ring::RingSpec ring = ring_of(message, *book.config());
  EXPECT_EQ(ring.tenant, "blue");
  v1::ListedRing listed;
  write({.spec = ring}, *book.config(), listed);
  EXPECT_EQ(listed.ring().tenant(), "blue");
  message.set_tenant("green\", window: 9");
  EXPECT_THAT([&] { ring_of(message, *book.config()); },
              ThrowsMessage<config::ConfigError>(
                  HasSubstr("tenant: found \"green\", window: 9\"; allowed: red or blue")));
}

} // namespace
} // namespace weir::rpc::rpc_tenants_test
