// SPDX-License-Identifier: BSD-3-Clause
#include "time_plot.hpp"

#include "text/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace weir::app {
namespace {

constexpr double kWidth = 760;
constexpr double kHeight = 420;
constexpr double kLeft = 80;
constexpr double kRight = 150;
constexpr double kTop = 44;
constexpr double kBottom = 56;
constexpr std::array kColours{"#1b6ca8", "#c8553d", "#3d8b5f", "#8a5fa8",
                              "#b8860b", "#4a4a4a", "#d0709c"};

/// Maps a value to a pixel.
struct Scale {
  double low = std::numeric_limits<double>::max();
  double high = 0;
  double start = 0;
  double end = 0;

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }

  double place(double value) const {
    const double share =
        high > low ? (std::log2(value) - std::log2(low)) / (std::log2(high) - std::log2(low)) : 0.5;
    return start + share * (end - start);
  }
};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  }
  return out;
}

std::string label(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     escaped(text));
}

std::string time_text(double microseconds) {
  return microseconds < 1000 ? fmt::format("{:g} us", microseconds)
                             : fmt::format("{:g} ms", microseconds / 1000);
}

std::string time_axis(const Scale& scale) {
  std::string out;
  for (double tick = std::pow(10, std::ceil(std::log10(scale.low))); tick <= scale.high;
       tick *= 10) {
    const double y = scale.place(tick);
    out += fmt::format("<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>\n",
                       kLeft, y, kWidth - kRight, y);
    out += label(kLeft - 8, y + 4, "end", time_text(tick));
  }
  return out;
}

std::string size_axis(const Scale& scale) {
  std::string out;
  for (double tick = scale.low; tick <= scale.high * 1.0001; tick *= 4) {
    out += label(scale.place(tick), kHeight - kBottom + 20, "middle",
                 text::size_text(static_cast<std::uint64_t>(std::llround(tick))));
  }
  return out + label((kLeft + kWidth - kRight) / 2, kHeight - 12, "middle", "bytes of tensor");
}

std::string curve_lines(const TimeCurve& curve, std::size_t index, const Scale& sizes,
                        const Scale& times) {
  const char* colour = kColours[index % kColours.size()];
  std::string corners;
  for (const TimeCurve::Point& point : curve.points) {
    corners +=
        fmt::format("{:.1f},{:.1f} ", sizes.place(point.bytes), times.place(point.microseconds));
  }
  const double y = kTop + 10 + 18 * static_cast<double>(index);
  return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n"
                     "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" "
                     "stroke-width=\"2\"/>\n",
                     corners, colour, kWidth - kRight + 14, y, kWidth - kRight + 34, y, colour) +
         label(kWidth - kRight + 40, y + 4, "start", curve.name);
}

} // namespace

std::string plot_times(const std::string& title, const std::vector<TimeCurve>& curves) {
  Scale sizes{.start = kLeft + 20, .end = kWidth - kRight - 20};
  Scale times{.start = kHeight - kBottom, .end = kTop};
  for (const TimeCurve& curve : curves) {
    for (const TimeCurve::Point& point : curve.points) {
      sizes.include(point.bytes);
      times.include(point.microseconds);
    }
  }
  if (sizes.high == 0) {
    return "";
  }
  std::string out = fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" "
                                "font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n"
                                "<rect width=\"{}\" height=\"{}\" fill=\"#fff\"/>\n",
                                kWidth, kHeight, kWidth, kHeight);
  out += label(kWidth / 2, 22, "middle", title) + time_axis(times) + size_axis(sizes);
  for (std::size_t index = 0; index < curves.size(); ++index) {
    out += curve_lines(curves[index], index, sizes, times);
  }
  return out + "</svg>\n";
}

} // namespace weir::app
