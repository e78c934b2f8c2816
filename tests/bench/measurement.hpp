// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What every measuring program shares: its options and the lines it prints (README.md beside this
/// file).

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
  std::string part; // empty: all that the program has
  std::string only; // what a case's text must contain

  bool wants_part(std::string_view name) const { return part.empty() || part == name; }
};

struct DefaultRounds {
  unsigned full = 0;
  unsigned quick = 0;
};

/// `parts` are the program's. Explains a wrong option on stderr and ends the program with status 2.
Options read_options(int argc, char** argv, const std::vector<std::string_view>& parts,
                     const DefaultRounds& defaults);

/// The parameters of one measurement, in the order in which they were named. Names and texts hold
/// no character that JSON would want escaped.
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

/// Seconds that this thread has computed: what others make it wait for is not counted. (What a
/// hypervisor takes away is.)
double cpu_seconds();

/// Seconds of computing that a piece of work took.
template <typename Work>
double cpu_seconds_of(Work&& work) {
  const double start = cpu_seconds();
  work();
  return cpu_seconds() - start;
}

} // namespace weir::bench
