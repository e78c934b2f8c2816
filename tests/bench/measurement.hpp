// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The common part of all measuring programs: options, and the lines that they print (README.md in
/// this folder).

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::bench {

enum class Effort : std::uint8_t { full, quick };

struct Options {
  unsigned rounds = 0;
  Effort effort = Effort::full;
  std::string part; // empty: all parts of the program
  std::string only; // only cases whose text contains this

  bool wants_part(std::string_view name) const { return part.empty() || part == name; }
};

struct DefaultRounds {
  unsigned full = 0;
  unsigned quick = 0;
};

/// An option of one program: `name` and a whole number.
struct NumberOption {
  std::string_view name;
  std::uint32_t* value = nullptr; // keeps its value when the option is not given
  std::uint32_t least = 1;
  std::uint32_t most = UINT32_MAX;
};

/// `parts` are those of the program. Explains a wrong option on stderr and exits with status 2.
Options read_options(int argc, char** argv, const std::vector<std::string_view>& parts,
                     const DefaultRounds& defaults, const std::vector<NumberOption>& numbers = {});

/// The parameters of one measurement, in the order in which they were added. Names and texts need
/// no escapes in JSON.
class Case {
 public:
  Case& with(std::string_view name, std::string_view value);
  Case& with(std::string_view name, std::uint64_t value);

  /// name=value,name=value
  const std::string& text() const { return text_; }

  /// The inside of a JSON object.
  const std::string& json() const { return json_; }

  bool is_wanted(const Options& options) const {
    return text_.find(options.only) != std::string::npos;
  }

 private:
  void add(std::string_view name, std::string_view value, std::string_view json_value);

  std::string text_;
  std::string json_;
};

struct Figure {
  std::string_view name;
  double value = 0;
  std::string_view unit;
  std::string_view of = {}; // the figure that is its bound or baseline
};

/// Prints the line of one case in one round, at once.
void report(std::string_view part, const Case& parameters, unsigned round,
            const std::vector<Figure>& figures);

/// "kernels: round 2 of 9" on stderr.
void tell_progress(std::string_view part, unsigned round, const Options& options);

/// Seconds that a piece of work took.
template <typename Work>
double seconds_of(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Seconds of computing of this thread. Time in which it waits is not counted. (Time that a
/// hypervisor takes away is counted.)
double cpu_seconds();

/// The same of all threads of the process, also of those that have ended.
double process_cpu_seconds();

/// Seconds of computing of a piece of work.
template <typename Work>
double cpu_seconds_of(Work&& work) {
  const double start = cpu_seconds();
  work();
  return cpu_seconds() - start;
}

} // namespace weir::bench
