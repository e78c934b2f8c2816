// SPDX-License-Identifier: BSD-3-Clause

/// One rank of beside.py: RANK WORLD RENDEZVOUS INTERFACE ADDRESS WINDOW MESSAGE_BYTES MTU WAY
/// RING...
///
/// Forms a group on each ring, the first one at the rendezvous' port, each other one at the next.
/// A call is waited for by its caller ("wait") or ends in a callback ("callback"): then the
/// library's threads drive the groups. Does what the lines of standard input tell, and answers each
/// by one.
///
///   small BYTES CALLS   all-reduces of the first group: median, 99th percentile, longest, and CPU
///                       time of the process for each, in us
///   start BYTES         all-reduces of the last group, again and again, by a thread of their own
///   stop                ends them when all ranks have said so: how many there were, and seconds

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <thread>
#include <vector>
#include <weir/weir.hpp>

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// How a call is waited for.
enum class Way : std::uint8_t { wait, callback };

void add_up(weir::Group& group, std::vector<std::int32_t>& values, Way way) {
  if (way == Way::wait) {
    group.all_reduce(values.data(), values.data(), values.size(), WEIR_I32, WEIR_SUM);
    return;
  }
  std::mutex mutex;
  std::condition_variable changed;
  bool is_over = false;
  weir::Request request =
      group.start_all_reduce(values.data(), values.data(), values.size(), WEIR_I32, WEIR_SUM);
  request.on_done([&](auto&&...) {
    const std::lock_guard lock(mutex);
    is_over = true;
    changed.notify_one();
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return is_over; });
  request.wait();
}

class Rank {
 public:
  explicit Rank(std::span<char*> arguments);

  void obey(const std::string& line);

 private:
  void small(std::size_t bytes, int calls);
  void start(std::size_t bytes);
  void stop();

  const weir::Context context_;
  const Way way_;
  std::vector<weir::Group> groups_;
  std::thread large_;
  std::atomic<bool> is_told_to_stop_ = false;
  long calls_ = 0; // large ones
  double seconds_ = 0;
};

weir::ContextOptions device_of(std::span<char*> arguments) {
  weir::ContextOptions device;
  device.device = arguments[3];
  device.ip = arguments[4];
  return device;
}

Rank::Rank(std::span<char*> arguments)
    : context_(device_of(arguments)),
      way_(std::string_view(arguments[8]) == "wait" ? Way::wait : Way::callback) {
  weir::GroupOptions options;
  options.rank = static_cast<std::uint16_t>(std::atoi(arguments[0]));
  options.world = static_cast<std::uint16_t>(std::atoi(arguments[1]));
  options.window = static_cast<std::uint32_t>(std::atoi(arguments[5]));
  options.message_bytes = static_cast<std::uint32_t>(std::atoi(arguments[6]));
  options.path_mtu = static_cast<std::uint32_t>(std::atoi(arguments[7]));
  options.timeout_ms = 30000;
  const std::string place = arguments[2];
  const std::size_t colon = place.rfind(':') + 1;
  int port = std::atoi(place.c_str() + colon);
  for (const char* const text : arguments.subspan(9)) {
    const std::string rendezvous = place.substr(0, colon) + std::to_string(port++);
    const auto ring = static_cast<std::uint32_t>(std::atoi(text));
    options.rendezvous = rendezvous.c_str();
    options.rings = &ring;
    options.ring_count = 1;
    groups_.emplace_back(context_, options);
  }
}

void Rank::obey(const std::string& line) {
  std::istringstream words(line);
  std::string what;
  std::size_t bytes = 0;
  int calls = 0;
  words >> what >> bytes >> calls;
  if (what == "small") {
    small(bytes, calls);
  } else if (what == "start") {
    start(bytes);
  } else {
    stop();
  }
}

void Rank::small(std::size_t bytes, int calls) {
  std::vector<std::int32_t> values(bytes / sizeof(std::int32_t));
  std::vector<double> times;
  const double cpu = cpu_seconds();
  for (int call = 0; call < calls; ++call) {
    const Clock::time_point begin = Clock::now();
    add_up(groups_.front(), values, way_);
    times.push_back(1e6 * seconds_since(begin));
  }
  const double own = 1e6 * (cpu_seconds() - cpu) / calls;
  std::ranges::sort(times);
  const auto share = [&](double part) {
    return times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
  };
  std::printf("%.1f %.1f %.1f %.1f\n", share(0.5), share(0.99), times.back(), own);
}

void Rank::start(std::size_t bytes) {
  is_told_to_stop_ = false;
  large_ = std::thread([this, bytes] {
    std::vector<std::int32_t> values(bytes / sizeof(std::int32_t));
    const Clock::time_point begin = Clock::now();
    calls_ = 0;
    do { // until one rank says so, on which all agree
      values.front() = is_told_to_stop_ ? 1 : 0;
      add_up(groups_.back(), values, way_);
      ++calls_;
    } while (values.front() == 0);
    seconds_ = seconds_since(begin);
  });
  std::puts("0");
}

void Rank::stop() {
  is_told_to_stop_ = true;
  large_.join();
  std::printf("%ld %.6f\n", calls_, seconds_);
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 11) {
    std::puts("beside_rank: see the head of its source");
    return 2;
  }
  setlinebuf(stdout);
  try {
    Rank rank(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
    std::puts("ready");
    for (std::string line; std::getline(std::cin, line);) {
      rank.obey(line);
    }
    return 0;
  } catch (const weir::Error& error) {
    std::printf("%s: %s\n", weir_status_name(error.status()), error.what());
    return 1;
  }
}
