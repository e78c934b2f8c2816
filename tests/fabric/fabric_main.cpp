// SPDX-License-Identifier: BSD-3-Clause

/// Many seeds, or one with a trace. docs/simulation.md says what is simulated.

#include "simulation.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unistd.h>

namespace {

using namespace weir::fabric;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kRepeatEvery = 64; // seeds run twice, for I8
constexpr std::string_view kUsage =
    "usage: fabric_sim [--seeds FIRST:COUNT] [--seed N] [--trace] [--minutes M]\n"
    "                  [--require-coverage] [--keep-going]\n";

struct Options {
  std::uint64_t first = 1;
  std::uint64_t count = 2000;
  std::optional<double> minutes; // instead of the count
  Tracing tracing = Tracing::off;
  bool requires_coverage = false;
  bool keeps_going = false;
};

void parse_seeds(const std::string& text, Options& options) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) {
    throw std::invalid_argument("found --seeds " + text + "; right is FIRST:COUNT");
  }
  options.first = std::stoull(text.substr(0, colon));
  options.count = std::stoull(text.substr(colon + 1));
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    const auto value = [&] {
      if (++i == argc) {
        throw std::invalid_argument(fmt::format("{} wants a value", option));
      }
      return std::string(argv[i]);
    };
    if (option == "--seeds") {
      parse_seeds(value(), options);
    } else if (option == "--seed") {
      options.first = std::stoull(value());
      options.count = 1;
    } else if (option == "--minutes") {
      options.minutes = std::stod(value());
    } else if (option == "--trace") {
      options.tracing = Tracing::on;
    } else if (option == "--require-coverage") {
      options.requires_coverage = true;
    } else if (option == "--keep-going") {
      options.keeps_going = true;
    } else {
      throw std::invalid_argument(fmt::format("found {}\n{}", option, kUsage));
    }
  }
  return options;
}

volatile std::uint64_t seed_under_way = 0;

/// I4: says which seed it was before the process ends.
void note_crash(int signal) {
  char text[96];
  const int length = std::snprintf(text, sizeof text, "\nseed %llu: I4 violated: signal %d\n",
                                   static_cast<unsigned long long>(seed_under_way), signal);
  [[maybe_unused]] const ssize_t written =
      write(STDOUT_FILENO, text, static_cast<std::size_t>(length));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void catch_crashes() {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    std::signal(signal, note_crash);
  }
}

Outcome run_seed(std::uint64_t seed, Tracing tracing, Coverage& coverage) {
  seed_under_way = seed;
  return Simulation(seed, tracing, coverage).run();
}

/// The seed once, and now and then a second time for I8.
Outcome examine(std::uint64_t seed, const Options& options, Coverage& coverage) {
  Outcome outcome = run_seed(seed, options.tracing, coverage);
  if (outcome.is_sound() && seed % kRepeatEvery == 0) {
    Coverage unused;
    const Outcome again = run_seed(seed, Tracing::off, unused);
    if (again.hash != outcome.hash) {
      return {outcome.hash, "I8",
              fmt::format("the same seed gave {:#x}, then {:#x}", outcome.hash, again.hash)};
    }
  }
  return outcome;
}

void report(std::uint64_t seed, const Outcome& outcome, const std::string& program) {
  fmt::print("\nseed {}: {} violated: {}\nreplay: {} --seed {} --trace\n", seed, outcome.invariant,
             outcome.text, program, seed);
  std::fflush(stdout);
}

class Progress {
 public:
  bool is_over(const Options& options, std::uint64_t seeds) const {
    return options.minutes ? seconds() >= *options.minutes * 60 : seeds >= options.count;
  }

  void tell(std::uint64_t seeds, std::uint64_t failed) {
    constexpr auto period = std::chrono::seconds(5);
    if (Clock::now() - told_ >= period) {
      told_ = Clock::now();
      fmt::print("{} seeds, {} failed, {:.0f} seeds/s\n", seeds, failed, rate(seeds));
      std::fflush(stdout);
    }
  }

  double rate(std::uint64_t seeds) const { return static_cast<double>(seeds) / seconds(); }

 private:
  double seconds() const {
    return std::chrono::duration<double>(Clock::now() - began_).count() + 1e-9;
  }

  const Clock::time_point began_ = Clock::now();
  Clock::time_point told_ = began_;
};

int run(const Options& options, const std::string& program) {
  Coverage coverage;
  Progress progress;
  std::uint64_t seeds = 0;
  std::uint64_t failed = 0;
  while (!progress.is_over(options, seeds) && (failed == 0 || options.keeps_going)) {
    const std::uint64_t seed = options.first + seeds;
    const Outcome outcome = examine(seed, options, coverage);
    ++seeds;
    if (!outcome.is_sound()) {
      ++failed;
      report(seed, outcome, program);
    }
    progress.tell(seeds, failed);
  }
  std::uint64_t passed = seeds - failed;
  fmt::print("{}{}", coverage.statistics(), coverage.table());
  if (options.requires_coverage) {
    const std::size_t missing = coverage.missing();
    fmt::print("{} of {} rows reached\n", Coverage::expected() - missing, Coverage::expected());
    failed += missing;
    passed += Coverage::expected() - missing;
  }
  fmt::print("{} seeds from {}, {:.0f} seeds/s\n", seeds, options.first, progress.rate(seeds));
  fmt::print("fabric: {} passed, {} failed, 0 skipped\n", passed, failed);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace

int main(int argc, char** argv) {
  catch_crashes();
  try {
    return run(parse(argc, argv), argv[0]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "fabric_sim: {}\n", error.what());
    return 2;
  }
}
