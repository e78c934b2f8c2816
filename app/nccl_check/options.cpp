// SPDX-License-Identifier: BSD-3-Clause
#include "nccl_check/options.hpp"

#include "option_table.hpp"
#include "text/number.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <vector>

namespace weir::nccl_check {
namespace {

using app::UsageError;

constexpr std::uint16_t kMostRanks = 256;

constexpr const char* kHead =
    "usage: weir-nccl-check --ranks N [options]\n"
    "       weir-nccl-check --ranks N --rank R --meet HOST:PORT [options]\n"
    "\n"
    "Loads NCCL's plug-in of Weir as NCCL does, has it sum numbers of host memory, and compares "
    "each\n"
    "sum. Neither NCCL nor a GPU is needed. Variables are those of docs/nccl.md.\n"
    "The first form runs all ranks on this machine: a %r in WEIR_DEVICE, WEIR_IP and WEIR_MAC is "
    "the\n"
    "rank. The second runs one rank, and rank 0 listens at HOST:PORT for the others' connections.\n"
    "\n";

constexpr const char* kTail = "\n"
                              "torchrun, mpirun and srun tell the rank, and how many there are: "
                              "then --ranks and --rank need not\n"
                              "be given. torchrun tells HOST:PORT, too.\n";

/// A launcher's variables.
struct Launcher {
  const char* rank;
  const char* ranks;
};

constexpr std::array<Launcher, 4> kLaunchers{{{"RANK", "WORLD_SIZE"},
                                              {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                              {"PMI_RANK", "PMI_SIZE"},
                                              {"SLURM_PROCID", "SLURM_NTASKS"}}};

std::optional<std::uint16_t> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? std::nullopt : text::parsed<std::uint16_t>(text);
}

void take_launchers_place(Options& options) {
  for (const Launcher& each : kLaunchers) {
    const auto rank = number_in(each.rank);
    const auto ranks = number_in(each.ranks);
    if (rank && ranks) {
      options.rank = rank;
      options.ranks = *ranks;
      return;
    }
  }
}

void take_torchruns_meeting(Options& options) {
  const char* const host = std::getenv("MASTER_ADDR");
  const auto port = number_in("MASTER_PORT");
  // torchrun's own store listens there.
  if (host != nullptr && port && *port < std::numeric_limits<std::uint16_t>::max()) {
    options.meet = host::Endpoint{host, std::to_string(*port + 1)};
  }
}

host::Endpoint endpoint(std::string_view value) {
  const auto parsed = host::Endpoint::parse(std::string(value));
  if (!parsed) {
    app::refuse("--meet", value, "HOST:PORT");
  }
  return *parsed;
}

std::vector<app::Option> options_of(Options& o) {
  constexpr std::uint32_t most = 1'000'000;
  constexpr std::uint32_t longest = 3600;
  return {
      {"ranks", "N", "so many ranks",
       [&](auto v) { o.ranks = app::number<std::uint16_t>("--ranks", v, 2, kMostRanks); }},
      {"rank", "R", "this one, from 0 on; without it all are here",
       [&](auto v) { o.rank = app::number<std::uint16_t>("--rank", v, 0, kMostRanks - 1); }},
      {"meet", "HOST:PORT", "where rank 0 listens for the others",
       [&](auto v) { o.meet = endpoint(v); }},
      {"repeat", "N", "sum so many times (default: 1)",
       [&](auto v) { o.repeat = app::number<std::uint32_t>("--repeat", v, 1, most); }},
      {"wait", "SECONDS", "so long for the other ranks (default: 60)",
       [&](auto v) {
         o.wait = std::chrono::seconds(app::number<std::uint32_t>("--wait", v, 1, longest));
       }},
      {"plug-in", "FILE",
       "this plug-in (default: libnccl-net-NAME.so, NAME of NCCL_NET_PLUGIN or weir)",
       [&](auto v) { o.plug_in = v; }},
      {"tables", "V", "its tables of version 8 to 12 (default: 12, NCCL 2.30's)",
       [&](auto v) { o.tables = app::number<int>("--tables", v, 8, 12); }},
  };
}

void check(const Options& options) {
  if (options.ranks < 2 || options.ranks > kMostRanks) {
    throw UsageError(fmt::format("--ranks: found {}; allowed: 2 .. {}; see weir-nccl-check --help",
                                 options.ranks, kMostRanks));
  }
  if (options.rank && *options.rank >= options.ranks) {
    throw UsageError(
        fmt::format("--rank: found {}; allowed: 0 .. {}", *options.rank, options.ranks - 1));
  }
  if (options.rank && !options.meet) {
    throw UsageError(
        "--meet is needed where each rank is started: HOST:PORT, where rank 0 listens");
  }
  if (!options.rank && options.meet) {
    throw UsageError("--meet without --rank: all ranks are on this machine, and meet by loopback");
  }
}

} // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  Options launched;
  take_launchers_place(launched);
  if (launched.rank) {
    take_torchruns_meeting(launched);
  }
  const app::CommandLine line = app::read_command_line(
      {argv, static_cast<std::size_t>(argc)}, {"weir-nccl-check", kHead, kTail},
      options_of(options), app::WordOrder::anywhere);
  if (!line.words.empty()) {
    throw UsageError(fmt::format("found '{}'; allowed: options; see weir-nccl-check --help",
                                 line.words.front()));
  }
  if (options.ranks == 0 && !options.rank) {
    options.ranks = launched.ranks;
    options.rank = launched.rank;
    options.meet = options.meet ? options.meet : launched.meet;
  }
  check(options);
  return options;
}

} // namespace weir::nccl_check
