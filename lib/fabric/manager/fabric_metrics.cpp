// SPDX-License-Identifier: BSD-3-Clause
#include "manager/fabric_metrics.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <string_view>

namespace weir::manager {
namespace {

/// Text that grows family by family.
class Sheet {
 public:
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    fmt::format_to(std::back_inserter(text_),
                   "# HELP weir_fabric_{} {}\n# TYPE weir_fabric_{} {}\n", name, help, name, type);
    name_ = name;
  }

  void add(double value) {
    fmt::format_to(std::back_inserter(text_), "weir_fabric_{} {}\n", name_, value);
  }

  void add(std::string_view label, std::string_view of, double value) {
    fmt::format_to(std::back_inserter(text_), "weir_fabric_{}{{{}=\"{}\"}} {}\n", name_, label, of,
                   value);
  }

  void add(std::string_view label, const std::map<std::string, std::uint64_t>& counts) {
    for (const auto& [of, count] : counts) {
      add(label, of, static_cast<double>(count));
    }
  }

  const std::string& text() const { return text_; }

 private:
  std::string name_;
  std::string text_;
};

} // namespace

std::string metrics_of(const v1::FabricPicture& picture, const jobs::Loop::Counts& counts) {
  Sheet sheet;
  sheet.begin("leader", "gauge", "1: this manager leads");
  sheet.add(1);
  std::map<std::string, std::uint64_t> jobs{
      {"placing", 0}, {"placed", 0}, {"ending", 0}, {"waiting", 0}};
  for (const v1::Job& job : picture.jobs()) {
    ++jobs[job.state()];
  }
  sheet.begin("jobs", "gauge", "jobs by state");
  sheet.add("state", jobs);
  sheet.begin("requests_total", "counter", "requests for rings by answer");
  sheet.add("answer", counts.requests);
  sheet.begin("refusals_total", "counter", "requests that were refused by what was short");
  sheet.add("what", counts.refusals);
  sheet.begin("drift_total", "counter", "what the loop has put right");
  sheet.add("kind", counts.drift);
  sheet.begin("store_lost", "gauge", "1: the store does not answer");
  sheet.add(picture.store_is_lost() ? 1 : 0);
  sheet.begin("link_load", "gauge", "load of a link over its rate");
  for (const v1::PictureLink& link : picture.links()) {
    sheet.add("link", fmt::format("{}-{}", link.one(), link.other()), link.load());
  }
  sheet.begin("switch_memory_ratio", "gauge", "frames promised over those that rings may hold");
  for (const v1::PictureSwitch& one : picture.switches()) {
    const double most = one.most_frames() == 0 ? 1 : static_cast<double>(one.most_frames());
    sheet.add("switch", one.name(), static_cast<double>(one.frames()) / most);
  }
  sheet.begin("switch_suspect", "gauge", "1: the switch is not heard");
  for (const v1::PictureSwitch& one : picture.switches()) {
    sheet.add("switch", one.name(), one.state() == "serving" ? 0 : 1);
  }
  return sheet.text();
}

} // namespace weir::manager
