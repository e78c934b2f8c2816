// SPDX-License-Identifier: BSD-3-Clause

/// Who may order what becomes of a ring, while somebody else makes or changes this very ring. A
/// switch with EAL, lcores and a journal. This program's fsync(2) holds up who writes the journal:
/// there a ring is about to be made, and its maker has the lock.

#include "control/switch.hpp"
#include "rpc/switch_backend.hpp"
#include "rpc/tenant_backend.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rte_eal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <mutex>
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

Gate& gate() {
  static Gate one;
  return one;
}

} // namespace

extern "C" int fsync(int file) {
  gate().pass();
  return static_cast<int>(syscall(SYS_fsync, file));
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

/// A switch with the tenants red and blue, and the configured ring 50.
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
                                         "  {{ name: green, hosts: [10.60.0.0/16] }}]\n"
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
  gate().shut();
  auto made = std::async(std::launch::async, making);
  gate().wait_until_reached();
  auto ordered = std::async(std::launch::async, [&order]() -> std::string {
    try {
      order();
      return "done";
    } catch (const std::exception& error) {
      return error.what();
    }
  });
  ordered.wait_for(kForTheQuestion);
  gate().open();
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

} // namespace
} // namespace weir::rpc::ring_orders_test
