// SPDX-License-Identifier: BSD-3-Clause
#include "control/cpus.hpp"

#include "text/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <optional>
#include <pthread.h>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <thread>

namespace weir::control {
namespace {

constexpr std::uint32_t kTripsPerTry = 200;
constexpr auto kTime = std::chrono::milliseconds(2);

unsigned number_in(std::string_view text, std::string_view list) {
  const auto number = text::parsed<unsigned>(text);
  if (!number) {
    throw std::invalid_argument(
        fmt::format("list of CPUs: found \"{}\"; allowed: numbers and ranges, as 0-3,8", list));
  }
  return *number;
}

std::optional<std::string> line_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  return std::getline(stream, line) ? std::optional(line) : std::nullopt;
}

/// Of cpuN/nodeM.
int node_of(const std::filesystem::path& cpu) {
  constexpr std::string_view prefix = "node";
  for (const auto& entry : std::filesystem::directory_iterator(cpu)) {
    const std::string name = entry.path().filename().string();
    const auto number = name.starts_with(prefix)
                            ? text::parsed<unsigned>(std::string_view(name).substr(prefix.size()))
                            : std::nullopt;
    if (number) {
      return static_cast<int>(*number);
    }
  }
  return kNoNode;
}

/// A cache line that two threads take from each other.
class Ball {
 public:
  /// For the first thread, until the time is over.
  double best_round_trip_ns() {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + kTime;
    double best = 0;
    for (auto begin = Clock::now(); begin < end;) {
      play();
      const auto now = Clock::now();
      const double ns = std::chrono::duration<double, std::nano>(now - begin).count();
      best = best == 0 ? ns / kTripsPerTry : std::min(best, ns / kTripsPerTry);
      begin = now;
    }
    at_.store(kEnd, std::memory_order_release);
    return best;
  }

  /// For the other one.
  void return_it() {
    for (std::uint32_t seen = 0; seen != kEnd;) {
      seen = at_.load(std::memory_order_acquire);
      if (seen % 2 == 1 && seen != kEnd) {
        at_.store(seen + 1, std::memory_order_release);
      }
    }
  }

 private:
  static constexpr std::uint32_t kEnd = UINT32_MAX;

  void play() {
    for (std::uint32_t trip = 0; trip < kTripsPerTry; ++trip) {
      at_.store(2 * trip + 1, std::memory_order_release);
      while (at_.load(std::memory_order_acquire) != 2 * trip + 2) {
      }
    }
  }

  alignas(64) std::atomic<std::uint32_t> at_{0};
};

void stay_on(unsigned cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

} // namespace

std::vector<unsigned> cpus_in_list(std::string_view list) {
  std::vector<unsigned> cpus;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view part = list.substr(begin, end - begin);
    const std::size_t dash = part.find('-');
    const unsigned first = number_in(part.substr(0, dash), list);
    const unsigned last =
        dash == std::string_view::npos ? first : number_in(part.substr(dash + 1), list);
    for (unsigned cpu = first; cpu <= last; ++cpu) {
      cpus.push_back(cpu);
    }
    begin = end + 1;
  }
  return cpus;
}

std::optional<Cpu> cpu_of(unsigned id, const std::filesystem::path& root) {
  const std::filesystem::path cpu = root / fmt::format("cpu/cpu{}", id);
  if (!std::filesystem::is_directory(cpu)) {
    return std::nullopt;
  }
  const auto siblings = cpus_in_list(line_of(cpu / "topology/thread_siblings_list").value_or(""));
  return Cpu{
      .id = id, .core = siblings.empty() ? id : std::ranges::min(siblings), .node = node_of(cpu)};
}

std::vector<Cpu> cpus_of_this_process(const std::filesystem::path& root) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) {
    return {};
  }
  std::vector<Cpu> cpus;
  for (unsigned id = 0; id < CPU_SETSIZE; ++id) {
    if (const auto cpu = CPU_ISSET(id, &mine) ? cpu_of(id, root) : std::nullopt) {
      cpus.push_back(*cpu);
    }
  }
  return cpus;
}

double line_round_trip_ns(unsigned one, unsigned other) {
  Ball ball;
  double ns = 0;
  std::thread partner([&] {
    stay_on(other);
    ball.return_it();
  });
  std::thread([&] {
    stay_on(one);
    ns = ball.best_round_trip_ns();
  }).join();
  partner.join();
  return ns;
}

} // namespace weir::control
