// SPDX-License-Identifier: BSD-3-Clause
#include "manager/picture_svg.hpp"

#include "manager/picture_findings.hpp"
#include "manager/picture_layout.hpp"
#include "manager/picture_links.hpp"
#include "manager/picture_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::manager {
namespace {

// Pixels.
constexpr double kPadding = 9;
constexpr double kIcon = 16;
constexpr double kLegendLine = 18;
constexpr double kApart = 5; // jobs' lines on one link

constexpr double kLetter = 7.7;         // of a name, on average
constexpr int kMostLines = 6;           // jobs drawn on one link
constexpr int kMostLabelled = 20;       // links, each with its jobs and its load in words
constexpr double kBusy = 0.5;           // then a link's load is told anyway
constexpr double kFull = 0.9;           // and then in bold letters
constexpr std::ptrdiff_t kMostTags = 2; // jobs named at one host

constexpr std::string_view kTriangle = "M0,-7 8,7 -8,7z M-1,-2v5h2v-5z M-1,4.2v1.6h2v-1.6z";
constexpr std::string_view kHourglass = "M-5,-7h10v1.6l-4,5.4 4,5.4v1.6h-10v-1.6l4,-5.4 -4,-5.4z";
constexpr std::string_view kTwoBars = "M-5,-6h3.4v12h-3.4z M1.6,-6h3.4v12h-3.4z";

/// How a box looks, and why.
struct Look {
  std::string_view kind; // a class; empty: all is well
  std::string_view icon;
  std::string words; // below the name
};

std::string percent_of(double share) {
  return fmt::format("{:.0f} %", 100 * share);
}

Look look_of(const v1::PictureSwitch& one) {
  if (!one.drained().empty()) {
    return {"drained", kTwoBars, one.state() == "serving" ? "drained" : "drained, " + one.state()};
  }
  if (one.state() != "serving") {
    return {"trouble", kTriangle, one.state()};
  }
  return {"", "", "memory " + percent_of(memory_of(one))};
}

class Drawing {
 public:
  explicit Drawing(const v1::FabricPicture& picture) : picture_(picture), layout_(picture) {
    for (const v1::Job& job : picture.jobs()) {
      for (const std::string& host : job.hosts()) {
        jobs_of_[host].push_back(job.id());
      }
      for (const std::string& host : job.waits_for()) {
        waiting_for_.emplace(host, job.id());
      }
    }
  }

  std::string draw(SvgUse use) {
    draw_rails();
    const std::vector<Ends>& ends = layout_.links();
    const std::vector<std::string> names = names_of_links(picture_);
    for (std::size_t at = 0; at < ends.size(); ++at) {
      draw_link(picture_.links(static_cast<int>(at)), names[at], ends[at]);
    }
    for (std::size_t at = 0; at < ends.size(); ++at) {
      draw_labels(picture_.links(static_cast<int>(at)), ends[at]);
    }
    for (const v1::PictureSwitch& one : picture_.switches()) {
      draw_switch(one);
    }
    for (const v1::PictureHost& host : picture_.hosts()) {
      draw_host(host);
    }
    const double height = use == SvgUse::file ? draw_list(layout_.height()) : layout_.height();
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"fabric\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\" "
        "width=\"{2:.0f}\" role=\"img\" aria-labelledby=\"fabric-title fabric-words\">\n"
        "<title id=\"fabric-title\">The fabric {3}</title>\n"
        "<desc id=\"fabric-words\">{4}</desc>\n{5}"
        "<defs><pattern id=\"hatch\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">"
        "<rect class=\"plate\" width=\"8\" height=\"8\"/>"
        "<path class=\"hatch\" d=\"M-2,2 2,-2 M0,8 8,0 M6,10 "
        "10,6\"/></pattern></defs>\n{6}</svg>\n",
        layout_.width(), height, layout_.width() * (use == SvgUse::file ? 1 : kLeastScale),
        escaped(picture_.fabric()), words(),
        use == SvgUse::file ? fmt::format("<style>{}</style>\n", picture_style()) : "", body_);
  }

