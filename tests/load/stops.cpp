// SPDX-License-Identifier: BSD-3-Clause
#include "stops.hpp"

#include "lab.hpp"
#include "often.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <thread>
#include <vector>

namespace weir::load {
namespace {

constexpr unsigned kTimes = often(200);
constexpr std::chrono::milliseconds kQuestionTimeout{500}; // for each question
constexpr std::chrono::microseconds kPause{500}; // so that lcores have a few rounds in between

struct Question {
  std::string_view words;
  void (*ask)(control::Switch& weir);
};

constexpr std::array kQuestions{
    Question{"accounting", [](control::Switch& weir) { weir.inspector().accounting(); }},
    Question{"lcores", [](control::Switch& weir) { weir.inspector().lcores(); }},
    Question{"ring all", [](control::Switch& weir) { weir.inspector().rings(); }},
    Question{"ring 1 stuck", [](control::Switch& weir) { weir.inspector().stuck_slots(kRing, 4); }},
    Question{"conn all", [](control::Switch& weir) { weir.inspector().connections(); }},
    Question{"trace", [](control::Switch& weir) { weir.traces().records(); }},
};

/// Nanoseconds, one value for each stop and lcore.
struct Durations {
  std::vector<std::uint64_t> all_ran;    // all lcores and the asking thread kept their CPUs
  std::vector<std::uint64_t> others_not; // this lcore kept its CPU, another thread did not
  std::vector<std::uint64_t> itself_not;
};

void ask_once(control::Switch& weir, const Question& question, Durations& durations) {
  question.ask(weir);
  bool all_ran = weir.inspector().stop_times().kept_cpu;
  const std::vector<control::LcoreSnapshot> lcores = weir.inspector().lcores();
  for (const control::LcoreSnapshot& lcore : lcores) {
    all_ran = all_ran && lcore.rounds.last_stop.kept_cpu;
  }
  for (const control::LcoreSnapshot& lcore : lcores) {
    const lcore::Stop& stop = lcore.rounds.last_stop;
    auto& which = all_ran         ? durations.all_ran
                  : stop.kept_cpu ? durations.others_not
                                  : durations.itself_not;
    which.push_back(stop.ns);
  }
}

void print(std::string_view which, std::vector<std::uint64_t>& ns) {
  if (ns.empty()) {
    fmt::print("    {}: none\n", which);
    return;
  }
  std::sort(ns.begin(), ns.end());
  const auto microseconds = [&](double share) {
    const auto last = static_cast<double>(ns.size() - 1);
    return static_cast<double>(ns[static_cast<std::size_t>(share * last)]) / 1000;
  };
  fmt::print("    {}: {}, p50 {:.1f}, p99 {:.1f}, max {:.1f} us\n", which, ns.size(),
             microseconds(0.5), microseconds(0.99), microseconds(1));
}

} // namespace

void print_stops(control::Switch& weir) {
  weir.traces().switch_on();
  for (const Question& question : kQuestions) {
    Durations durations;
    const auto end = std::chrono::steady_clock::now() + kQuestionTimeout;
    for (unsigned times = 0; times < kTimes && std::chrono::steady_clock::now() < end; ++times) {
      std::this_thread::sleep_for(kPause);
      ask_once(weir, question, durations);
    }
    fmt::print("  show {}: for how long an lcore stood still\n", question.words);
    print("no thread lost its CPU", durations.all_ran);
    print("another one did", durations.others_not);
    print("it did itself", durations.itself_not);
  }
  weir.traces().switch_off();
}

} // namespace weir::load
