// SPDX-License-Identifier: BSD-3-Clause

/// load_test [--roles NAME] [--seconds N] [--questions measured]: the switch on several lcores,
/// overloaded and then without mbufs. docs/testing.md lists what it checks. Ends in "load: N
/// passed, N failed, 0 skipped".

#include "coming_port.hpp"
#include "coming_rings.hpp"
#include "control/lease_monitor.hpp"
#include "control/monitor.hpp"
#include "frame/frame.hpp"
#include "grace_check.hpp"
#include "handoff_check.hpp"
#include "job.hpp"
#include "lcore/happens_before.hpp"
#include "leaving_hosts.hpp"
#include "mempool_drainer.hpp"
#include "noise.hpp"
#include "often.hpp"
#include "report/questions.hpp"
#include "stops.hpp"
#include "stream.hpp"
#include "support/comes_true.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace weir;
using namespace weir::load;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLook{500};
constexpr milliseconds kCapture{50};
constexpr std::uint64_t kCaptured = 5000; // packets at most
constexpr int kCaptures = 8;
constexpr std::uint64_t kHandoffs = often(200'000);
constexpr std::chrono::seconds kDry{1};
constexpr std::chrono::seconds kShared{1};
/// Time for a port to fill up. Under ThreadSanitizer it often never fills, and nothing is judged
/// then.
constexpr std::chrono::seconds kUntilFull{lcore::kUnderThreadSanitizer ? 2 : 60};
constexpr std::uint16_t kBulkMember = 1;
constexpr unsigned kLeavingHosts = often(30);
constexpr std::size_t kMiB = std::size_t{1} << 20;
#ifdef WEIR_THREAD_SANITIZER
constexpr std::size_t kGrowth = 1024 * kMiB; // ThreadSanitizer's shadow memory
#else
constexpr std::size_t kGrowth = 8 * kMiB; // allowed growth of resident memory
#endif

/// Drop reasons that overload may cause: full queues, and a ring's after a loss.
constexpr std::array kExpectedDrops{
    DropReason::worker_queue_full, DropReason::tx_queue_full,   DropReason::tx_backlog_full,
    DropReason::unclassified,      DropReason::repeat_held,     DropReason::repeat_swallowed,
    DropReason::nak_mended,        DropReason::unknown_message, DropReason::ring_queue_full,
};

/// Whether it is also printed for how long an lcore stands still for a question.
enum class Questions : std::uint8_t { checked, measured };

struct Options {
  Roles roles = Roles::pipeline;
  unsigned seconds = 5;
  Questions questions = Questions::checked;
};

Questions questions_named(std::string_view name) {
  if (name != "checked" && name != "measured") {
    throw std::invalid_argument(
        fmt::format("--questions: found {}; allowed: checked, measured", name));
  }
  return name == "checked" ? Questions::checked : Questions::measured;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    if (i + 1 < argc && option == "--roles") {
      options.roles = roles_named(argv[i + 1]);
    } else if (i + 1 < argc && option == "--seconds") {
      options.seconds = static_cast<unsigned>(std::stoul(argv[i + 1]));
    } else if (i + 1 < argc && option == "--questions") {
      options.questions = questions_named(argv[i + 1]);
    } else {
      throw std::invalid_argument(fmt::format("found {}; usage: load_test [--roles NAME] "
                                              "[--seconds N] [--questions checked|measured]",
                                              option));
    }
  }
  return options;
}

/// Counts the checks that passed and failed.
class Checks {
 public:
  void expect(bool holds, const std::string& what) {
    ++(holds ? passed_ : failed_);
    fmt::print("  {}  {}\n", holds ? "ok    " : "FAILED", what);
    std::fflush(stdout);
  }

  int report() const {
    fmt::print("load: {} passed, {} failed, 0 skipped\n", passed_, failed_);
    return failed_ == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  }

 private:
  unsigned passed_ = 0;
  unsigned failed_ = 0;
};

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0;
  std::size_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// Touches all packet buffers, so that their first use needs no new page.
void make_pools_resident() {
  const auto populate = [](rte_mempool*, void*, rte_mempool_memhdr* chunk, unsigned) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<std::uintptr_t>(chunk->addr) / page * page;
    const auto end = reinterpret_cast<std::uintptr_t>(chunk->addr) + chunk->len;
    madvise(reinterpret_cast<void*>(first), end - first, MADV_POPULATE_WRITE);
  };
  const auto visit = [](rte_mempool* pool, void* each_chunk) {
    rte_mempool_mem_iter(pool, *static_cast<rte_mempool_mem_cb_t**>(each_chunk), nullptr);
  };
  rte_mempool_mem_cb_t* each_chunk = populate;
  rte_mempool_walk(visit, &each_chunk);
}

