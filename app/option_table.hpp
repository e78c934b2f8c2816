// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Long options of a program's command line, --help and --version.

#include "file_uses.hpp"
#include "text/number.hpp"
#include "usage_error.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace weir::app {

/// One option: its name, its argument (nullptr: a flag), its help, its action, and its letter if it
/// has one.
struct Option {
  const char* name;
  const char* argument;
  const char* meaning;
  std::function<void(std::string_view)> set;
  char letter = '\0';
};

/// What --help prints before and after the options.
struct HelpText {
  std::string_view program;
  std::string_view head;
  std::string_view tail;
};

/// Where words that are no options may stand.
enum class WordOrder : std::uint8_t {
  anywhere,
  last, // after all options
};

struct CommandLine {
  std::set<std::string_view> options;             // names of the options given
  std::map<std::string_view, std::string> values; // the last one of each
  std::span<char* const> words;                   // words that are no options
  bool has_separator = false;                     // "--" stands before the words
};

/// Applies the options in `argv`. Also knows `--help` and `--version`, which print and exit.
/// Errors: UsageError for an unknown option or a missing argument, and what Option::set throws.
CommandLine read_command_line(std::span<char*> argv, const HelpText& help,
                              std::span<const Option> options, WordOrder order);

/// The file that an option names. Its name is empty when the option was not given.
FileUse file_use(const CommandLine& line, std::string_view option, Use use);

/// For an option whose text is all that was asked for. Errors: OutputError.
[[noreturn]] void print_and_exit(std::string_view text);

/// Throws UsageError.
[[noreturn]] void refuse(std::string_view option, std::string_view value, std::string_view allowed);

/// An option's value. Errors: UsageError unless it is a number from `least` to `most`.
template <typename Number>
Number number(std::string_view option, std::string_view text, Number least, Number most) {
  const std::optional<Number> value = text::parsed<Number>(text);
  if (!value || !(*value >= least && *value <= most)) { // false for NaN, too
    refuse(option, text, fmt::format("{} .. {}", least, most));
  }
  return *value;
}

/// The same for a number of bytes, written as text::parse_size reads it.
std::uint64_t byte_count(std::string_view option, std::string_view text, std::uint64_t least,
                         std::uint64_t most);

} // namespace weir::app
