// SPDX-License-Identifier: BSD-3-Clause
#include "manager/picture_page.hpp"

#include "manager/picture_findings.hpp"
#include "manager/picture_links.hpp"
#include "manager/picture_svg.hpp"
#include "manager/picture_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <functional>
#include <numeric>
#include <vector>

namespace weir::manager {
namespace {

constexpr std::size_t kMostRows = 200; // of a list
constexpr std::string_view kFavicon =
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath "
    "d='M8 3 3 13M8 3l5 10M8 3v10' stroke='%230062a8' stroke-width='2'/%3E%3C/svg%3E";

std::string head_of(const std::string& title) {
  return fmt::format(
      "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
      "<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
      "<noscript><meta http-equiv=\"refresh\" content=\"2\"/></noscript>\n"
      "<title>{}</title>\n<link rel=\"icon\" href=\"{}\"/>\n"
      "<link rel=\"stylesheet\" href=\"fabric.css\"/>\n"
      "<script src=\"fabric.js\" defer=\"defer\"></script>\n</head>\n"
      "<body>\n<p id=\"lost\" role=\"alert\" hidden=\"hidden\"></p>\n<main id=\"fabric\">\n",
      escaped(title), kFavicon);
}

/// By a format of strftime().
std::string utc_of(std::chrono::system_clock::time_point when, const char* format) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(when);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format, &parts)};
}

std::string time_of(std::chrono::system_clock::time_point when) {
  return fmt::format("<time datetime=\"{}\">{}</time>", utc_of(when, "%FT%TZ"),
                     utc_of(when, "%F %T UTC"));
}

std::string table_head(std::string_view caption, const std::vector<std::string_view>& columns) {
  std::string text = fmt::format("<table><caption>{}</caption>\n<thead><tr>", caption);
  for (const std::string_view column : columns) {
    text += fmt::format("<th scope=\"col\">{}</th>", column);
  }
  return text + "</tr></thead>\n<tbody>\n";
}

std::string rows_left_out(std::size_t count) {
  return count <= kMostRows
             ? "</tbody></table>\n"
             : fmt::format("</tbody></table>\n<p>and {} more</p>\n", count - kMostRows);
}

/// What one reads from the other end of the room.
std::string findings_list(const std::vector<Finding>& findings) {
  const auto troubles = std::ranges::count(findings, Weight::trouble, &Finding::weight);
  std::string text =
      fmt::format("<section class=\"{}\" aria-labelledby=\"state\"><h2 id=\"state\">{}</h2>\n",
                  troubles == 0 ? "well" : "trouble",
                  troubles == 0   ? std::string("✓ All is well")
                  : troubles == 1 ? std::string("⚠ 1 thing is wrong")
                                  : fmt::format("⚠ {} things are wrong", troubles));
  if (!findings.empty()) {
    text += "<ul>\n";
    for (const Finding& finding : findings) {
      text += fmt::format("<li class=\"{}\">{}</li>\n",
                          finding.weight == Weight::trouble ? "trouble" : "note",
                          escaped(finding.words));
    }
    text += "</ul>\n";
  }
  return text + "</section>\n";
}

std::string row_of(const v1::Job& job) {
  std::string state = escaped(job.state());
  for (const std::string& host : job.waits_for()) {
    state += fmt::format("<br/><strong>waits for {}</strong>", escaped(host));
  }
  const std::string number =
      job.id() == 0 ? "–"
                    : fmt::format("<svg class=\"fabric swatch\" viewBox=\"0 0 28 6\" "
                                  "aria-hidden=\"true\"><path class=\"tree {}\" d=\"M0,3h28\"/>"
                                  "</svg>{}",
                                  class_of(job.id()), job.id());
  return fmt::format("<tr><th scope=\"row\">{}</th><td><span "
                     "class=\"called\">{}</span>{}</td><td>{}</td><td>{}</td></tr>\n",
                     number, escaped(job.name()),
                     job.tenant().empty()
                         ? ""
                         : fmt::format("<span class=\"tenant\">{}</span>", escaped(job.tenant())),
                     state, job.hosts_size());
}

std::string jobs_table(const v1::FabricPicture& picture) {
  if (picture.jobs_size() == 0) {
    return "<section class=\"jobs\"><h2>No jobs</h2></section>\n";
  }
  std::string text =
      "<section class=\"jobs\">" + table_head("Jobs", {"job", "name, tenant", "state", "hosts"});
  const auto count = static_cast<std::size_t>(picture.jobs_size());
  for (std::size_t at = 0; at < std::min(count, kMostRows); ++at) {
    text += row_of(picture.jobs(static_cast<int>(at)));
  }
  return text + rows_left_out(count) + "</section>\n";
}

std::string row_of(const v1::PictureLink& link, const std::string& name) {
  const std::string_view state = state_of(link);
  return fmt::format("<tr><th scope=\"row\">{}</th><td>{}{}{:.0f} %</td><td>{}</td></tr>\n",
                     escaped(name), state, state.empty() ? "" : ", ", 100 * link.load(),
                     fmt::join(link.jobs(), ", "));
}

/// The busiest first.
std::string links_table(const v1::FabricPicture& picture) {
  const std::vector<std::string> names = names_of_links(picture);
  std::vector<int> order(names.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](int at) { return picture.links(at).load(); });
  std::string text = "<details id=\"links\"><summary>Links, the busiest first</summary>\n" +
                     table_head("Links", {"link", "load", "jobs"});
  for (std::size_t at = 0; at < std::min(order.size(), kMostRows); ++at) {
    text += row_of(picture.links(order[at]), names[static_cast<std::size_t>(order[at])]);
  }
  return text + rows_left_out(order.size()) + "</details>\n";
}

} // namespace

/// The page's script looks for the picture and the links: one that leads has them.
std::string page_of(const Standby& standby, std::chrono::system_clock::time_point drawn) {
  return head_of(fmt::format("– {}", standby.fabric)) +
         fmt::format("<header><h1>{}</h1>\n<p>{}</p></header>\n", escaped(standby.fabric),
                     time_of(drawn)) +
         fmt::format(
             "<section id=\"picture\" aria-labelledby=\"state\"><h2 id=\"state\">{} stands "
             "by</h2>\n<p>{}</p></section>\n",
             escaped(standby.manager),
             standby.leader.empty()
                 ? "No manager leads that it knows of. Running jobs go on."
                 : fmt::format("{} leads: its page has the fabric.", escaped(standby.leader))) +
         "<details id=\"links\" hidden=\"hidden\"><summary>Links</summary></details>\n"
         "</main>\n</body>\n</html>\n";
}

std::string page_of(const v1::FabricPicture& picture, std::chrono::system_clock::time_point drawn) {
  const std::vector<Finding> findings = findings_of(picture);
  const bool is_well = findings.empty() || findings.front().weight != Weight::trouble;
  return head_of(fmt::format("{} {}", is_well ? "✓" : "⚠", picture.fabric())) +
         fmt::format("<header><h1>{}</h1>\n<p>{}, {}</p></header>\n", escaped(picture.fabric()),
                     escaped(lead_of(picture)), time_of(drawn)) +
         findings_list(findings) +
         "<section class=\"picture\" id=\"picture\" tabindex=\"0\" aria-label=\"picture\">\n" +
         svg_of(picture, SvgUse::page) + "</section>\n<div class=\"lists\">\n" +
         jobs_table(picture) + links_table(picture) + "</div>\n</main>\n</body>\n</html>\n";
}

} // namespace weir::manager