std::uint64_t drops_of(control::Switch& weir, DropReason reason) {
  return weir.inspector().accounting().frames.dropped[static_cast<std::size_t>(reason)];
}

/// Prints all drops; returns those with a reason that overload does not explain.
std::string unexpected_drops(control::Switch& weir) {
  std::string names;
  const auto frames = weir.inspector().accounting().frames;
  for (std::size_t reason = 0; reason < kDropReasons; ++reason) {
    if (frames.dropped[reason] != 0) {
      fmt::print("  dropped {} {}\n", frames.dropped[reason],
                 name_of(static_cast<DropReason>(reason)));
    }
    const bool is_expected = std::find(kExpectedDrops.begin(), kExpectedDrops.end(),
                                       static_cast<DropReason>(reason)) != kExpectedDrops.end();
    if (frames.dropped[reason] != 0 && !is_expected) {
      names +=
          fmt::format("{} {}, ", name_of(static_cast<DropReason>(reason)), frames.dropped[reason]);
    }
  }
  return names;
}

/// Asks every question while the switch runs.
void ask_everything(control::Switch& weir) {
  weir.traces().switch_on();
  weir.inspector().rings();
  weir.inspector().connections();
  weir.inspector().stuck_slots(kRing, 4);
  weir.inspector().lcores();
  weir.inspector().stations();
  weir.inspector().port_counters(0);
  weir.traces().records();
  weir.traces().switch_off();
}

/// Writes packets to a file for a while; whether it has what it says.
bool captures(control::Switch& weir) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / fmt::format("weir_load_{}.pcapng", getpid());
  weir.captures().start({.file = file, .what = "port all", .filter = {}, .count = kCaptured});
  std::this_thread::sleep_for(kCapture);
  weir.captures().stop();
  std::filesystem::remove(file);
  const capture::Status status = *weir.captures().last();
  return status.state != capture::State::failed && status.written > 0 &&
         (status.state == capture::State::complete) == (status.written == kCaptured);
}

bool captures_again_and_again(control::Switch& weir) {
  bool all = true;
  for (int i = 0; i < kCaptures; ++i) {
    all = captures(weir) && all;
  }
  return all;
}

/// The sum of a counter over all lcores.
std::uint64_t all_lcores(control::Switch& weir, std::uint64_t lcore::RoundCounters::*count) {
  std::uint64_t sum = 0;
  for (const control::LcoreSnapshot& lcore : weir.inspector().lcores()) {
    sum += lcore.rounds.*count;
  }
  return sum;
}

std::uint64_t stops_for(control::Switch& weir, const report::Question& question,
                        std::string_view argument) {
  const std::uint64_t before = weir.inspector().stop_times().stops;
  question.ask(weir, argument, {});
  return weir.inspector().stop_times().stops - before;
}

bool is_as_declared(report::Stops declared, std::uint64_t stops) {
  switch (declared) {
  case report::Stops::none:
    return stops == 0;
  case report::Stops::one:
    return stops == 1;
  case report::Stops::one_at_most:
    return stops <= 1;
  case report::Stops::one_for_each_part:
    return stops > 1;
  }
  return false;
}

/// Checks how often all lcores stop for each answer: as often as the question's row says, for every
/// argument.
void ask_with_few_stops(control::Switch& weir, Checks& checks) {
  for (const report::Question& question : report::questions()) {
    const report::Argument* argument = report::argument_in(question.grammar);
    for (const std::string& value :
         argument == nullptr ? std::vector<std::string>{""} : argument->values(weir, {})) {
      const std::uint64_t stops = stops_for(weir, question, value);
      checks.expect(is_as_declared(question.stops, stops),
                    fmt::format("{} {}: {} stops", question.grammar, value, stops));
    }
  }
}

void print_times(std::string_view what, const frame::Histogram& ns) {
  fmt::print("  {}, by ns below:", what);
  for (std::size_t bucket = 0; bucket < frame::Histogram::kBuckets; ++bucket) {
    if (ns.counts[bucket] != 0) {
      fmt::print(" {}: {}", std::uint64_t{1} << bucket, ns.counts[bucket]);
    }
  }
  fmt::print("\n");
}

