// SPDX-License-Identifier: BSD-3-Clause

/// weirctl: the prompt's commands for a switch that runs elsewhere.

#include "complaint.hpp"
#include "exit_status.hpp"
#include "fabric_commands.hpp"
#include "files/whole_file.hpp"
#include "option_table.hpp"
#include "output.hpp"
#include "program/operator_words.hpp"
#include "rpc/client.hpp"
#include "text/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

using namespace weir;
using app::kExitFailure;
using app::kExitUsage;
using app::UsageError;

constexpr const char* kHead =
    "usage: weirctl [OPTION...] WORD...\n"
    "\n"
    "Asks or orders what the switch's prompt can: `weirctl help` lists "
    "it, `weirctl show ring all json`\n"
    "is an example. `weirctl fabric help` lists what can be asked of a fabric's manager. Files are "
    "those of the machine where the switch runs, but for `load operator FILE` and `test operator "
    "OPERATOR FILE...`.\n"
    "\n";
constexpr const char* kTail = "\n"
                              "Exit status: 0; 1 when the switch is not reached or cannot do it "
                              "now; 2 for wrong options or words.\n";

constexpr double kShortestPeriod = 0.1;
constexpr double kLongestPeriod = 3600;

struct Options {
  std::string server;
  rpc::ClientTls tls;
  std::chrono::milliseconds period{0}; // 0: once
  std::string line;                    // to complete
};

std::vector<app::Option> options_of(Options& o) {
  return {
      {"server", "ADDRESS",
       "unix:/PATH or HOST:PORT (default: $WEIR_SERVER, or this machine's switch; for fabric "
       "$WEIR_MANAGER, or this machine's manager)",
       [&](auto v) { o.server = v; }},
      {"tls-certificate", "FILE", "this client's certificate, PEM; for HOST:PORT",
       [&](auto v) { o.tls.certificate = v; }},
      {"tls-key", "FILE", "its key", [&](auto v) { o.tls.key = v; }},
      {"tls-authority", "FILE", "who signed the switch's certificate",
       [&](auto v) { o.tls.authority = v; }},
      {"tls-name", "NAME", "the switch's name in its certificate, if it is not HOST",
       [&](auto v) { o.tls.name = v; }},
      {"every", "SECONDS", "ask again and again, 0.1 to 3600 s apart, until interrupted",
       [&](auto v) {
         const double seconds = app::number<double>("every", v, kShortestPeriod, kLongestPeriod);
         o.period = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
       }},
      {"complete", "LINE", "print the words that may stand in place of LINE's last one; for shells",
       [&](auto v) { o.line = v; }},
  };
}

/// Where a switch on this machine listens unless its configuration says otherwise: the service's
/// folder, or EAL's.
std::string local_server() {
  const char* own = std::getenv("XDG_RUNTIME_DIR");
  const std::string folder = getuid() == 0 ? "/var/run" : own != nullptr ? own : "/tmp";
  const std::string service = "/run/weir/control.sock";
  return std::filesystem::exists(service) ? service : folder + "/dpdk/rte/control.sock";
}

std::string server_of(const Options& options) {
  const char* usual = std::getenv("WEIR_SERVER");
  std::string server = !options.server.empty() ? options.server
                       : usual != nullptr      ? usual
                                               : local_server();
  return server.starts_with('/') ? "unix:" + server : server;
}

/// The managers' addresses.
std::vector<std::string> managers_of(const Options& options) {
  const char* usual = std::getenv("WEIR_MANAGER");
  const std::string list = !options.server.empty() ? options.server
                           : usual != nullptr      ? usual
                                                   : "/run/weir-manager/manager.sock";
  std::vector<std::string> managers;
  std::stringstream addresses(list);
  for (std::string address; std::getline(addresses, address, ',');) {
    managers.push_back(address.starts_with('/') ? "unix:" + address : address);
  }
  return managers;
}

void check_tls(const Options& options, const std::string& server) {
  const rpc::ClientTls& tls = options.tls;
  const bool is_complete = !tls.certificate.empty() && !tls.key.empty() && !tls.authority.empty();
  if (!server.starts_with("unix:") && !is_complete) {
    throw UsageError(
        fmt::format("found the server {} without certificates; allowed: --tls-certificate, "
                    "--tls-key and --tls-authority with it, or unix:/PATH",
                    server));
  }
}

/// What the switch has said: it may not be the one that was meant.
void print(const std::string& text) {
  app::print(text::printable_lines(text));
}

/// A file of this machine, not of the switch's: a text or a packet of an operator.
std::string contents_of(const std::string& file) {
  if (auto contents = files::read_whole(file)) {
    return *contents;
  }
  throw UsageError(fmt::format("{}: cannot be read", file));
}

std::string loaded(rpc::Client& client, const std::string& file) {
  try {
    return client.load_operator(contents_of(file));
  } catch (const rpc::WrongCall& error) {
    throw UsageError(program::in_file(file, error.what()));
  }
}

std::string tested(rpc::Client& client, const std::string& word,
                   const std::vector<std::string>& files) {
  std::vector<std::string> packets;
  std::ranges::transform(files, std::back_inserter(packets), contents_of);
  return program::packet_in_words(client.test_operator(word, packets));
}

void run(const Options& options, const app::CommandLine& line) {
  const command::Words words(line.words.begin(), line.words.end());
  const bool is_fabric = !words.empty() && words.front() == "fabric";
  if (is_fabric) {
    const std::vector<std::string> managers = managers_of(options);
    std::ranges::for_each(managers, [&](const auto& manager) { check_tls(options, manager); });
    print(app::fabric_command(managers, options.tls, {words.begin() + 1, words.end()}));
    return;
  }
  const std::string server = server_of(options);
  check_tls(options, server);
  rpc::Client client(server, options.tls);
  if (line.options.contains("complete")) {
    print(fmt::format("{}\n", fmt::join(client.complete(options.line), "\n")));
  } else if (words.empty()) {
    throw UsageError("no words; `weirctl help` lists them, see also weirctl --help");
  } else if (options.period.count() != 0) {
    client.watch(words, options.period, print);
  } else if (words.size() == 3 && words[0] == "load" && words[1] == "operator") {
    print(loaded(client, words[2]));
  } else if (words.size() > 3 && words[0] == "test" && words[1] == "operator") {
    const std::vector<std::string> files(words.begin() + 3, words.end());
    print(tested(client, words[2], files));
  } else {
    print(client.execute(words));
  }
}

} // namespace

int main(int argc, char** argv) {
  try {
    Options options;
    const app::CommandLine line =
        app::read_command_line({argv, static_cast<std::size_t>(argc)}, {"weirctl", kHead, kTail},
                               options_of(options), app::WordOrder::last);
    run(options, line);
    return EXIT_SUCCESS;
  } catch (const UsageError& error) {
    app::complain("weirctl", error.what());
    return kExitUsage;
  } catch (const rpc::WrongCall& error) {
    app::complain("weirctl", error.what());
    return kExitUsage;
  } catch (const std::exception& error) {
    app::complain("weirctl", error.what());
    return kExitFailure;
  }
}
