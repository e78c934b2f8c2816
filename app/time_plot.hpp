// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace weir::app {

struct TimeCurve {
  struct Point {
    double bytes = 0;
    double microseconds = 0;
  };

  std::string name;
  std::vector<Point> points; // both numbers above 0
};

/// Time by size as SVG, both axes logarithmic. Empty when there are no points.
std::string plot_times(const std::string& title, const std::vector<TimeCurve>& curves);

} // namespace weir::app