/// Only printed: where threads share CPUs, the scheduler decides these times.
void print_stop_times(control::Switch& weir) {
  const lcore::StopTimes times = weir.inspector().stop_times();
  frame::Histogram stood_still;
  for (const control::LcoreSnapshot& lcore : weir.inspector().lcores()) {
    stood_still += lcore.rounds.quiescent_ns;
  }
  fmt::print("  everybody stood still {} times\n", times.stops);
  print_times("until the last one stood", times.gathering);
  print_times("while all of them stood", times.standing);
  print_times("an lcore at a time", stood_still);
}

/// Watches the switch for a while and checks what must always hold.
struct Watch {
  bool balances = true;
  std::uint64_t least_progress = UINT64_MAX; // of the stream: least frames between two looks

  void look(control::Switch& weir, const Stream& stream) {
    const std::uint64_t before = stream.received();
    std::this_thread::sleep_for(kLook);
    least_progress = std::min(least_progress, stream.received() - before);
    balances = balances && weir.inspector().accounting().balances();
    ask_everything(weir);
  }
};

/// The hosts at the switch's ports.
struct Hosts {
  explicit Hosts(const Lab& lab) : stream(lab), noise(lab), job(lab) {}

  Stream stream;
  Noise noise;
  Job job;
};

/// Checks that everything works again after a disturbance.
void recover(Hosts& hosts, Checks& checks) {
  hosts.noise.stop();
  hosts.noise.drain();
  const std::uint32_t rounds = hosts.job.rounds_done();
  const std::uint64_t received = hosts.stream.received();
  checks.expect(test::comes_true([&] { return hosts.job.rounds_done() > rounds + 2; }),
                "the ring goes on afterwards");
  checks.expect(test::comes_true([&] { return hosts.stream.received() > received + 100; }),
                "and so does other traffic");
}

void overload(control::Switch& weir, Hosts& hosts, unsigned seconds, Checks& checks) {
  hosts.noise.start(all_sorts());
  Watch watch;
  const auto look_for = [&](milliseconds time) {
    for (const auto end = Clock::now() + time; Clock::now() < end;) {
      watch.look(weir, hosts.stream);
    }
  };
  const bool captured = captures_again_and_again(weir);
  const milliseconds half(seconds * 500);
  look_for(half);
  const std::size_t resident = resident_bytes();
  look_for(half);
  const std::size_t growth = std::max(resident_bytes(), resident) - resident;
  checks.expect(test::comes_true([&] { return drops_of(weir, DropReason::tx_backlog_full) != 0; }),
                "a port that takes none drops");
  fmt::print("  {} frames of noise taken, {} times refused; {} rounds of the job\n",
             hosts.noise.sent(), hosts.noise.refused(), hosts.job.rounds_done());
  checks.expect(hosts.noise.refused() != 0, "the noise was more than the switch could take");
  checks.expect(drops_of(weir, DropReason::unclassified) != 0, "middles from nowhere are dropped");
  checks.expect(watch.balances, "the accounting balanced whenever it was asked");
  checks.expect(captured, "each capture had its packets and was whole");
  checks.expect(watch.least_progress != 0,
                fmt::format("other traffic went on: {} frames in the worst half second",
                            watch.least_progress));
  checks.expect(growth <= kGrowth, fmt::format("memory stayed flat: {} KiB more", growth / 1024));
  recover(hosts, checks);
}

