// SPDX-License-Identifier: BSD-3-Clause

/// weir: the switch.

#include "build_parts.hpp"
#include "check_files.hpp"
#include "check_server.hpp"
#include "command/commands.hpp"
#include "complaint.hpp"
#include "config/config.hpp"
#include "config/keys.hpp"
#include "control/forgotten_rings.hpp"
#include "control/lease_monitor.hpp"
#include "control/link_monitor.hpp"
#include "control/monitor.hpp"
#include "control/own_lcores.hpp"
#include "control/placement.hpp"
#include "control/region_admission.hpp"
#include "control/switch.hpp"
#include "control_events.hpp"
#include "drain.hpp"
#include "ethdev/eal.hpp"
#include "event_monitor.hpp"
#include "events/background_sink.hpp"
#include "exit_status.hpp"
#include "feed_watchdog.hpp"
#include "listeners.hpp"
#include "option_table.hpp"
#include "output.hpp"
#include "process_limits.hpp"
#include "prompt.hpp"
#include "prompt_log.hpp"
#include "reload_on_signal.hpp"
#include "report/answers.hpp"
#include "report/telemetry.hpp"
#include "service_manager.hpp"
#include "text/printable.hpp"

#include <fmt/format.h>
#include <rte_eal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <signal.h>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

using namespace weir;
using app::kExitFailure;
using app::kExitUsage;
using app::UsageError;

constexpr const char* kHead =
    "usage: weir --config FILE [--cmd-file FILE] [--no-interactive] [-- EAL options]\n"
    "       weir --config FILE --dry-run\n"
    "       weir --config FILE --check-server [--json]\n"
    "       weir --check FILE...\n"
    "\n"
    "Forwards Ethernet frames between the ports that FILE names, and adds the tensors of the rings "
    "that it names.\n"
    "On a terminal it shows a prompt; help there lists the commands. SIGHUP has it read FILE "
    "again.\n"
    "\n";

constexpr const char* kTail =
    "\n"
    "SIGINT, SIGTERM and quit let running collectives and regions end (drain_s in FILE); a second "
    "signal does "
    "not.\n"
    "Exit: 0 after SIGINT, SIGTERM or quit, files that are in order, and a machine on which the "
    "switch would start; 1 it failed; 2 wrong usage, a mistake in FILE, too little memory, or a "
    "machine on which it would not start.\n";

struct Options {
  std::string config;
  std::string cmd_file;
  bool interactive = true;
  std::optional<std::string> forgotten_tenant;
  bool checks = false;
  bool is_dry_run = false;  // of config
  bool asks_server = false; // whether it suits config
  app::Form form = app::Form::text;
  std::span<char* const> files; // to check
  std::vector<std::string> eal;
};

std::vector<app::Option> options_of(Options& o) {
  return {
      {"config", "FILE", "ports, lcores and rings (see --keys)", [&](auto v) { o.config = v; }},
      {"cmd-file", "FILE", "prompt commands to run once the switch forwards",
       [&](auto v) { o.cmd_file = v; }},
      {"no-interactive", nullptr, "no prompt: run until SIGINT or SIGTERM",
       [&](auto) { o.interactive = false; }},
      {"dry-run", nullptr,
       "read FILE, tell which lcore would work for which ring, and end: no port is touched",
       [&](auto) { o.is_dry_run = true; }},
      {"check", nullptr,
       "read FILEs, compare those of several switches along their rings' trees (SWITCH.yaml each), "
       "and end: no port is touched",
       [&](auto) { o.checks = true; }},
      {"check-server", nullptr,
       "tell what of this machine suits FILE and what does not, with the commands that mend it, "
       "and "
       "end: no port is touched",
       [&](auto) { o.asks_server = true; }},
      {"json", nullptr, "--check-server answers in JSON", [&](auto) { o.form = app::Form::json; }},
      {"forget-neighbours", "TENANT",
       "forget the tenant's former rings (\"\": those of no tenant) while no switch runs, and end: "
       "only when all their jobs' processes have ended, or their raw data may pass",
       [&](auto v) { o.forgotten_tenant = v; }},
      {"keys", nullptr,
       "print every key of FILE with its meaning, what is allowed, and its default",
       [](auto) { app::print_and_exit(config::keys_as_text()); }},
  };
}

