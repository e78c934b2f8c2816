// SPDX-License-Identifier: BSD-3-Clause
#include "campaign.hpp"

#include "simulation.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <thread>
#include <unistd.h>
#include <vector>

namespace weir::fabric {
namespace {

constexpr std::uint64_t kRepeatEvery = 64; // these seeds run twice, for I8
constexpr std::uint64_t kTreeEvery = 48;   // they take longer
constexpr std::uint64_t kTreeSeed = 17;    // the first one: none that runs twice
constexpr std::chrono::seconds kTellEvery{5};

thread_local volatile std::uint64_t seed_under_way = 0;

/// Prints the seed before the process ends.
void note_crash(int signal) {
  char text[96];
  const int length = std::snprintf(text, sizeof text, "\nseed %llu: I4 violated: signal %d\n",
                                   static_cast<unsigned long long>(seed_under_way), signal);
  [[maybe_unused]] const ssize_t written =
      write(STDOUT_FILENO, text, static_cast<std::size_t>(length));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

Topology topology_of(std::uint64_t seed, Mix mix) {
  const bool is_tree = mix == Mix::trees || (mix == Mix::some && seed % kTreeEvery == kTreeSeed);
  return is_tree ? Topology::tree : Topology::star;
}

Outcome run_seed(std::uint64_t seed, Topology topology, Tracing tracing, Coverage& coverage) {
  seed_under_way = seed;
  return Simulation(seed, topology, tracing, coverage).run();
}

/// Runs the seed once, and every kRepeatEvery-th seed a second time for I8.
Outcome examine(std::uint64_t seed, Topology topology, Tracing tracing, Coverage& coverage) {
  Outcome outcome = run_seed(seed, topology, tracing, coverage);
  if (outcome.is_sound() && seed % kRepeatEvery == 0) {
    Coverage unused;
    const Outcome again = run_seed(seed, topology, Tracing::off, unused);
    if (again.hash != outcome.hash) {
      return {outcome.hash, "I8",
              fmt::format("the same seed gave {:#x}, then {:#x}", outcome.hash, again.hash)};
    }
  }
  return outcome;
}

} // namespace

void report_crashes() {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    std::signal(signal, note_crash);
  }
}

void Campaign::run() {
  began_ = told_ = Clock::now();
  std::vector<std::thread> others;
  for (unsigned i = 1; i < plan_.jobs; ++i) {
    others.emplace_back([this] { work(); });
  }
  work();
  for (std::thread& other : others) {
    other.join();
  }
}

void Campaign::work() {
  Coverage reached;
  while (const auto seed = next_seed()) {
    const Outcome outcome = examine(*seed, topology_of(*seed, plan_.mix), plan_.tracing, reached);
    note(*seed, outcome.is_sound()
                    ? std::string()
                    : fmt::format("{} violated: {}", outcome.invariant, outcome.text));
  }
  const std::scoped_lock lock(mutex_);
  coverage_ += reached;
}

std::optional<std::uint64_t> Campaign::next_seed() {
  if (is_stopped_) {
    return std::nullopt;
  }
  const std::uint64_t dealt = dealt_++;
  const bool is_over = plan_.minutes ? seconds() >= *plan_.minutes * 60 : dealt >= plan_.count;
  return is_over ? std::nullopt : std::optional(plan_.first + dealt);
}

/// `failure` is empty when the seed has passed.
void Campaign::note(std::uint64_t seed, const std::string& failure) {
  const std::scoped_lock lock(mutex_);
  ++done_;
  if (!failure.empty()) {
    ++failed_;
    is_stopped_ = plan_.on_failure == OnFailure::stop;
    fmt::print("\nseed {}: {}\nreplay: {} --seed {}{} --trace\n", seed, failure, plan_.program,
               seed, plan_.mix == Mix::trees ? " --switches trees" : "");
    std::fflush(stdout);
  }
  if (Clock::now() - told_ >= kTellEvery) {
    told_ = Clock::now();
    tell_progress();
  }
}

void Campaign::tell_progress() {
  fmt::print("{} seeds, {} failed, {:.0f} seeds/s, {:.0f} s left\n", done_, failed_,
             static_cast<double>(done_) / seconds(), seconds_left());
  std::fflush(stdout);
}

double Campaign::seconds_left() const {
  if (plan_.minutes) {
    return *plan_.minutes * 60 - seconds();
  }
  return seconds() * static_cast<double>(plan_.count - done_) / static_cast<double>(done_);
}

double Campaign::seconds() const {
  return std::chrono::duration<double>(Clock::now() - began_).count();
}

} // namespace weir::fabric