/// Sends as much other traffic as possible to one member of the ring.
void share_a_link(control::Switch& weir, Hosts& hosts, Checks& checks) {
  const auto of = [&](frame::TrafficClass traffic) {
    return weir.inspector().port_counters(kBulkMember).sent(traffic);
  };
  const auto ring_before = of(frame::TrafficClass::ring);
  const auto other_before = of(frame::TrafficClass::other);
  const std::uint32_t rounds = hosts.job.rounds_done();
  hosts.noise.start(bulk_for(kBulkMember));
  std::this_thread::sleep_for(kShared);
  const bool goes_on = test::comes_true([&] { return hosts.job.rounds_done() > rounds + 2; });
  const bool is_full = test::comes_true(
      [&] { return of(frame::TrafficClass::other).dropped > other_before.dropped; }, kUntilFull);
  const auto ring = of(frame::TrafficClass::ring);
  const auto other = of(frame::TrafficClass::other);
  fmt::print("  a member's port: {} results and answers left, {} dropped; {} others left, {} "
             "dropped; {} rounds of the job\n",
             ring.packets - ring_before.packets, ring.dropped - ring_before.dropped,
             other.packets - other_before.packets, other.dropped - other_before.dropped,
             hosts.job.rounds_done() - rounds);
  if (is_full || !lcore::kUnderThreadSanitizer) {
    checks.expect(is_full, "a member's port had more than it could take");
  } else { // ThreadSanitizer makes the switch slower than the host that reads from the port
    fmt::print("  the port was never full in this build: that bulk starves no ring is not shown\n");
  }
  checks.expect(goes_on && ring.packets > ring_before.packets, "results left all the same");
  checks.expect(ring.dropped == ring_before.dropped, "and none was dropped");
  checks.expect(other.packets > other_before.packets, "the rest was not starved");
  recover(hosts, checks);
}

/// Hosts leave without notice while the switch has frames of theirs.
void depart(const Lab& lab, Hosts& hosts, Checks& checks) {
  const std::uint64_t frames = let_come_and_go(lab, kLeavingHosts);
  checks.expect(frames != 0,
                fmt::format("{} hosts came, sent {} frames and were gone", kLeavingHosts, frames));
  recover(hosts, checks);
}

/// What was dropped since then, but for repeats of what had come: "2 ring_withdrawn, ".
std::string lost_since(const std::array<std::uint64_t, kDropReasons>& before,
                       control::Switch& weir) {
  const auto frames = weir.inspector().accounting().frames;
  std::string lost;
  for (std::size_t reason = 0; reason < kDropReasons; ++reason) {
    const auto name = static_cast<DropReason>(reason);
    const bool is_repeat = name == DropReason::repeat_held || name == DropReason::stale_repeat ||
                           name == DropReason::repeat_swallowed;
    if (!is_repeat && frames.dropped[reason] != before[reason]) {
      lost += fmt::format("{} {}, ", frames.dropped[reason] - before[reason], name_of(name));
    }
  }
  return lost;
}

/// Does `work` while the job and other traffic run: nobody loses a packet by it.
template <typename Work>
void beside_the_job(control::Switch& weir, Hosts& hosts, Checks& checks, Work&& work) {
  const auto drops = weir.inspector().accounting().frames.dropped;
  const std::uint64_t received = hosts.stream.received();
  work();
  const std::string lost = lost_since(drops, weir);
  checks.expect(lost.empty(), "nobody lost a packet meanwhile " + lost);
  checks.expect(test::comes_true([&] { return hosts.stream.received() > received; }),
                "other traffic went on");
  recover(hosts, checks);
}

/// Rings of other hosts are made and withdrawn, also by reloads.
void make_rings(control::Switch& weir, Checks& checks) {
  const ComingRings rings = let_rings_come_and_go(weir);
  const Reloads reloads = reload_again_and_again(weir);
  checks.expect(rings.most_stops == 1,
                fmt::format("{} rings were made in one stop each", rings.made));
  checks.expect(rings.are_gone, "they are gone, and their memory is free");
  checks.expect(reloads.stops == reloads.stops_needed,
                fmt::format("{} reloads took {} stops, and needed {}", reloads.reloads,
                            reloads.stops, reloads.stops_needed));
  checks.expect(reloads.are_as_before, "the last one has brought back what there was");
}

void open_and_close_a_port(control::Switch& weir, Checks& checks) {
  const ComingPort port = let_a_port_come_and_go(weir);
  checks.expect(port.stops == port.stops_needed,
                fmt::format("a port came and went by {} reloads; they took {} stops, and needed {}",
                            port.reloads, port.stops, port.stops_needed));
  checks.expect(port.is_gone, "it is gone");
}

/// The judge sees the ring as it is in the stop in which it would go, and the job is at work.
void keep_the_ring(control::Switch& weir, std::uint32_t ring, Hosts& hosts, Checks& checks) {
  constexpr unsigned times = often(100);
  constexpr std::uint64_t lease_ms = 30'000; // shorter than any machine has been up
  const control::ReclaimLog::Counts before = weir.rings().reclaim_log().counts();
  control::LeaseMonitor leases(weir.rings());
  const control::Monitor monitor(weir.inspector(), {&leases});
  for (unsigned i = 0; i < times; ++i) {
    weir.rings().reclaim_if(ring, [](control::TendedRing seen, std::uint64_t now_ns) {
      seen.spec.lease_ms = lease_ms;
      return control::grounds_to_reclaim(seen, control::Listening(), now_ns);
    });
  }
  checks.expect(weir.rings().reclaim_log().counts() == before,
                "a ring that is in use is not reclaimed");
  recover(hosts, checks);
}