Options parse_options(int argc, char** argv) {
  Options options;
  const app::CommandLine line =
      app::read_command_line({argv, static_cast<std::size_t>(argc)}, {"weir", kHead, kTail},
                             options_of(options), app::WordOrder::last);
  if (options.checks) {
    const auto is_option = [](std::string_view word) { return word.starts_with("-"); };
    if (line.options.size() > 1 ||
        (!line.has_separator && std::ranges::any_of(line.words, is_option))) {
      throw UsageError("--check: found other options; allowed: files alone; see weir --help");
    }
    options.files = line.words;
    return options;
  }
  if (options.config.empty()) {
    throw UsageError("--config is needed; see weir --help");
  }
  if (options.form == app::Form::json && !options.asks_server) {
    throw UsageError("--json: found no --check-server, which it is for; see weir --help");
  }
  if (!line.words.empty() && !line.has_separator) {
    throw UsageError(
        fmt::format("found '{}'; EAL options come after --; see weir --help", line.words.front()));
  }
  options.eal.assign(line.words.begin(), line.words.end());
  return options;
}

std::atomic<bool> stop_requested{false};
std::atomic<bool> stop_at_once{false}; // somebody has asked again

void request_stop(int) {
  if (stop_requested.exchange(true)) {
    stop_at_once = true;
  }
}

void catch_signals() {
  struct sigaction action {};

  action.sa_handler = request_stop;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN); // who reads the log may go
}

/// Whatever this process makes, sockets of DPDK's drivers included, no other user may read, and
/// none but this one may write.
void keep_files_private() {
  umask(umask(S_IRWXO) | S_IWGRP | S_IRWXO);
}

/// For the command line's options. Those of the configuration are checked when it is read.
void refuse_core_options(const std::vector<std::string>& options) {
  for (const std::string& option : options) {
    if (config::sets_lcores(option)) {
      throw UsageError(
          fmt::format("after --: found {}; allowed: {}", option, config::kAllowedEalOptions));
    }
  }
}

void check_cpus(const Options& options, const config::Config& config) {
  if (!std::filesystem::exists("/sys/devices/system/cpu/cpu0")) {
    throw config::ConfigError("lcores: found no /sys/devices/system/cpu, where EAL looks for this "
                              "machine's CPUs; allowed: a container that sees sysfs");
  }
  for (std::size_t i = 0; i < config.lcores.size(); ++i) {
    const config::LcoreConfig& lcore = config.lcores[i];
    if (!std::filesystem::exists(fmt::format("/sys/devices/system/cpu/cpu{}", lcore.id))) {
      const bool is_given = config.lcores_by == config::LcoresBy::file;
      const std::string key = is_given ? fmt::format("lcores[{}].id", i) : "lcores";
      throw config::ConfigError(fmt::format(
          "{}:{}: {}: found {}; allowed: a CPU of this machine, 0 to {}", options.config,
          lcore.line, key, lcore.id, sysconf(_SC_NPROCESSORS_CONF) - 1));
    }
  }
}

