// SPDX-License-Identifier: BSD-3-Clause

/// Who may order what becomes of a ring, while somebody else makes or changes this very ring. A
/// switch with EAL, lcores and a journal. This program's fsync(2) holds up who writes the journal:
/// there a ring is about to be made, and its maker has the lock. Its operator new[] holds up who
/// makes a region, and has no lock.

#include "control/switch.hpp"
#include "rpc/switch_backend.hpp"
#include "rpc/tenant_backend.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rte_eal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

/// Where who writes the journal waits, when it is shut.
class Gate {
 public:
  void shut() {
    const std::lock_guard lock(mutex_);
    is_shut_ = true;
    is_reached_ = false;
  }

  void open() {
    const std::lock_guard lock(mutex_);
    is_shut_ = false;
    changed_.notify_all();
  }

  void pass() {
    std::unique_lock lock(mutex_);
    is_reached_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !is_shut_; });
  }

  void wait_until_reached() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_reached_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_shut_ = false;
  bool is_reached_ = false;
};

Gate& door() {
  static Gate one;
  return one;
}

/// The same for who makes a region's memory.
Gate& memory_gate() {
  static Gate one;
  return one;
}

thread_local bool waits_for_memory = false;

} // namespace

extern "C" int fsync(int file) {
  door().pass();
  return static_cast<int>(syscall(SYS_fsync, file));
}

void* operator new[](std::size_t bytes) {
  if (waits_for_memory) {
    memory_gate().pass();
  }
  return operator new(bytes);
}

void operator delete[](void* memory) noexcept {
  operator delete(memory);
}

void operator delete[](void* memory, std::size_t) noexcept {
  operator delete(memory);
}

namespace weir::rpc::ring_orders_test {
namespace {

constexpr std::chrono::milliseconds kForTheQuestion{100}; // an order's, whose the ring is

/// "0@(0-1),1@(0-1)".
std::string floating_lcores() {
  const unsigned last = std::max(1U, std::thread::hardware_concurrency()) - 1;
  return fmt::format("0@(0-{0}),1@(0-{0})", last);
}

void start_eal() {
  static std::vector<std::string> arguments{"ring_orders_test",
                                            "--no-huge",
                                            "-m",
                                            "256",
                                            "--no-pci",
                                            "--no-shconf",
                                            "--no-telemetry",
                                            "--log-level=*:4",
                                            "--lcores",
                                            floating_lcores()};
  std::vector<char*> argv;
  for (std::string& argument : arguments) {
    argv.push_back(argument.data());
  }
  if (rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0) {
    throw std::runtime_error("EAL does not start");
  }
}

/// A switch with tenants, of which cyan and pink may have regions, and the configured ring 50.
class Lab {
 public:
  Lab() : folder_(testing::TempDir() + "weir-orders-" + std::to_string(getpid())) {
    start_eal();
    std::filesystem::create_directories(folder_);
    write(ring_50_of("red"));
    weir_.emplace(config::load_config(file()));
    weir_->start();
    all_.emplace(*weir_);
  }

  ~Lab() {
    weir_->stop();
    weir_->close_ports();
    std::filesystem::remove_all(folder_);
  }

  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;

  static std::string ring_50_of(const std::string& tenant) {
    return fmt::format("  - {{ id: 50, tenant: {}, window: 1, max_message_bytes: 1024, members: "
                       "[{{ ip: 10.50.0.1 }}, {{ ip: 10.50.0.2 }}] }}\n",
                       tenant);
  }

