// SPDX-License-Identifier: BSD-3-Clause
#include "option_table.hpp"

#include "text/quantity.hpp"

#include <algorithm>
#include <cstdlib>
#include <getopt.h>
#include <string>
#include <vector>

namespace weir::app {
namespace {

std::string with_argument(const Option& option) {
  return option.argument == nullptr ? fmt::format("--{}", option.name)
                                    : fmt::format("--{} {}", option.name, option.argument);
}

[[noreturn]] void print_help(const HelpText& help, std::span<const Option> options) {
  std::size_t width = std::string_view("--version").size();
  for (const Option& option : options) {
    width = std::max(width, with_argument(option).size());
  }
  fmt::print("{}", help.head);
  for (const Option& option : options) {
    fmt::print("  {:{}}  {}\n", with_argument(option), width, option.meaning);
  }
  fmt::print("  {:{}}  {}\n", "--help", width, "this text");
  fmt::print("  {:{}}  {}\n", "--version", width, "which version of Weir this is");
  fmt::print("{}", help.tail);
  std::exit(EXIT_SUCCESS);
}

[[noreturn]] void print_version(const HelpText& help) {
  fmt::print("{} {}\n", help.program, WEIR_VERSION);
  std::exit(EXIT_SUCCESS);
}

/// getopt_long needs a last row of zeros; `help` and `version` are before it.
std::vector<option> getopt_table(std::span<const Option> options) {
  std::vector<option> table;
  for (const Option& entry : options) {
    table.push_back(
        {entry.name, entry.argument != nullptr ? required_argument : no_argument, nullptr, 0});
  }
  table.push_back({"help", no_argument, nullptr, 0});
  table.push_back({"version", no_argument, nullptr, 0});
  table.push_back({});
  return table;
}

} // namespace

CommandLine read_command_line(std::span<char*> argv, const HelpText& help,
                              std::span<const Option> options, WordOrder order) {
  const std::vector<option> table = getopt_table(options);
  const char* short_options = order == WordOrder::last ? "+" : "";
  const auto count = static_cast<int>(argv.size());
  CommandLine line;
  int index = 0;
  for (int c = 0;
       (c = getopt_long(count, argv.data(), short_options, table.data(), &index)) != -1;) {
    if (c != 0) {
      throw UsageError(fmt::format("see {} --help", help.program));
    }
    const auto chosen = static_cast<std::size_t>(index);
    if (chosen == options.size()) {
      print_help(help, options);
    }
    if (chosen == options.size() + 1) {
      print_version(help);
    }
    options[chosen].set(optarg != nullptr ? optarg : "");
    line.options.insert(options[chosen].name);
  }
  const auto first = static_cast<std::size_t>(optind);
  line.words = argv.subspan(first);
  line.has_separator = std::string_view(argv[first - 1]) == "--";
  return line;
}

void refuse(std::string_view option, std::string_view value, std::string_view allowed) {
  throw UsageError(fmt::format("--{}: found '{}'; allowed: {}", option, value, allowed));
}

std::uint64_t byte_count(std::string_view option, std::string_view text, std::uint64_t least,
                         std::uint64_t most) {
  const std::optional<std::uint64_t> count = text::parse_size(text);
  if (!count || *count < least || *count > most) {
    refuse(option, text,
           fmt::format("{}, from {} to {}", text::kSizeForm, text::size_text(least),
                       text::size_text(most)));
  }
  return *count;
}

} // namespace weir::app
