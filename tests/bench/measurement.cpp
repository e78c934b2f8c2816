// SPDX-License-Identifier: BSD-3-Clause
#include "measurement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <span>

namespace weir::bench {
namespace {

[[noreturn]] void refuse(const char* program, std::string_view found, std::string_view allowed) {
  fmt::print(stderr, "{}: found '{}'; allowed: {}\n", program, found, allowed);
  std::exit(2);
}

void read_number(const char* program, std::string_view text, const NumberOption& option) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < option.least ||
      number > option.most) {
    refuse(program, text, fmt::format("{} from {} to {}", option.name, option.least, option.most));
  }
  *option.value = number;
}

std::string_view part_of(const char* program, std::string_view text,
                         const std::vector<std::string_view>& parts) {
  if (std::find(parts.begin(), parts.end(), text) == parts.end()) {
    refuse(program, text, fmt::format("{}", fmt::join(parts, ", ")));
  }
  return text;
}

std::string allowed_options(const std::vector<NumberOption>& numbers) {
  std::string text = "--part NAME, --quick, --only CASE-SUBSTRING";
  for (const NumberOption& option : numbers) {
    text += fmt::format(", {} N", option.name);
  }
  return text;
}

double seconds_on(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

} // namespace

Options read_options(int argc, char** argv, const std::vector<std::string_view>& parts,
                     const DefaultRounds& defaults, const std::vector<NumberOption>& numbers) {
  Options options;
  std::vector<NumberOption> all{{"--rounds", &options.rounds}};
  all.insert(all.end(), numbers.begin(), numbers.end());
  const std::span arguments(argv, static_cast<std::size_t>(argc));
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    const bool has_value = i + 1 < arguments.size();
    const auto number = std::find_if(
        all.begin(), all.end(), [&](const NumberOption& option) { return option.name == name; });
    if (name == "--quick") {
      options.effort = Effort::quick;
    } else if (name == "--part" && has_value) {
      options.part = part_of(arguments[0], arguments[++i], parts);
    } else if (number != all.end() && has_value) {
      read_number(arguments[0], arguments[++i], *number);
    } else if (name == "--only" && has_value) {
      options.only = arguments[++i];
    } else {
      refuse(arguments[0], name, allowed_options(all));
    }
  }
  if (options.rounds == 0) {
    options.rounds = options.effort == Effort::quick ? defaults.quick : defaults.full;
  }
  return options;
}

Case& Case::with(std::string_view name, std::string_view value) {
  add(name, value, fmt::format("\"{}\"", value));
  return *this;
}

Case& Case::with(std::string_view name, std::uint64_t value) {
  const std::string digits = std::to_string(value);
  add(name, digits, digits);
  return *this;
}

void Case::add(std::string_view name, std::string_view value, std::string_view json_value) {
  text_ += fmt::format("{}{}={}", text_.empty() ? "" : ",", name, value);
  json_ += fmt::format("{}\"{}\": {}", json_.empty() ? "" : ", ", name, json_value);
}

void report(std::string_view part, const Case& parameters, unsigned round,
            const std::vector<Figure>& figures) {
  std::string inside;
  for (const Figure& figure : figures) {
    inside += fmt::format("{}\"{}\": {{\"value\": {:.6g}, \"unit\": \"{}\"",
                          inside.empty() ? "" : ", ", figure.name, figure.value, figure.unit);
    inside += figure.of.empty() ? "}" : fmt::format(", \"of\": \"{}\"}}", figure.of);
  }
  fmt::print("{{\"part\": \"{}\", \"case\": {{{}}}, \"round\": {}, \"figures\": {{{}}}}}\n", part,
             parameters.json(), round, inside);
  std::fflush(stdout);
}

void tell_progress(std::string_view part, unsigned round, const Options& options) {
  fmt::print(stderr, "{}: round {} of {}\n", part, round + 1, options.rounds);
}

double cpu_seconds() {
  return seconds_on(CLOCK_THREAD_CPUTIME_ID);
}

double process_cpu_seconds() {
  return seconds_on(CLOCK_PROCESS_CPUTIME_ID);
}

} // namespace weir::bench