/// EAL, while this object lives.
class Eal {
 public:
  Eal(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {
    try {
      ethdev::start_eal(arguments_);
    } catch (const ethdev::EalError& error) {
      if (error.is_mistake()) {
        throw config::ConfigError(fmt::format("eal.options: {}", error.what()));
      }
      throw;
    }
  }

  ~Eal() { ethdev::end_eal(); }

  Eal(const Eal&) = delete;
  Eal& operator=(const Eal&) = delete;

 private:
  std::vector<std::string> arguments_; // EAL keeps pointers into them
};

std::vector<std::string> eal_arguments(const Options& options, const config::Config& config) {
  const ring::RingSet rings(config.rings);
  std::vector<std::string> arguments{"weir", "--lcores",
                                     control::eal_lcores(control::place(config, rings))};
  arguments.insert(arguments.end(), config.eal_options.begin(), config.eal_options.end());
  for (const config::PortConfig& port : config.ports) {
    const bool is_pci = port.device.find(':') < port.device.find(',');
    if (is_pci) {
      arguments.insert(arguments.end(), {"-a", port.device});
    }
  }
  arguments.insert(arguments.end(), options.eal.begin(), options.eal.end());
  return arguments;
}

/// Read before any port is touched, like the configuration. Empty without --cmd-file.
std::vector<std::string> read_command_file(const std::string& file) {
  std::vector<std::string> lines;
  if (file.empty()) {
    return lines;
  }
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  if (!stream.eof()) {
    throw UsageError(fmt::format("--cmd-file {}: cannot be read", file));
  }
  return lines;
}

void add_quit(command::Commands& commands) {
  commands.add({{"quit"}, "stop forwarding and leave", [](const command::Words&) {
                  stop_requested = true;
                  return std::string();
                }});
}

void run_lines(const command::Commands& commands, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    if (stop_requested) {
      break;
    }
    app::say(fmt::format("weir> {}\n{}", text::printable(line), commands.run(line)));
  }
}