/// Takes all mbufs for less time than the members' queue pairs go on repeating.
void run_dry(control::Switch& weir, Hosts& hosts, Checks& checks) {
  const std::uint64_t starved = all_lcores(weir, &lcore::RoundCounters::starved_rounds);
  Watch watch;
  {
    MempoolDrainer drainer;
    hosts.noise.start(
        all_sorts()); // frames for the station that never receives take the last mbufs
    const auto end = Clock::now() + kDry;
    while (Clock::now() < end) {
      drainer.grab();
      watch.look(weir, hosts.stream);
    }
    fmt::print("  {} of {} mbufs taken away\n", drainer.grab(), weir.inspector().all_mbufs());
  }
  checks.expect(watch.balances, "the accounting balanced whenever it was asked");
  checks.expect(all_lcores(weir, &lcore::RoundCounters::starved_rounds) > starved,
                "rounds without mbufs are counted");
  recover(hosts, checks);
}

void stop(control::Switch& weir, Checks& checks) {
  const std::string unexpected = unexpected_drops(weir);
  checks.expect(unexpected.empty(), "every drop has an expected name " + unexpected);
  weir.stop();
  const auto accounting = weir.inspector().accounting();
  checks.expect(accounting.balances() && accounting.held == 0 && accounting.queued == 0,
                fmt::format("{} frames are accounted for", accounting.frames.received));
  weir.close_ports();
  checks.expect(weir.inspector().free_mbufs() == weir.inspector().all_mbufs(),
                fmt::format("{} of {} mbufs are free", weir.inspector().free_mbufs(),
                            weir.inspector().all_mbufs()));
}

void measure_stops(control::Switch& weir, Questions questions, std::string_view when) {
  if (questions == Questions::measured) {
    fmt::print("  {}\n", when);
    print_stops(weir);
  }
}

int run(const Options& options) {
  Checks checks;
  const Eal eal(options.roles);
  checks.expect(check_handoff(kHandoffs).empty(), "hand-offs keep order and content");
  checks.expect(check_grace_period().empty(), "a burst's memory is not unmapped under it");
  Lab lab(options.roles);
  control::Switch& weir = lab.weir();
  {
    Hosts hosts(lab);
    checks.expect(test::comes_true([&] { return hosts.job.rounds_done() > 0; }), "the job begins");
    make_pools_resident();
    overload(weir, hosts, options.seconds, checks);
    ask_with_few_stops(weir, checks);
    measure_stops(weir, options.questions, "while the job runs");
    beside_the_job(weir, hosts, checks, [&] { make_rings(weir, checks); });
    beside_the_job(weir, hosts, checks, [&] { open_and_close_a_port(weir, checks); });
    keep_the_ring(weir, kRing, hosts, checks);
    share_a_link(weir, hosts, checks);
    depart(lab, hosts, checks);
    for (unsigned times = std::max(1u, options.seconds / 10); times > 0; --times) {
      run_dry(weir, hosts, checks);
    }
    const std::string failure = hosts.job.finish();
    fmt::print("  {} rounds, {} packets sent again; {} of {} frames of other traffic\n",
               hosts.job.rounds_done(), hosts.job.retransmissions(), hosts.stream.received(),
               hosts.stream.sent());
    checks.expect(failure.empty(), "every sum is exact " + failure);
    checks.expect(hosts.stream.late() == 0, "other traffic kept its order");
    if (options.roles == Roles::helped) {
      const std::uint64_t sums = all_lcores(weir, &lcore::RoundCounters::reductions_for_others);
      checks.expect(sums != 0, fmt::format("the worker without a ring made {} sums", sums));
    }
  }
  print_stop_times(weir);
  measure_stops(weir, options.questions, "without traffic");
  stop(weir, checks);
  return checks.report();
}

} // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    fmt::print("load: {}, {} s\n", name_of(options.roles), options.seconds);
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "load_test: {}\n", error.what());
    return 2;
  }
}