  void write(const std::string& rings) const {
    std::ofstream(file()) << fmt::format("ports: [{{ name: p0, device: \"net_null0,no-rx=1\" }},\n"
                                         "  {{ name: up0, device: \"net_null1,no-rx=1\" }},\n"
                                         "  {{ name: up1, device: \"net_null2,no-rx=1\", "
                                         "bridge: no }}]\n"
                                         "lcores:\n"
                                         "  - {{ id: 0, roles: [control] }}\n"
                                         "  - {{ id: 1, roles: [rx, worker, tx], idle: sleep }}\n"
                                         "spare: {{ rings: 32, members: 64, frames: 1024 }}\n"
                                         "state_directory: {}\n"
                                         "tenants: [{{ name: red }}, {{ name: blue }},\n"
                                         "  {{ name: green, hosts: [10.60.0.0/16] }},\n"
                                         "  {{ name: cyan, regions: 2, hosts: [10.71.0.0/16] }},\n"
                                         "  {{ name: pink, regions: 2, hosts: [10.72.0.0/16] }}]\n"
                                         "regions: {{ address: 10.77.0.254, mac: "
                                         "\"02:57:45:00:00:01\", rooms: {{ regions: 4, members: "
                                         "16, frames: 1024 }} }}\n"
                                         "rings:\n{}",
                                         folder_.string(), rings);
  }

  control::Switch& weir() { return *weir_; }

  Backend& all() { return *all_; }

  std::optional<ListedRing> ring(std::uint32_t id) {
    for (const ListedRing& ring : all_->rings()) {
      if (ring.spec.id == id) {
        return ring;
      }
    }
    return std::nullopt;
  }

 private:
  std::string file() const { return (folder_ / "weir.yaml").string(); }

