// SPDX-License-Identifier: BSD-3-Clause

/// weir-operator: checks an operator's text, tells its price, and folds packets as switch and hosts
/// do.

#include "complaint.hpp"
#include "exit_status.hpp"
#include "op/float_environment.hpp"
#include "option_table.hpp"
#include "output.hpp"
#include "program/fold_program.hpp"
#include "program/operator.hpp"
#include "program/operator_words.hpp"
#include "program/trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace weir;
using app::kExitFailure;
using app::kExitUsage;
using app::UsageError;

constexpr const char* kHead =
    "usage: weir-operator check FILE\n"
    "       weir-operator price FILE\n"
    "       weir-operator run FILE INPUT... [--packet BYTES] [--out FILE] [--cpu LEVEL]\n"
    "\n"
    "FILE is the text of an operator (docs/operators.md).\n"
    "check: tells its name, its digest, what a packet has of it, and what follows from it.\n"
    "price: what folding costs here, and the bound by which a switch limits tenants.\n"
    "run: folds the INPUTs, one of each rank, in their order. Each has the same number of bytes.\n"
    "\n";

struct Options {
  std::string command;
  std::string file;
  std::vector<std::string> inputs;
  std::string out = "-";
  std::size_t packet = 0; // 0: an input is one
  op::CpuLevel level = op::best_cpu_level();
};

op::CpuLevel level_named(std::string_view name) {
  std::vector<std::string_view> known;
  for (int level = 0; level <= static_cast<int>(op::best_cpu_level()); ++level) {
    known.push_back(op::name_of(static_cast<op::CpuLevel>(level)));
    if (known.back() == name) {
      return static_cast<op::CpuLevel>(level);
    }
  }
  throw UsageError(fmt::format("--cpu: found '{}'; allowed: {}", name, fmt::join(known, ", ")));
}

std::vector<app::Option> options_of(Options& o) {
  constexpr std::size_t most = 65536;
  return {
      {"packet", "BYTES", "cut inputs into packets of so many bytes (default: each is one)",
       [&](auto v) { o.packet = app::number<std::size_t>("--packet", v, 8, most); }},
      {"out", "FILE", "write the result there (default: standard output)",
       [&](auto v) { o.out = v; }},
      {"cpu", "LEVEL", "use loops for this CPU level (default: the best here)",
       [&](auto v) { o.level = level_named(v); }},
  };
}

Options parse_options(int argc, char** argv) {
  Options options;
  const app::CommandLine line =
      app::read_command_line({argv, static_cast<std::size_t>(argc)}, {"weir-operator", kHead, ""},
                             options_of(options), app::WordOrder::anywhere);
  const std::vector<std::string> words(line.words.begin(), line.words.end());
  const bool is_run = !words.empty() && words[0] == "run";
  const bool is_known = is_run || (!words.empty() && (words[0] == "check" || words[0] == "price"));
  if (!is_known || words.size() < 2 || (is_run ? words.size() < 3 : words.size() != 2)) {
    throw UsageError(
        "allowed: check FILE, price FILE, run FILE INPUT...; see weir-operator --help");
  }
  options.command = words[0];
  options.file = words[1];
  options.inputs.assign(words.begin() + 2, words.end());
  return options;
}

std::string read_file(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) {
    throw UsageError(fmt::format("{}: {}", name, std::strerror(errno)));
  }
  return text;
}

std::shared_ptr<const program::Operator> load(const std::string& file) {
  const std::string text = read_file(file);
  try {
    return program::Operator::load(text);
  } catch (const std::invalid_argument& error) {
    throw UsageError(program::in_file(file, error.what()));
  }
}

void check(const Options& options) {
  const auto loaded = load(options.file);
  const program::Code& code = loaded->code();
  const std::string unit =
      code.is_block() ? fmt::format("blocks of {} values in {} bytes", code.block, code.unit_bytes)
                      : fmt::format("structs of {} bytes", code.unit_bytes);
  constexpr std::size_t packet = 1024;
  app::print(fmt::format("{}\n"
                         "  digest: {}\n"
                         "  a packet has: {}{}; {} in {} bytes\n"
                         "  order of ranks: {}\n"
                         "  identity: {}\n"
                         "  price: {:.1f} ns for a KiB and rank, at most\n",
                         loaded->name(), program::to_string(loaded->digest()), unit,
                         code.has_flags ? ", and 8 bytes of flags" : "", code.units(packet), packet,
                         code.order_never_matters ? "never matters" : "matters",
                         code.identity ? "as the text says" : "none", loaded->price()));
}

void price(const Options& options) {
  constexpr int folds = 200;
  const auto loaded = load(options.file);
  const op::DefaultFloatEnvironment environment;
  const program::FoldProgram fold(loaded->code(), options.level);
  const double ns = program::Measurement(fold).least_ns(folds);
  app::print(fmt::format("{}: {:.1f} ns for a KiB and rank here ({} ranks), {:.1f} at most\n",
                         loaded->name(), ns, program::Measurement::kRanks, loaded->price()));
}

void run(const Options& options) {
  const program::FoldProgram fold(load(options.file)->code(), options.level);
  std::vector<std::string> inputs;
  for (const std::string& name : options.inputs) {
    inputs.push_back(read_file(name));
    if (inputs.back().size() != inputs.front().size()) {
      throw UsageError(fmt::format("{}: found {} bytes; allowed: {}, as {} has", name,
                                   inputs.back().size(), inputs.front().size(),
                                   options.inputs.front()));
    }
  }
  const op::DefaultFloatEnvironment environment;
  const std::size_t bytes = inputs.front().size();
  const std::size_t packet = options.packet == 0 ? std::max<std::size_t>(bytes, 1) : options.packet;
  std::string result(bytes, '\0');
  for (std::size_t at = 0; at < bytes; at += packet) {
    std::vector<const std::byte*> ranks;
    for (const std::string& input : inputs) {
      ranks.push_back(reinterpret_cast<const std::byte*>(input.data() + at));
    }
    fold.reduce(reinterpret_cast<std::byte*>(result.data() + at), ranks.data(),
                static_cast<unsigned>(ranks.size()), std::min(packet, bytes - at), {});
  }
  app::write_file(options.out, result);
}

} // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse_options(argc, argv);
    if (options.command == "check") {
      check(options);
    } else if (options.command == "price") {
      price(options);
    } else {
      run(options);
    }
    app::finish_output();
    return 0;
  } catch (const UsageError& error) {
    app::complain("weir-operator", error.what());
    return kExitUsage;
  } catch (const std::exception& error) {
    app::complain("weir-operator", error.what());
    return kExitFailure;
  }
}