 private:
  static constexpr double kLeastScale = 0.62; // then a page's reader moves it sideways

  template <typename... Values>
  void put(fmt::format_string<const Values&...> format, const Values&... values) {
    fmt::format_to(std::back_inserter(body_), format, values...);
  }

  /// The picture in sentences.
  std::string words() const {
    std::string words = fmt::format("{} switches, {} hosts, {} jobs.", picture_.switches_size(),
                                    picture_.hosts_size(), picture_.jobs_size());
    for (const Finding& finding : findings_of(picture_)) {
      words += fmt::format(" {}.", finding.words);
    }
    return escaped(words);
  }

  /// From each leaf down along its hosts.
  void draw_rails() {
    std::map<std::string, double> end_of;
    for (const v1::PictureHost& host : picture_.hosts()) {
      if (const Area* const box = layout_.host(host.name())) {
        double& end = end_of[host.switch_name()];
        end = std::max(end, box->centre.y);
      }
    }
    for (const auto& [name, end] : end_of) {
      if (const Area* const leaf = layout_.switch_named(name)) {
        put("<path class=\"rail\" d=\"M{0:.1f},{1:.1f}V{2:.1f}\"/>\n", leaf->centre.x,
            leaf->bottom(), end);
      }
    }
  }

  void draw_link(const v1::PictureLink& link, const std::string& name, const Ends& ends) {
    put("<g class=\"link {}\"><title>{}</title>\n", kind_of(link), escaped(title_of(link, name)));
    draw_way("cable", ends, 0,
             fmt::format(" stroke-width=\"{:.1f}\"", 2 + 6 * std::min(1.0, link.load())));
    const int lines = std::min(link.jobs_size(), kMostLines);
    for (int at = 0; at < lines; ++at) {
      draw_way("tree " + class_of(link.jobs(at)), ends, kApart * (at - (lines - 1) / 2.0), "");
    }
    if (link.is_down()) {
      const Point middle = along(ends, 0.5);
      put("<path class=\"cross\" d=\"M{0:.1f},{1:.1f}l14,14m0,-14l-14,14\"/>\n", middle.x - 7,
          middle.y - 7);
    }
    put("</g>\n");
  }

  /// Above all lines. Where there are many, those alone that somebody looks for.
  void draw_labels(const v1::PictureLink& link, const Ends& ends) {
    const bool is_crowded = picture_.links_size() > kMostLabelled;
    if (!is_crowded) {
      const Point middle = along(ends, 0.65);
      const std::vector<std::uint64_t> tags(
          link.jobs().begin(), link.jobs().begin() + std::min(link.jobs_size(), kMostLines));
      draw_tags({middle.x - width_of(tags) / 2, middle.y}, tags);
    }
    if (!is_crowded || link.load() >= kBusy || !kind_of(link).empty()) {
      put("<g class=\"{}\">", kind_of(link));
      draw_load(link, along(ends, 0.3));
      put("</g>\n");
    }
  }

  static std::string_view kind_of(const v1::PictureLink& link) {
    return link.is_down() ? "trouble" : state_of(link);
  }

  static std::string title_of(const v1::PictureLink& link, const std::string& name) {
    std::string title = fmt::format("{}: {} of its rate", name, percent_of(link.load()));
    for (const std::uint64_t job : link.jobs()) {
      title += fmt::format(", job {}", job);
    }
    const std::string_view state = state_of(link);
    return state.empty() ? title : fmt::format("{}, {}", title, state);
  }

