// SPDX-License-Identifier: BSD-3-Clause

/// weir-manager: gives groups of ranks their rings on a fabric of switches.

#include "complaint.hpp"
#include "exit_status.hpp"
#include "file_limit.hpp"
#include "manager/certificate_ends.hpp"
#include "manager/kept_answer.hpp"
#include "manager/manager.hpp"
#include "manager/picture_page.hpp"
#include "net/http_responder.hpp"
#include "option_table.hpp"
#include "output.hpp"
#include "text/printable.hpp"
#include "yaml/error.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <pthread.h>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace weir;
using app::kExitFailure;
using app::kExitUsage;
using app::raise_file_limit;
using app::UsageError;

constexpr int kExitFenced = 3;
constexpr int kExitFollowed = 4;

constexpr const char* kHead =
    "usage: weir-manager [OPTION...] CONFIG\n"
    "\n"
    "Gives groups of ranks their rings on a fabric of switches: finds trees, has the switches make "
    "the\n"
    "rings, watches them and takes them down. No packet passes it.\n"
    "\n";
constexpr const char* kTail =
    "\n"
    "Exit status: 0 after SIGTERM or SIGINT; 1 when it cannot begin; 2 for wrong options or a "
    "wrong\n"
    "configuration; 3 when it led, and switches know a later term than its store; 4 when it led, "
    "and its\n"
    "store, too, says that it leads no more: started again it stands by. The same after `weirctl "
    "fabric\n"
    "claim`: started again it leads.\n";

struct Options {
  bool is_check = false;
  jobs::Origin origin = jobs::Origin::managers;
};

std::vector<app::Option> options_of(Options& options) {
  return {{"check", nullptr, "read the configuration and its topology, say what is wrong, and end",
           [&](auto) { options.is_check = true; }},
          {"restored", nullptr,
           "the store was restored from a backup: give no orders before `weirctl fabric claim`",
           [&](auto) { options.origin = jobs::Origin::backup; }}};
}

/// The log: a line for each thing that an operator should know.
void note(const std::string& kind, const std::string& sentence) {
  fmt::print(stderr, "weir-manager: {}: {}\n", kind, text::printable(sentence));
  std::fflush(stderr);
}

/// Signals that end the manager come to the thread that waits for them here.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGUSR1); // no signal of anybody: the wait's end
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

/// What browsers and Prometheus ask for.
class Pages {
 public:
  Pages(manager::Manager& manager, const std::string& listen)
      : answer_([&manager] { return manager.view(); }),
        responder_(net::ListeningSocket::at_address(listen), pages()) {}

 private:
  using Answer = manager::Manager::Answer;
  using Text = net::HttpPage::Text;

  std::vector<net::HttpPage> pages() {
    const std::string more(manager::page_header());
    return {{"/metrics", "text/plain; version=0.0.4; charset=utf-8",
             [this] { return text_of([](const Answer& answer) { return answer.metrics; }); }},
            {"/fabric", "text/html; charset=utf-8",
             [this] {
               return text_of([](const Answer& answer) {
                 return answer.standby ? manager::page_of(*answer.standby, answer.drawn)
                                       : manager::page_of(answer.picture, answer.drawn);
               });
             },
             more},
            {"/fabric.css", "text/css; charset=utf-8", fixed(manager::page_style()), more},
            {"/fabric.js", "text/javascript; charset=utf-8",
             fixed(std::string(manager::page_script())), more}};
  }

  static std::function<Text()> fixed(std::string text) {
    return [text = std::make_shared<const std::string>(std::move(text))] { return text; };
  }

  Text text_of(std::string (*text)(const Answer& answer)) {
    const auto answer = answer_.get();
    return answer ? std::make_shared<const std::string>(text(*answer)) : nullptr;
  }

  manager::KeptAnswer<Answer> answer_; // asked by the responder's thread
  net::HttpResponder responder_;
};

/// Does something when a signal comes, as long as it is there.
class SignalWaiter {
 public:
  SignalWaiter(const sigset_t& signals, std::function<void()> when_it_comes)
      : thread_([signals, when_it_comes = std::move(when_it_comes)] {
          int signal = 0;
          sigwait(&signals, &signal);
          when_it_comes();
        }) {}

  ~SignalWaiter() {
    pthread_kill(thread_.native_handle(), SIGUSR1);
    thread_.join();
  }

  SignalWaiter(const SignalWaiter&) = delete;
  SignalWaiter& operator=(const SignalWaiter&) = delete;

 private:
  std::thread thread_;
};

int lead(const manager::Config& config, jobs::Origin origin) {
  raise_file_limit(); // callers by the network have 1024, by Unix sockets 256; then switches
  const sigset_t signals = block_signals();
  manager::Manager manager(config, origin, note);
  std::optional<Pages> pages;
  if (!config.metrics.empty()) {
    pages.emplace(manager, config.metrics);
  }
  const SignalWaiter waiter(signals, [&] { manager.stop(); });
  const manager::Manager::End end = manager.run();
  if (!end.fenced.empty()) {
    note("fenced", end.fenced);
    return end.is_followed ? kExitFollowed : kExitFenced;
  }
  if (!end.claimed.empty()) {
    note("claimed", end.claimed);
    return kExitFollowed;
  }
  return EXIT_SUCCESS;
}

int run(const Options& options, const app::CommandLine& line) {
  if (line.words.size() != 1) {
    throw UsageError(
        fmt::format("found {} words; allowed: one, the configuration's file", line.words.size()));
  }
  const manager::Config config = manager::load_config(std::string(line.words.front()));
  const std::vector<std::string> warnings = manager::warnings_of(manager::certificate_ends(config));
  for (const std::string& warning : warnings) {
    note("certificate", warning);
  }
  if (options.is_check) {
    app::print(fmt::format("{}: {} switches, {} addresses of hosts, {} tenants\n",
                           config.site.fabric, config.site.index().switches(),
                           config.site.endpoints.size(), config.site.tenants.size()));
    return EXIT_SUCCESS;
  }
  return lead(config, options.origin);
}

} // namespace

int main(int argc, char** argv) {
  try {
    Options options;
    const app::CommandLine line = app::read_command_line({argv, static_cast<std::size_t>(argc)},
                                                         {"weir-manager", kHead, kTail},
                                                         options_of(options), app::WordOrder::last);
    return run(options, line);
  } catch (const UsageError& error) {
    app::complain("weir-manager", error.what());
    return kExitUsage;
  } catch (const yaml::Error& error) {
    app::complain("weir-manager", error.what());
    return kExitUsage;
  } catch (const std::exception& error) {
    app::complain("weir-manager", error.what());
    return kExitFailure;
  }
}
