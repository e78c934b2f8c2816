// SPDX-License-Identifier: BSD-3-Clause

/// weir-nccl-check: whether NCCL's plug-in of Weir sums here, told without NCCL and without a GPU.

#include "complaint.hpp"
#include "exit_status.hpp"
#include "fatal_signals.hpp"
#include "local_ranks.hpp"
#include "nccl_check/meeting.hpp"
#include "nccl_check/options.hpp"
#include "nccl_check/rank.hpp"
#include "output.hpp"
#include "usage_error.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <thread>

namespace {

using namespace weir;
using nccl_check::MeetingPlace;
using nccl_check::Options;
using nccl_check::Place;

constexpr const char* kProgram = "weir-nccl-check";
constexpr const char* kLoopback = "127.0.0.1";

/// Where rank 0 listens, told to the other ranks of this machine by memory that all have.
class SharedPort {
 public:
  SharedPort()
      : port_(new (mapped_page()) std::atomic<std::uint32_t>(0)) {
  } // until all processes have ended

  void tell(std::uint16_t port) { *port_ = port; }

  void tell_that_there_is_none() { *port_ = kNone; }

  std::uint16_t wait(host::Deadline deadline) const {
    while (*port_ == 0 || *port_ == kNone) {
      if (*port_ == kNone || host::Clock::now() >= deadline) {
        throw std::runtime_error("rank 0 does not listen");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return static_cast<std::uint16_t>(*port_);
  }

 private:
  static constexpr std::uint32_t kNone = 1U << 16;

  static void* mapped_page() {
    void* const page = mmap(nullptr, sizeof(std::atomic<std::uint32_t>), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
      throw std::bad_alloc();
    }
    return page;
  }

  std::atomic<std::uint32_t>* port_;
};

void set_rank_in(const char* variable, std::uint32_t rank) {
  constexpr std::string_view mark = "%r";
  const char* const given = std::getenv(variable);
  std::string value = given == nullptr ? "" : given;
  bool is_changed = false;
  for (auto at = value.find(mark); at != std::string::npos; at = value.find(mark)) {
    value.replace(at, mark.size(), std::to_string(rank));
    is_changed = true;
  }
  if (is_changed) {
    setenv(variable, value.c_str(), 1);
  }
}

/// Lines NAME=VALUE, as NCCL reads them: what is set stays.
void read_settings(const std::string& file) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find('=');
    if (equals != std::string::npos && !line.starts_with('#')) {
      setenv(line.substr(0, equals).c_str(), line.substr(equals + 1).c_str(), 0);
    }
  }
}

/// As NCCL finds it, its user's file first.
void set_environment(std::uint32_t rank) {
  const char* const given = std::getenv("NCCL_CONF_FILE");
  const char* const home = std::getenv("HOME");
  read_settings(given != nullptr ? given
                                 : std::string(home == nullptr ? "" : home) + "/.nccl.conf");
  read_settings("/etc/nccl.conf");
  setenv("NCCL_COLLNET_ENABLE", "1", 0);
  for (const char* variable : {"WEIR_DEVICE", "WEIR_IP", "WEIR_MAC"}) {
    set_rank_in(variable, rank);
  }
}

/// Its other end of the meeting is rank 0's own, too.
void host_and_check(const Options& options, MeetingPlace& place, Place own,
                    const host::Endpoint& meet) {
  const std::jthread host([&] {
    try {
      place.serve(host::deadline_after(host::Clock::now(), options.wait));
    } catch (const std::exception& error) {
      app::complain(kProgram, error.what());
    }
  });
  nccl_check::check_rank(options, own, meet);
}

void run_one(const Options& options) {
  const Place own{*options.rank, options.ranks};
  if (own.rank != 0) {
    return nccl_check::check_rank(options, own, *options.meet);
  }
  MeetingPlace place(*options.meet, own.ranks);
  host_and_check(options, place, own, *options.meet);
}

void run_local(const Options& options, SharedPort& port, Place own) {
  if (own.rank != 0) {
    const auto deadline = host::deadline_after(host::Clock::now(), options.wait);
    return nccl_check::check_rank(options, own, {kLoopback, std::to_string(port.wait(deadline))});
  }
  std::optional<MeetingPlace> place;
  try {
    place.emplace(host::Endpoint{kLoopback, "0"}, own.ranks);
  } catch (const std::exception&) {
    port.tell_that_there_is_none();
    throw;
  }
  port.tell(place->port());
  host_and_check(options, *place, own, {kLoopback, std::to_string(place->port())});
}

int status_of(const std::function<void()>& body, std::string_view who) {
  try {
    body();
    app::finish_output();
    return EXIT_SUCCESS;
  } catch (const app::UsageError& error) {
    app::complain(kProgram, error.what());
    return app::kExitUsage;
  } catch (const std::exception& error) {
    app::complain(kProgram, fmt::format("{}{}", who, error.what()));
    return app::kExitFailure;
  }
}

int run(const Options& options) {
  if (options.rank) {
    return status_of(
        [&] {
          set_environment(*options.rank);
          run_one(options);
        },
        fmt::format("rank {}: ", *options.rank));
  }
  SharedPort port;
  return app::run_local_ranks(kProgram, 0, options.ranks, [&](std::uint16_t rank) {
    return status_of(
        [&] {
          set_environment(rank);
          run_local(options, port, {rank, options.ranks});
        },
        fmt::format("rank {}: ", rank));
  });
}

} // namespace

int main(int argc, char** argv) {
  app::name_fatal_signals(kProgram);
  int status = EXIT_SUCCESS;
  const int usage = status_of([&] { status = run(nccl_check::parse_options(argc, argv)); }, "");
  return usage == EXIT_SUCCESS ? status : usage;
}