  /// A line from end to end, moved to its side.
  void draw_way(std::string_view kind, const Ends& ends, double aside, const std::string& more) {
    const double dx = ends.high.x - ends.low.x;
    const double dy = ends.high.y - ends.low.y;
    const double length = std::max(1.0, std::hypot(dx, dy));
    const double x = -dy / length * aside;
    const double y = dx / length * aside;
    const std::string way = ends.is_level
                                ? fmt::format("Q{:.1f},{:.1f} ", (ends.low.x + ends.high.x) / 2 + x,
                                              top_of_arc(ends) + y)
                                : "L";
    put("<path class=\"{}\" d=\"M{:.1f},{:.1f}{}{:.1f},{:.1f}\"{}/>\n", kind, ends.low.x + x,
        ends.low.y + y, way, ends.high.x + x, ends.high.y + y, more);
  }

  static double top_of_arc(const Ends& ends) {
    return ends.low.y - std::min(60.0, std::abs(ends.high.x - ends.low.x) / 4);
  }

  static Point along(const Ends& ends, double part) {
    const double x = ends.low.x + (ends.high.x - ends.low.x) * part;
    const double y = ends.low.y + (ends.high.y - ends.low.y) * part;
    const double rise = ends.is_level ? (ends.low.y - top_of_arc(ends)) * 2 * part * (1 - part) : 0;
    return {x, y - rise};
  }

  static double tag_width(const std::string& number) {
    return 9 + 6.2 * static_cast<double>(number.size());
  }

  void draw_tag(std::uint64_t job, Point at) {
    const std::string number = std::to_string(job);
    const double width = tag_width(number);
    put("<rect class=\"{} tag\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"15\" "
        "rx=\"7.5\"/><text class=\"number\" x=\"{:.1f}\" y=\"{:.1f}\" "
        "text-anchor=\"middle\">{}</text>\n",
        class_of(job), at.x - width / 2, at.y - 7.5, width, at.x, at.y + 3.6, number);
  }

  void draw_load(const v1::PictureLink& link, Point at) {
    const std::string_view state = state_of(link);
    const std::string words = state.empty() ? percent_of(link.load()) : std::string(state);
    const double width = 8 + 6 * static_cast<double>(words.size());
    put("<rect class=\"plate\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"13\" "
        "rx=\"4\"/><text class=\"load{}\" x=\"{:.1f}\" y=\"{:.1f}\" "
        "text-anchor=\"middle\">{}</text>\n",
        at.x - width / 2, at.y - 6.5, width, link.load() >= kFull ? " full" : "", at.x, at.y + 3.5,
        words);
  }

  void draw_switch(const v1::PictureSwitch& one) {
    const Area& box = *layout_.switch_named(one.name());
    const Look look = look_of(one);
    draw_box(box, one.name(), look, 0);
    if (look.kind.empty()) {
      const double whole = box.width - 2 * kPadding;
      const double used = whole * std::min(1.0, memory_of(one));
      put("<rect class=\"memory\" x=\"{0:.1f}\" y=\"{1:.1f}\" width=\"{2:.1f}\" height=\"3\"/>"
          "<rect class=\"used\" x=\"{0:.1f}\" y=\"{1:.1f}\" width=\"{3:.1f}\" height=\"3\"/>\n",
          box.left() + kPadding, box.bottom() - 7, whole, used);
    }
    put("</g>\n");
  }

  void draw_host(const v1::PictureHost& host) {
    const Area* const box = layout_.host(host.name());
    if (box == nullptr) {
      return;
    }
    const auto late = waiting_for_.find(host.name());
    const Look look =
        late != waiting_for_.end()
            ? Look{"late", kHourglass, fmt::format("job {} waits for it", late->second)}
        : !host.drained().empty() ? Look{"drained", kTwoBars, "drained"}
                                  : Look{};
    if (layout_.is_cell(host.name())) {
      draw_cell(*box, host.name());
    } else {
      const std::vector<std::uint64_t> tags = tagged_at(host.name());
      draw_box(*box, host.name(), look, width_of(tags));
      draw_tags({box->left() + box->width - 3 - width_of(tags), box->top() + 11}, tags);
      put("</g>\n");
    }
  }