  std::filesystem::path folder_;
  std::optional<control::Switch> weir_;
  std::optional<SwitchBackend> all_;
};

Lab& lab() {
  static Lab one;
  return one;
}

/// Each has hosts of its own: so the journal is written.
ring::RingSpec ring_of(std::uint32_t id) {
  ring::RingSpec ring{.id = id, .window = 1, .max_message_bytes = 1024};
  for (const int host : {1, 2}) {
    ring.members.push_back({*wire::parse_ip(fmt::format("10.60.{}.{}", id, host)), std::nullopt});
  }
  return ring;
}

void expect_untouched(std::uint32_t id, const std::string& tenant, const std::string& by) {
  const std::optional<ListedRing> ring = lab().ring(id);
  ASSERT_TRUE(ring) << by << ": the ring has gone";
  EXPECT_EQ(ring->spec.tenant, tenant) << by;
  EXPECT_FALSE(ring->draining_s) << by << ": the ring drains";
}

using Make = void (*)(Backend& maker, ring::RingSpec ring);
using Order = void (*)(Backend& caller, std::uint32_t id);

struct NamedMake {
  const char* name;
  Make make;
};

struct NamedOrder {
  const char* name;
  Order order;
};

command::Words words(const char* verb, std::uint32_t id) {
  return {verb, "ring", std::to_string(id)};
}

const std::vector<NamedMake> kMakes{
    {"AddRing", [](Backend& maker, ring::RingSpec ring) { maker.add_ring(ring); }},
    {"HoldRing", [](Backend& maker, ring::RingSpec ring) { maker.hold_ring(ring); }},
};

const std::vector<NamedOrder> kOrders{
    {"RemoveRing", [](Backend& caller, std::uint32_t id) { caller.remove_ring(id); }},
    {"DrainRing",
     [](Backend& caller, std::uint32_t id) { caller.drain_ring(id, std::chrono::seconds(1)); }},
    {"reset ring", [](Backend& caller, std::uint32_t id) { caller.execute(words("reset", id)); }},
    {"drain ring", [](Backend& caller, std::uint32_t id) { caller.execute(words("drain", id)); }},
    {"withdraw ring",
     [](Backend& caller, std::uint32_t id) { caller.execute(words("withdraw", id)); }},
};

/// Gives the order while `making` waits at the gate with the lock. Returns what came of the order;
/// "done": it was carried out.
std::string outcome_beside(const std::function<void()>& making,
                           const std::function<void()>& order) {
  door().shut();
  auto made = std::async(std::launch::async, making);
  door().wait_until_reached();
  auto ordered = std::async(std::launch::async, [&order]() -> std::string {
    try {
      order();
      return "done";
    } catch (const std::exception& error) {
      return error.what();
    }
  });
  ordered.wait_for(kForTheQuestion);
  door().open();
  made.get();
  return ordered.get();
}

TEST(RingOrders, OfOthersAreRefusedWhileTheRingIsMade) {
  TenantBackend red_backend(lab().all(), "red");
  TenantBackend blue_backend(lab().all(), "blue");
  Backend& red = red_backend;
  Backend& blue = blue_backend;
  std::uint32_t id = 100;
  for (const NamedMake& made : kMakes) {
    for (const NamedOrder& ordered : kOrders) {
      const std::string by = fmt::format("{} beside {}", ordered.name, made.name);
      ++id;
      const std::string outcome =
          outcome_beside([&] { made.make(blue, ring_of(id)); }, [&] { ordered.order(red, id); });
      EXPECT_NE(outcome, "done") << by;
      expect_untouched(id, "blue", by);
      blue.remove_ring(id);
    }
  }
}

/// A ring of red's becomes blue's: red's order was given for the first, and meets the second.
TEST(RingOrders, OfTheFormerTenantAreRefusedWhileAReloadGivesTheRingAway) {
  TenantBackend red_backend(lab().all(), "red");
  Backend& red = red_backend;
  std::string others;
  int host = 0;
  for (const NamedOrder& ordered : kOrders) {
    lab().write(Lab::ring_50_of("red") + others);
    lab().weir().reload().apply();
    others += fmt::format("  - {{ id: {0}, window: 1, max_message_bytes: 1024, members: [{{ ip: "
                          "10.51.{0}.1 }}, {{ ip: 10.51.{0}.2 }}] }}\n",
                          ++host); // whose hosts the journal does not have
    lab().write(Lab::ring_50_of("blue") + others);
    const std::string outcome =
        outcome_beside([] { lab().weir().reload().apply(); }, [&] { ordered.order(red, 50); });
    EXPECT_NE(outcome, "done") << ordered.name;
    expect_untouched(50, "blue", ordered.name);
  }
  lab().write(Lab::ring_50_of("red"));
  lab().weir().reload().apply();
}

TEST(RingOrders, OfTheOwnerAndOfAnOperatorAreCarriedOut) {
  TenantBackend red_backend(lab().all(), "red");
  Backend& red = red_backend;
  for (Backend* const caller : {&red, &lab().all()}) {
    for (const NamedOrder& ordered : kOrders) {
      red.add_ring(ring_of(99));
      EXPECT_NO_THROW(ordered.order(*caller, 99)) << ordered.name;
      if (lab().ring(99)) {
        red.remove_ring(99);
      }
    }
  }
}

/// All that is no question and no order to a ring of one's own.
TEST(RingOrders, ATenantGivesNoOtherOrders) {
  TenantBackend red_backend(lab().all(), "red");
  Backend& red = red_backend;
  for (const command::Words& forbidden : std::vector<command::Words>{
           {"set", "trace", "on"},
           {"capture", "ring", "50", "/etc/passwd"},
           {"capture", "stop"},
           {"add", "ring", "/etc/passwd"},
           {"clear", "port", "stats", "all"},
           {"reload"},
           {"reload", "--dry-run"},
       }) {
    EXPECT_THROW(red.execute(forbidden), control::NotAllowed)
        << fmt::format("{}", fmt::join(forbidden, " "));
  }
  EXPECT_NO_THROW(red.execute({"show", "ring", "all"}));
  EXPECT_NO_THROW(red.execute({"help"}));
}

/// Its backend names the tenant after the ring was read: so the switch looks.
TEST(RingOrders, ATenantsRingHasItsOwnHosts) {
  TenantBackend green_backend(lab().all(), "green");
  Backend& green = green_backend;
  for (const NamedMake& made : kMakes) {
    ring::RingSpec ring = ring_of(97);
    EXPECT_NO_THROW(made.make(green, ring)) << made.name;
    green.remove_ring(97);
    ring.members[1].ip = *wire::parse_ip("10.61.0.1");
    try {
      made.make(green, ring);
      ADD_FAILURE() << made.name;
    } catch (const control::RingRefused& error) {
      EXPECT_STREQ(error.what(), "ring 97: members[1].ip: found 10.61.0.1, which is no host of "
                                 "tenant green; allowed: an address in its hosts:, 10.60.0.0/16")
          << made.name;
    }
    EXPECT_FALSE(lab().ring(97)) << made.name;
  }
}

std::string refusal_of(const NamedMake& made, Backend& maker, const ring::RingSpec& ring) {
  try {
    made.make(maker, ring);
    maker.remove_ring(ring.id);
    return "made";
  } catch (const control::NotAllowed& error) {
    return error.what();
  }
}

/// Else its own host could send partial sums for several ranks, or totals for all.
TEST(RingOrders, ATenantMakesNoPartOfATree) {
  TenantBackend red_backend(lab().all(), "red");
  Backend& red = red_backend;
  ring::RingSpec leaf = ring_of(97);
  leaf.parent = {.port = 1, .name = "spine"};
  leaf.children = {{.ranks = {0, 1}, .port = {}, .name = {}}};
  ring::RingSpec root = ring_of(97);
  root.children = {
      {.ranks = {0, 1}, .port = {}, .name = {}},
      {.ranks = {1, 1}, .port = 0, .kind = ring::ChildKind::switch_below, .name = "my own host"}};
  for (const NamedMake& made : kMakes) {
    EXPECT_EQ(refusal_of(made, red, leaf),
              "ring 97: found a parent for tenant red; allowed: ranks alone: an operator makes a "
              "tenant's ring over several switches")
        << made.name;
    EXPECT_EQ(refusal_of(made, red, root),
              "ring 97: found a switch among the children for tenant red; allowed: ranks alone: an "
              "operator makes a tenant's ring over several switches")
        << made.name;
    EXPECT_FALSE(lab().ring(97)) << made.name;
  }
}

TEST(RingOrders, ATenantNamesNoPortThatLeadsToASwitch) {
  TenantBackend red_backend(lab().all(), "red");
  Backend& red = red_backend;
  ring::RingSpec leaf = ring_of(96);
  leaf.tenant = "red";
  leaf.parent = {.port = 1, .name = "spine"};
  leaf.children = {{.ranks = {0, 1}, .port = {}, .name = {}}};
  ring::RingSpec ring = ring_of(97);
  ring.members[1].port = 1;
  for (const NamedMake& made : kMakes) {
    EXPECT_EQ(refusal_of(made, red, ring), "made") << made.name << ": no ring has an uplink yet";
    made.make(lab().all(), leaf);
    EXPECT_EQ(refusal_of(made, red, ring),
              "ring 97: members[1].port: found up0 for tenant red, by which ring 96 reaches a "
              "switch; allowed: a port of hosts, or none")
        << made.name;
    EXPECT_EQ(refusal_of(made, lab().all(), ring), "made") << made.name << ": an operator may";
    red.remove_ring(96); // its own, whoever has made it
  }
}

/// Before any ring reaches a switch there.
TEST(RingOrders, ATenantNamesNoPortThatDoesNotBridge) {
  TenantBackend red_backend(lab().all(), "red");
  ring::RingSpec ring = ring_of(97);
  ring.members[1].port = 2;
  for (const NamedMake& made : kMakes) {
    EXPECT_EQ(refusal_of(made, red_backend, ring),
              "ring 97: members[1].port: found up1 for tenant red, which has bridge: no, as ports "
              "between switches have; allowed: a port of hosts, or none")
        << made.name;
    EXPECT_EQ(refusal_of(made, lab().all(), ring), "made") << made.name << ": an operator may";
  }
}

TEST(RingOrders, AnIdIsGivenOnceHoweverManyAskForIt) {
  const std::string outcome = outcome_beside([] { lab().all().add_ring(ring_of(98)); },
                                             [] { lab().all().add_ring(ring_of(98)); });
  EXPECT_EQ(outcome.find("id: found 98, which a ring has; allowed: any but "), 0U) << outcome;
  lab().all().remove_ring(98);
}

/// Of two hosts of cyan's, or of pink's.
control::WantedRegion region_of(const std::string& tenant) {
  control::WantedRegion wanted{.spec = {}, .tenant = tenant};
  wanted.spec.bytes = 4096;
  wanted.spec.patience_ms = 1;
  for (const int host : {1, 2}) {
    const std::string ip = fmt::format("10.{}.0.{}", tenant == "pink" ? 72 : 71, host);
    wanted.spec.members.push_back({.ip = *wire::parse_ip(ip), .port = {}, .queue_pair = 17});
  }
  return wanted;
}

std::vector<std::string> regions_seen_by(Backend& caller) {
  std::vector<std::string> ids;
  const report::Report regions = caller.ask({"show", "region", "all"});
  for (const auto& row : regions.front().rows) {
    ids.push_back(fmt::format("{}", std::get<std::uint64_t>(row.front())));
  }
  return ids;
}

std::string outcome_of(const std::function<void()>& order) {
  try {
    order();
    return "done";
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// Those of former tests have ended, and are forgotten after their patience.
void forget_all_regions() {
  for (const std::string& id : regions_seen_by(lab().all())) {
    lab().weir().regions().withdraw_orphan(static_cast<std::uint32_t>(std::stoul(id)));
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!regions_seen_by(lab().all()).empty() && std::chrono::steady_clock::now() < end) {
    lab().weir().regions().take_news();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

/// There is a region of pink's, and one of cyan's.
class Regions : public testing::Test {
 protected:
  Regions() {
    forget_all_regions();
    pinks_ = held(pink_, region_of("pink"));
    cyans_ = held(cyan_, region_of("cyan"));
  }

  static std::string held(Backend& caller, const control::WantedRegion& wanted) {
    return std::to_string(caller.hold_region(wanted).spec.id);
  }

  TenantBackend pink_backend_{lab().all(), "pink"};
  TenantBackend cyan_backend_{lab().all(), "cyan"};
  Backend& pink_ = pink_backend_;
  Backend& cyan_ = cyan_backend_;
  std::string pinks_;
  std::string cyans_;
};

TEST_F(Regions, AreSeenByTheirTenantAndByOperators) {
  EXPECT_EQ(regions_seen_by(cyan_), std::vector{cyans_});
  EXPECT_EQ(regions_seen_by(pink_), std::vector{pinks_});
  const std::vector<std::string> all = regions_seen_by(lab().all());
  EXPECT_EQ(std::ranges::count(all, pinks_) + std::ranges::count(all, cyans_), 2);
  EXPECT_EQ(cyan_.completions("show region "), (command::Words{cyans_, "all"}));
  EXPECT_EQ(cyan_.completions("withdraw region "), command::Words{cyans_});
}

/// Nor does an error tell it from one that there is not.
TEST_F(Regions, OfOthersAreToATenantAsIfTheyWereNot) {
  for (const std::string& id : {pinks_, std::string("4000000")}) {
    EXPECT_EQ(outcome_of([&] {
                cyan_.execute({"withdraw", "region", id});
              }),
              fmt::format("region: found {}; allowed: {}", id, cyans_));
    EXPECT_EQ(outcome_of([&] {
                cyan_.ask({"show", "region", id});
              }),
              fmt::format("region: found '{}'; allowed: {}", id, cyans_));
    EXPECT_EQ(outcome_of([&] {
                cyan_.execute({"show", "region", id});
              }),
              fmt::format("region: found '{}'; allowed: {}", id, cyans_));
  }
  EXPECT_EQ(outcome_of([&] {
              cyan_.ask({"show", "region"});
            }),
            fmt::format("more is needed: {}, all", cyans_));
  EXPECT_EQ(outcome_of([&] {
              cyan_.execute({"withdraw", "region", "x"});
            }),
            fmt::format("region: found 'x'; allowed: {}", cyans_));
  EXPECT_EQ(regions_seen_by(pink_), std::vector{pinks_}) << "nobody has ended it";
  EXPECT_EQ(outcome_of([&] { cyan_.execute({"withdraw", "region", cyans_}); }), "done");
}

TEST_F(Regions, OfATenantCountWhoeverHoldsThem) {
  const std::string by_operator = held(lab().all(), region_of("cyan"));
  EXPECT_EQ(outcome_of([&] { cyan_.hold_region(region_of("cyan")); }),
            fmt::format("the region needs 1 regions; tenant cyan may have 2 and has 2, held by "
                        "region {}: 1, region {}: 1; allowed: end one of its regions, or configure "
                        "more regions: for the tenant",
                        cyans_, by_operator));
  const report::Report tenants = cyan_.ask({"show", "tenants"});
  ASSERT_EQ(tenants.size(), 2U);
  ASSERT_EQ(tenants[1].rows.size(), 1U) << "it sees its own share";
  EXPECT_EQ(tenants[1].rows[0],
            (std::vector<report::Cell>{"cyan", 2UL, 2UL, 4UL, 8UL, 256UL, 512UL}));
  EXPECT_EQ(lab().all().ask({"show", "tenants"})[1].rows.size(), 5U);
  cyan_.execute({"withdraw", "region", by_operator});
  EXPECT_EQ(outcome_of([&] { cyan_.hold_region(region_of("")); }), "done") << "its room is back";
}

/// While the memory of one is made, which takes a while, it counts, and all others may order.
TEST_F(Regions, AreMadeBesideOtherOrders) {
  memory_gate().shut();
  std::future<std::string> made = std::async(std::launch::async, [&] {
    waits_for_memory = true;
    return outcome_of([&] { cyan_.hold_region(region_of("cyan")); });
  });
  memory_gate().wait_until_reached();
  std::future<std::string> others = std::async(std::launch::async, [&] {
    std::string refusal = outcome_of([&] { cyan_.hold_region(region_of("cyan")); });
    pink_.execute({"withdraw", "region", pinks_});
    return refusal;
  });
  const bool is_in_time = others.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  memory_gate().open();
  EXPECT_TRUE(is_in_time);
  EXPECT_EQ(others.get().find("the region needs 1 regions; tenant cyan may have 2 and has 2"), 0U);
  EXPECT_EQ(made.get(), "done");
  EXPECT_EQ(regions_seen_by(cyan_).size(), 2U);
}

TEST_F(Regions, OfATenantHaveItsHosts) {
  control::WantedRegion wanted = region_of("pink");
  wanted.tenant = "cyan";
  EXPECT_EQ(outcome_of([&] { cyan_.hold_region(wanted); }),
            "members[0].ip: found 10.72.0.1, which is no host of tenant cyan; allowed: an address "
            "in its hosts:, 10.71.0.0/16");
  EXPECT_EQ(outcome_of([&] { cyan_.hold_region(region_of("pink")); }),
            "region.tenant: found pink; allowed: cyan, or none");
}

/// By such a port come hosts of anybody.
TEST_F(Regions, OfATenantNameNoPortToASwitch) {
  control::WantedRegion wanted = region_of("cyan");
  wanted.spec.members[1].port = 2;
  EXPECT_EQ(outcome_of([&] { cyan_.hold_region(wanted); }),
            "members[1].port: found up1 for tenant cyan, which has bridge: no, as ports between "
            "switches have; allowed: a port of hosts, or none");
  EXPECT_EQ(outcome_of([&] { lab().all().hold_region(wanted); }), "done") << "an operator may";
  forget_all_regions();
  ring::RingSpec root = ring_of(96);
  root.children = {
      {.ranks = {0, 1}, .port = {}, .name = {}},
      {.ranks = {1, 1}, .port = 1, .kind = ring::ChildKind::switch_below, .name = "leaf"}};
  lab().all().add_ring(root);
  wanted.spec.members[1].port = 1;
  EXPECT_EQ(outcome_of([&] { cyan_.hold_region(wanted); }),
            "members[1].port: found up0 for tenant cyan, by which ring 96 reaches a switch; "
            "allowed: a port of hosts, or none");
  lab().all().remove_ring(96);
  EXPECT_EQ(outcome_of([&] { cyan_.hold_region(wanted); }), "done") << "a port of hosts";
}

/// For who is refused no lcore stops: else he could hold up all rings.
TEST_F(Regions, ThatAreRefusedStopNobody) {
  control::WantedRegion too_large = region_of("cyan");
  too_large.spec.window = 4096;
  control::WantedRegion of_a_stranger = region_of("pink");
  of_a_stranger.tenant = "cyan";
  const auto stops_for = [](const std::function<void()>& order) {
    const std::uint64_t before = lab().weir().inspector().stop_times().stops;
    order();
    return lab().weir().inspector().stop_times().stops - before;
  };
  for (const control::WantedRegion& refused : {too_large, of_a_stranger}) {
    EXPECT_EQ(stops_for([&] { EXPECT_THROW(cyan_.hold_region(refused), std::runtime_error); }), 0U);
  }
  EXPECT_EQ(stops_for([] { lab().weir().regions().take_news(); }), 0U) << "all regions last";
  EXPECT_EQ(stops_for([&] { cyan_.hold_region(region_of("cyan")); }), 1U) << "who is served";
}

/// So metrics, which have a label for it, have no more series in a year than in a day.
TEST_F(Regions, HavePlacesThatOthersHaveAfterThem) {
  const auto place_of = [](const std::string& id) {
    for (const control::RegionSeen& region : lab().weir().regions().regions({})) {
      if (std::to_string(region.spec.id) == id) {
        return region.place;
      }
    }
    throw std::runtime_error("no region " + id);
  };
  EXPECT_EQ(place_of(pinks_), 0U);
  EXPECT_EQ(place_of(cyans_), 1U);
  pink_.execute({"withdraw", "region", pinks_});
  EXPECT_EQ(place_of(held(cyan_, region_of("cyan"))), 0U);
  EXPECT_EQ(place_of(held(pink_, region_of("pink"))), 2U);
}

TEST_F(Regions, ThatHaveEndedAreNewsOnce) {
  lab().weir().regions().take_news();
  cyan_.execute({"withdraw", "region", cyans_});
  const std::deque<control::RegionNews> news = lab().weir().regions().take_news();
  ASSERT_EQ(news.size(), 1U);
  EXPECT_EQ(news[0].kind, control::RegionNews::Kind::ended);
  EXPECT_EQ(std::to_string(news[0].id), cyans_);
  EXPECT_EQ(news[0].tenant, "cyan");
  EXPECT_EQ(control::name_of(news[0].why), "withdrawn");
  EXPECT_TRUE(lab().weir().regions().take_news().empty());
}

/// Two that have ended are all that is kept of a tenant's; of pink's nothing goes for them.
TEST_F(Regions, ThatHaveEndedDisplaceNoneOfAnotherTenants) {
  const auto held_and_ended = [](Backend& caller, control::WantedRegion wanted) {
    wanted.spec.patience_ms = 10'000;
    std::string id = held(caller, wanted);
    caller.execute({"withdraw", "region", id});
    return id;
  };
  const std::string ended = held_and_ended(pink_, region_of("pink"));
  for (int time = 0; time < 6; ++time) {
    held_and_ended(cyan_, region_of("cyan"));
  }
  const std::vector<std::string> pinks = regions_seen_by(pink_);
  EXPECT_EQ(std::ranges::count(pinks, ended), 1);
  EXPECT_EQ(regions_seen_by(cyan_).size(), 3U);
}

} // namespace
} // namespace weir::rpc::ring_orders_test
