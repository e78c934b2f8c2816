// SPDX-License-Identifier: BSD-3-Clause
#include "option_table.hpp"

#include "output.hpp"
#include "text/quantity.hpp"

#include <algorithm>
#include <cstdlib>
#include <getopt.h>
#include <string>
#include <vector>

namespace weir::app {
namespace {

std::string with_argument(const Option& option) {
  const std::string letter = option.letter == '\0' ? "" : fmt::format("-{}, ", option.letter);
  return option.argument == nullptr
             ? fmt::format("{}--{}", letter, option.name)
             : fmt::format("{}--{} {}", letter, option.name, option.argument);
}

[[noreturn]] void print_help(const HelpText& help, std::span<const Option> options) {
  std::size_t width = std::string_view("--version").size();
  for (const Option& option : options) {
    width = std::max(width, with_argument(option).size());
  }
  std::string text(help.head);
  for (const Option& option : options) {
    text += fmt::format("  {:{}}  {}\n", with_argument(option), width, option.meaning);
  }
  text += fmt::format("  {:{}}  {}\n", "--help", width, "this text");
  text += fmt::format("  {:{}}  {}\n", "--version", width, "which version of Weir this is");
  text += help.tail;
  print_and_exit(text);
}

[[noreturn]] void print_version(const HelpText& help) {
  print_and_exit(fmt::format("{} {}\n", help.program, WEIR_VERSION));
}

/// What getopt_long returns for an option without a letter: more than any char.
constexpr int kFirstNumber = 256;

/// In getopt_long's order: ours, then `help` and `version`. It needs a last row of zeros.
std::vector<option> getopt_table(std::span<const Option> options) {
  std::vector<option> table;
  int number = kFirstNumber;
  for (const Option& entry : options) {
    table.push_back({entry.name, entry.argument != nullptr ? required_argument : no_argument,
                     nullptr, number++});
  }
  table.push_back({"help", no_argument, nullptr, number++});
  table.push_back({"version", no_argument, nullptr, number});
  table.push_back({});
  return table;
}

std::string getopt_letters(std::span<const Option> options, WordOrder order) {
  std::string letters = order == WordOrder::last ? "+" : "";
  for (const Option& entry : options) {
    if (entry.letter != '\0') {
      letters += entry.letter;
      letters += entry.argument != nullptr ? ":" : "";
    }
  }
  return letters;
}

/// The row of what getopt_long returned: a letter, or a number of its table. nullopt: an error,
/// which getopt_long has printed.
std::optional<std::size_t> row_of(int returned, std::span<const Option> options) {
  if (returned >= kFirstNumber) {
    return static_cast<std::size_t>(returned - kFirstNumber);
  }
  for (std::size_t row = 0; row < options.size(); ++row) {
    if (options[row].letter == static_cast<char>(returned)) {
      return row;
    }
  }
  return std::nullopt;
}

} // namespace

FileUse file_use(const CommandLine& line, std::string_view option, Use use) {
  const auto given = line.values.find(option);
  return {fmt::format("--{}", option), given == line.values.end() ? "" : given->second, use};
}

void print_and_exit(std::string_view text) {
  print(text);
  std::exit(EXIT_SUCCESS);
}

CommandLine read_command_line(std::span<char*> argv, const HelpText& help,
                              std::span<const Option> options, WordOrder order) {
  const std::vector<option> table = getopt_table(options);
  const std::string letters = getopt_letters(options, order);
  const auto count = static_cast<int>(argv.size());
  CommandLine line;
  for (int c = 0;
       (c = getopt_long(count, argv.data(), letters.c_str(), table.data(), nullptr)) != -1;) {
    const std::optional<std::size_t> row = row_of(c, options);
    if (!row) {
      throw UsageError(fmt::format("see {} --help", help.program));
    }
    const std::size_t chosen = *row;
    if (chosen == options.size()) {
      print_help(help, options);
    }
    if (chosen == options.size() + 1) {
      print_version(help);
    }
    const std::string value = optarg != nullptr ? optarg : "";
    options[chosen].set(value);
    line.options.insert(options[chosen].name);
    line.values.insert_or_assign(options[chosen].name, value);
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