  /// With the number of its first job.
  void draw_cell(const Area& box, const std::string& name) {
    const auto jobs = jobs_of_.find(name);
    const bool is_used = jobs != jobs_of_.end();
    put("<g><title>{}</title><rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"{:.1f}\" rx=\"3\"/>",
        escaped(name), is_used ? class_of(jobs->second.front()) + " tag" : "box", box.left(),
        box.top(), box.width, box.height);
    if (is_used) {
      put("<text class=\"tiny\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>",
          box.centre.x, box.centre.y + 2.9, jobs->second.front() % 100);
    }
    put("</g>\n");
  }

  /// A group that the caller ends. `taken` of its right side is for others.
  void draw_box(const Area& box, const std::string& name, const Look& look, double taken) {
    put("<g class=\"{}\"><title>{}{}{}</title>"
        "<rect class=\"box\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "rx=\"6\"/>\n",
        look.kind, escaped(name), look.words.empty() ? "" : ": ", escaped(look.words), box.left(),
        box.top(), box.width, box.height);
    double left = box.left() + kPadding;
    if (!look.icon.empty()) {
      put("<path class=\"icon\" fill-rule=\"evenodd\" transform=\"translate({:.1f},{:.1f})\" "
          "d=\"{}\"/>\n",
          left + kIcon / 2 - 1, box.centre.y, look.icon);
      left += kIcon + 2;
    }
    const double room = box.left() + box.width - 4 - taken - left;
    put("<text class=\"name\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", left,
        box.centre.y + (look.words.empty() ? 4 : -3),
        escaped(shortened(name, static_cast<std::size_t>(std::max(3 * kLetter, room) / kLetter))));
    if (!look.words.empty()) {
      put("<text class=\"small\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", left, box.centre.y + 9,
          escaped(look.words));
    }
  }

  /// The jobs whose numbers stand at a host's right.
  std::vector<std::uint64_t> tagged_at(const std::string& host) const {
    const auto found = jobs_of_.find(host);
    if (found == jobs_of_.end() || waiting_for_.contains(host)) {
      return {};
    }
    const auto& jobs = found->second;
    return {jobs.begin(), jobs.begin() + std::min<std::ptrdiff_t>(std::ssize(jobs), kMostTags)};
  }

  static double width_of(const std::vector<std::uint64_t>& tags) {
    double width = 0;
    for (const std::uint64_t job : tags) {
      width += tag_width(std::to_string(job)) + 2;
    }
    return width;
  }

  void draw_tags(Point left, const std::vector<std::uint64_t>& tags) {
    for (const std::uint64_t job : tags) {
      const double width = tag_width(std::to_string(job)) + 2;
      draw_tag(job, {left.x + width / 2, left.y});
      left.x += width;
    }
  }

  double draw_list(double y) {
    for (const v1::Job& job : picture_.jobs()) {
      put("<path class=\"tree {}\" d=\"M16,{:.1f}h28\"/><text x=\"52\" y=\"{:.1f}\">{}: "
          "{}</text>\n",
          class_of(job.id()), y + 6, y + 10, escaped(manager::title_of(job)), escaped(job.state()));
      y += kLegendLine;
    }
    return y + kPadding;
  }

  const v1::FabricPicture& picture_;
  const Layout layout_;
  std::map<std::string, std::vector<std::uint64_t>> jobs_of_; // by host
  std::map<std::string, std::uint64_t> waiting_for_;          // by host: a job
  std::string body_;
};

} // namespace

std::string class_of(std::uint64_t job) {
  constexpr std::uint64_t colours = 8; // of picture_style()
  return fmt::format("job-{}", job % colours);
}

std::string svg_of(const v1::FabricPicture& picture, SvgUse use) {
  return Drawing(picture).draw(use);
}

} // namespace weir::manager
