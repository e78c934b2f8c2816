// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// A figure of a paper in the program that computes it: an id, and a function that gives named
/// values and points of plots. The program does not know which values are right; the table of
/// expectations does.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::figures {

/// Whether the longest cases are run too.
enum class Effort : std::uint8_t { quick, full };

/// A deliberate error, so that a test sees verdicts change.
enum class Mutation : std::uint8_t {
  none,
  link_slower, ///< one link has half its rate
  step_later,  ///< one step of a schedule starts one step late
};

struct Settings {
  Effort effort = Effort::quick;
  Mutation mutation = Mutation::none;
};

/// The values of one figure and the points of its plots, in the order in which they were added.
class Results {
 public:
  /// Throws std::invalid_argument for a name used before or a number that is not finite.
  void value(std::string_view name, double value);

  /// A point of a series of one of the figure's plots. Throws as value().
  void point(std::string_view plot, std::string_view series, double x, double y);

  /// One line of JSON: {"figure": id, "values": {...}, "plots": {plot: {series: [[x, y], ...]}}}.
  std::string as_json(std::string_view id) const;

 private:
  struct Point {
    std::string plot;
    std::string series;
    double x = 0;
    double y = 0;
  };

  std::vector<std::pair<std::string, double>> values_;
  std::vector<Point> points_;
};

struct Figure {
  std::string_view id; ///< as in the table of expectations
  void (*compute)(const Settings&, Results&);
};

/// The figures of each family, in the order of the table of expectations.
std::span<const Figure> allreduce_switch_figures();
std::span<const Figure> netreduce_figures();
std::span<const Figure> multitree_figures();
std::span<const Figure> klenk_figures();
std::span<const Figure> flare_figures();
std::span<const Figure> planning_figures();

} // namespace weir::figures
