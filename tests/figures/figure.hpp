// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What a figure of a paper is to the program that computes it: an id, and a function that gives
/// named values and the points of plots. Which values are right is not known here: that is the
/// table of expectations.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::figures {

/// Whether the cases that take longest are run too.
enum class Effort : std::uint8_t { quick, full };

/// A mistake made on purpose, so that a test sees verdicts turn.
enum class Mutation : std::uint8_t {
  none,
  link_slower, ///< one link has half its rate
  step_later,  ///< one step of a schedule starts a step later than it should
};

struct Settings {
  Effort effort = Effort::quick;
  Mutation mutation = Mutation::none;
};

/// The values of one figure, and the points of its plots, in the order in which they were given.
class Results {
 public:
  /// Throws std::invalid_argument for a name given before and for what is not a finite number.
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
