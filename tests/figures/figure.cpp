// SPDX-License-Identifier: BSD-3-Clause
#include "figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

namespace weir::figures {
namespace {

void require_finite(std::string_view name, double number) {
  if (!std::isfinite(number)) {
    throw std::invalid_argument(fmt::format("{} is {}, not a finite number", name, number));
  }
}

void append(std::string& list, const std::string& item) {
  list += list.empty() ? item : ", " + item;
}

} // namespace

void Results::value(std::string_view name, double value) {
  require_finite(name, value);
  if (std::ranges::any_of(values_, [&](const auto& one) { return one.first == name; })) {
    throw std::invalid_argument(fmt::format("{} was given twice", name));
  }
  values_.emplace_back(name, value);
}

void Results::point(std::string_view plot, std::string_view series, double x, double y) {
  require_finite(plot, x);
  require_finite(plot, y);
  points_.push_back({std::string(plot), std::string(series), x, y});
}

std::string Results::as_json(std::string_view id) const {
  std::string values;
  for (const auto& [name, number] : values_) {
    append(values, fmt::format("\"{}\": {:.10g}", name, number));
  }
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> plots;
  for (const Point& point : points_) {
    auto& series = plots[point.plot];
    auto found = std::ranges::find(series, point.series, [](const auto& one) { return one.first; });
    if (found == series.end()) {
      found = series.insert(series.end(), {point.series, ""});
    }
    append(found->second, fmt::format("[{:.10g}, {:.10g}]", point.x, point.y));
  }
  std::string drawn;
  for (const auto& [plot, series] : plots) {
    std::string lines;
    for (const auto& [name, points] : series) {
      append(lines, fmt::format("\"{}\": [{}]", name, points));
    }
    append(drawn, fmt::format("\"{}\": {{{}}}", plot, lines));
  }
  return fmt::format("{{\"figure\": \"{}\", \"values\": {{{}}}, \"plots\": {{{}}}}}", id, values,
                     drawn);
}

} // namespace weir::figures