void wait_for_signal(control::Reload& reload, app::ServiceManager& service, events::EventLog& log,
                     app::MetricsListener& metrics, app::ControlListener& control) {
  while (!stop_requested) {
    app::reload_if_asked(reload, service, log);
    metrics.try_to_listen();
    control.try_to_listen();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

/// All ports, rings and lcores, for the report at the end.
report::Report everything(control::Switch& weir) {
  report::Report report;
  for (report::Report part : {report::show_port_statistics(weir, "all"),
                              report::show_rings(weir, "all"), report::show_lcores(weir)}) {
    report.insert(report.end(), part.begin(), part.end());
  }
  return report;
}

void tell_refused_settings(const control::Inspector& inspector, events::EventLog& log) {
  for (const auto& port : inspector.ports()) {
    for (const std::string& warning : port->warnings()) {
      log.write({events::EventKind::setting_refused, warning, {{"port", port->name()}}});
    }
  }
}

void tell_numa_crossings(const control::Inspector& inspector, events::EventLog& log) {
  for (const std::string& warning : inspector.numa_warnings()) {
    log.write({events::EventKind::numa_crossing, warning, {}});
  }
}

/// A connection to the switch's machine that breaks does not end anybody's jobs.
void tell_end(app::PromptEnd end, events::EventLog& log) {
  if (end == app::PromptEnd::terminal_gone) {
    log.write({events::EventKind::terminal_gone,
               "the prompt's terminal has gone; the switch goes on without a prompt",
               {}});
  }
}

/// Ends the switch, and tells what it has done.
void stop(control::Switch& weir) {
  const report::Report last_seen = everything(weir);
  weir.stop();
  app::say(fmt::format("\n{}\n{}\n{}", to_text(last_seen), to_text(report::show_accounting(weir)),
                       to_text(report::show_drops(weir))));
  weir.close_ports();
  app::say(fmt::format("\nweir: stopped, {} of {} mbufs free\n", weir.inspector().free_mbufs(),
                       weir.inspector().all_mbufs()));
}

void run_switch(const Options& options, const config::Config& config,
                const std::vector<std::string>& first_commands) {
  const bool has_prompt = options.interactive && isatty(STDIN_FILENO) == 1;
  app::PromptLog prompt_log;
  events::EventLog log(
      has_prompt ? prompt_log.sink()
                 : std::make_unique<events::BackgroundSink>(events::sink_of_this_process()));
  control::Switch weir(config);
  weir.rings().tell_reclaims_to(
      [&log](const control::Reclaimed& reclaimed) { log.write(app::event_of(reclaimed)); });
  std::optional<report::Telemetry> telemetry(std::in_place, weir);
  command::Commands commands(weir);
  add_quit(commands);
  weir.start();
  tell_refused_settings(weir.inspector(), log);
  tell_numa_crossings(weir.inspector(), log);
  auto metrics = app::metrics_listener(weir, config.metrics.listen, log);
  auto control = app::control_listener(weir, config.control, log);
  app::ServiceManager service;
  app::FeedWatchdog watchdog(service, log);
  control::LeaseMonitor leases(weir.rings());
  control::LinkMonitor links(weir.ports());
  app::EventMonitor events(weir.ports(), weir.regions(), weir.loops(), weir.inspector(), log);
  app::say("weir: ready\n");
  service.tell_ready();
  std::optional<control::Monitor> monitor;
  const auto show_to = [&](control::Monitor::Readers readers) {
    monitor.emplace(weir.inspector(), std::move(readers),
                    watchdog.period_within(control::Monitor::kPeriod));
  };
  show_to({&watchdog, &leases, &links, &events});
  run_lines(commands, first_commands);
  if (has_prompt) {
    const app::PromptEnd end = app::run_prompt(commands, stop_requested, [&] {
      app::reload_if_asked(weir.reload(), service, log);
      return prompt_log.take();
    });
    prompt_log.close();
    tell_end(end, log);
  }
  wait_for_signal(weir.reload(), service, log, metrics, control);
  service.tell_stopping();
  show_to({&watchdog, &links, &events}); // a ring that drains is not reclaimed
  app::drain(weir.rings(), weir.regions(), weir.inspector(), stop_at_once, service, log);
  metrics.end(); // its threads ask no more questions
  control.end(); // nor do these
  telemetry.reset();
  monitor.reset();
  stop(weir);
}

void forget(const std::string& tenant, const config::Config& config) {
  if (config.state_directory.empty()) {
    throw UsageError("--forget-neighbours: found no state_directory in the configuration; allowed: "
                     "a switch that remembers rings");
  }
  const std::size_t rings = control::forget_rings_of(tenant, config.state_directory);
  const std::string whose = tenant.empty() ? "no tenant" : "tenant " + text::printable(tenant);
  app::say(fmt::format("weir: rings of {} forgotten: {}\n", whose, rings));
}

app::Forecast ask_server(const Options& options) {
  config::Config config = config::load_config(options.config);
  app::check_build(config, options.config);
  control::take_lcores(config);
  config.eal_options.insert(config.eal_options.end(), options.eal.begin(), options.eal.end());
  return app::check_server(config, options.form);
}

template <typename... Kinds>
bool is_one_of(const std::exception& error) {
  return (... || (dynamic_cast<const Kinds*>(&error) != nullptr));
}

/// Of who has started the switch. At the next try it is one again.
bool is_mistake(const std::exception& error) {
  return is_one_of<UsageError, config::ConfigError, control::MemoryError, control::NoPiece,
                   control::JournalError>(error);
}

} // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse_options(argc, argv);
    if (options.is_dry_run) {
      return app::try_out(options.config) == app::Verdict::in_order ? EXIT_SUCCESS : kExitUsage;
    }
    if (options.asks_server) {
      return ask_server(options) == app::Forecast::starts ? EXIT_SUCCESS : kExitUsage;
    }
    if (options.checks) {
      return app::check_files(options.files) == app::Verdict::in_order ? EXIT_SUCCESS : kExitUsage;
    }
    keep_files_private();
    app::bound_heap();
    app::catch_reload_signal(); // before the file is read for the first time
    config::Config config = config::load_config(options.config);
    if (options.forgotten_tenant) {
      forget(*options.forgotten_tenant, config);
      return EXIT_SUCCESS;
    }
    const std::vector<std::string> first_commands = read_command_file(options.cmd_file);
    app::check_build(config, options.config);
    const std::vector<std::string> about_lcores = control::take_lcores(config);
    check_cpus(options, config);
    refuse_core_options(options.eal);
    app::check_process_limits(config);
    const Eal eal(eal_arguments(options, config));
    catch_signals();
    for (const auto& lines : {about_lcores, control::small_region_shares(config)}) {
      for (const std::string& line : lines) {
        app::say("weir: " + line + "\n");
      }
    }
    run_switch(options, config, first_commands);
    app::finish_log();
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    app::complain("weir", error.what());
    return is_mistake(error) ? kExitUsage : kExitFailure;
  }
}
