// SPDX-License-Identifier: BSD-3-Clause
#include "manager/picture_svg.hpp"

#include "manager/picture_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <vector>

namespace weir::manager {
namespace {

// Pixels.
constexpr double kHostWidth = 92;
constexpr double kLevelHeight = 130;
constexpr double kBoxWidth = 84;
constexpr double kBoxHeight = 34;
constexpr double kMargin = 24;
constexpr double kLegendLine = 20;

constexpr std::array<std::string_view, 8> kColours{"#1b6ca8", "#c8553d", "#4f772d", "#8d5a97",
                                                   "#b38600", "#00798c", "#a23b72", "#5c5c5c"};

struct Place {
  double x = 0;
  double y = 0;
};

class Drawing {
 public:
  explicit Drawing(const v1::FabricPicture& picture) : picture_(picture) {
    place();
    for (const v1::Job& job : picture.jobs()) {
      colour_of_[job.id()] = kColours[colour_of_.size() % kColours.size()];
      late_.insert(job.waits_for().begin(), job.waits_for().end());
    }
  }

  std::string draw() {
    for (const v1::PictureHost& host : picture_.hosts()) {
      draw_line(places_[host.name()], places_[host.switch_name()], "#999", 1, "");
    }
    for (const v1::PictureLink& link : picture_.links()) {
      draw_link(link);
    }
    for (const v1::PictureSwitch& one : picture_.switches()) {
      const bool is_well = one.state() == "serving" && one.drained().empty();
      draw_box(one.name(),
               is_well                  ? "#e8f1e4"
               : !one.drained().empty() ? "#dddddd"
                                        : "#f6d5d0",
               is_well                 ? ""
               : one.drained().empty() ? one.state()
                                       : "drained");
    }
    for (const v1::PictureHost& host : picture_.hosts()) {
      const bool is_late = late_.contains(host.name());
      draw_box(host.name(),
               is_late                  ? "#ffe08a"
               : host.drained().empty() ? "#ffffff"
                                        : "#dddddd",
               is_late                  ? "waited for"
               : host.drained().empty() ? ""
                                        : "drained");
    }
    const double height = draw_legend();
    return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" "
                       "font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n"
                       "<title>fabric {}</title>\n{}</svg>\n",
                       width_, height, escaped(picture_.fabric()), body_);
  }

 private:
  /// Hosts in the lowest row, by their switches; switches above, by level.
  void place() {
    std::map<std::string, std::vector<std::string>> hosts_of;
    for (const v1::PictureHost& host : picture_.hosts()) {
      hosts_of[host.switch_name()].push_back(host.name());
    }
    std::uint32_t top = 0;
    for (const v1::PictureSwitch& one : picture_.switches()) {
      top = std::max(top, one.level());
    }
    host_y_ = kMargin + (top + 1) * kLevelHeight;
    double x = kMargin;
    for (const v1::PictureSwitch& one : picture_.switches()) {
      const auto& hosts = hosts_of[one.name()];
      if (hosts.empty()) {
        continue;
      }
      const double begin = x;
      for (const std::string& host : hosts) {
        places_[host] = {x + kHostWidth / 2, host_y_};
        x += kHostWidth;
      }
      places_[one.name()] = {(begin + x) / 2, kMargin + (top - one.level()) * kLevelHeight};
      x += kMargin;
    }
    width_ = std::max(x, 4 * kHostWidth);
    for (std::uint32_t level = 1; level <= top; ++level) {
      std::vector<std::string> row;
      for (const v1::PictureSwitch& one : picture_.switches()) {
        if (one.level() == level) {
          row.push_back(one.name());
        }
      }
      for (std::size_t at = 0; at < row.size(); ++at) {
        places_[row[at]] = {width_ * (static_cast<double>(at) + 0.5) /
                                static_cast<double>(row.size()),
                            kMargin + (top - level) * kLevelHeight};
      }
    }
  }

  void draw_line(Place from, Place to, std::string_view colour, double thick,
                 std::string_view more) {
    fmt::format_to(std::back_inserter(body_),
                   "<line x1=\"{:.0f}\" y1=\"{:.0f}\" x2=\"{:.0f}\" y2=\"{:.0f}\" stroke=\"{}\" "
                   "stroke-width=\"{:.1f}\"{}/>\n",
                   from.x, from.y, to.x, to.y, colour, thick, more);
  }

  /// A line for each job side by side, over the link's own.
  void draw_link(const v1::PictureLink& link) {
    const Place one = places_[link.one()];
    const Place other = places_[link.other()];
    draw_line(one, other, link.is_down() ? "#c0392b" : "#cccccc",
              2 + 4 * std::min(1.0, link.load()),
              link.is_down() ? " stroke-dasharray=\"6 4\"" : "");
    constexpr double apart = 4;
    double shift = -apart * (link.jobs_size() - 1) / 2.0;
    for (const std::uint64_t job : link.jobs()) {
      draw_line({one.x + shift, one.y}, {other.x + shift, other.y}, colour_of_[job], 2.5, "");
      shift += apart;
    }
    fmt::format_to(std::back_inserter(body_),
                   "<text x=\"{:.0f}\" y=\"{:.0f}\" fill=\"#555\" text-anchor=\"middle\" "
                   "font-size=\"10\">{:.0f} %</text>\n",
                   (one.x + other.x) / 2 + 12, (one.y + other.y) / 2, 100 * link.load());
  }

  void draw_box(const std::string& name, std::string_view fill, std::string_view below) {
    const Place place = places_[name];
    fmt::format_to(std::back_inserter(body_),
                   "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" rx=\"5\" "
                   "fill=\"{}\" stroke=\"#555\"/>\n"
                   "<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>\n",
                   place.x - kBoxWidth / 2, place.y - kBoxHeight / 2, kBoxWidth, kBoxHeight, fill,
                   place.x, place.y + (below.empty() ? 4 : -1), escaped(name));
    if (!below.empty()) {
      fmt::format_to(std::back_inserter(body_),
                     "<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\" font-size=\"10\" "
                     "fill=\"#a02c1c\">{}</text>\n",
                     place.x, place.y + 12, escaped(below));
    }
  }

  double draw_legend() {
    double y = host_y_ + kBoxHeight + kMargin;
    for (const v1::Job& job : picture_.jobs()) {
      fmt::format_to(std::back_inserter(body_),
                     "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"14\" height=\"4\" fill=\"{}\"/>"
                     "<text x=\"{:.0f}\" y=\"{:.0f}\">job {} {}: {}</text>\n",
                     kMargin, y - 6, colour_of_[job.id()], kMargin + 20, y, job.id(),
                     escaped(job.name()), escaped(job.state()));
      y += kLegendLine;
    }
    return y;
  }

  const v1::FabricPicture& picture_;
  std::map<std::string, Place> places_;
  std::map<std::uint64_t, std::string_view> colour_of_;
  std::set<std::string> late_;
  double width_ = 0;
  double host_y_ = 0;
  std::string body_;
};

} // namespace

std::string svg_of(const v1::FabricPicture& picture) {
  return Drawing(picture).draw();
}

} // namespace weir::manager
