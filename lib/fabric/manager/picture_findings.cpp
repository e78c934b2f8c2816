// SPDX-License-Identifier: BSD-3-Clause
#include "manager/picture_findings.hpp"

#include "manager/picture_links.hpp"
#include "manager/picture_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace weir::manager {
namespace {

constexpr std::size_t kMostLetters = 40; // of a job's name

std::string_view words_of(std::string_view state) {
  return state == "suspect"   ? "is suspect: it has not been heard for some seconds"
         : state == "refused" ? "refuses this manager"
                              : "is not reached";
}

void look_at_lead(const v1::FabricPicture& picture, std::vector<Finding>& findings) {
  if (picture.is_in_doubt()) { // its store does not answer either
    findings.push_back({Weight::trouble, "in doubt: the manager does not know whether it leads; "
                                         "all of this is from its memory"});
  } else if (picture.store_is_lost()) {
    findings.push_back(
        {Weight::trouble, "the manager's store does not answer: all of this is from its memory"});
  }
  if (picture.awaits_claim()) {
    findings.push_back(
        {Weight::trouble, "the manager gives no orders: it waits for weirctl fabric claim"});
  }
  if (picture.is_adopting()) {
    findings.push_back({Weight::trouble, "the manager gives no orders yet: it adopts the jobs that "
                                         "run, and waits for a switch"});
  }
}

void look_at_switches(const v1::FabricPicture& picture, std::vector<Finding>& findings) {
  for (const v1::PictureSwitch& one : picture.switches()) {
    if (!one.drained().empty()) {
      findings.push_back({Weight::note, fmt::format("{} is drained", one.name())});
    }
    if (one.state() != "serving") {
      const Weight weight = one.drained().empty() ? Weight::trouble : Weight::note;
      findings.push_back({weight, fmt::format("{} {}", one.name(), words_of(one.state()))});
    }
  }
}

void look_at_hosts(const v1::FabricPicture& picture, std::vector<Finding>& findings) {
  for (const v1::PictureHost& host : picture.hosts()) {
    if (!host.drained().empty()) {
      findings.push_back({Weight::note, fmt::format("{} is drained", host.name())});
    }
  }
}

void look_at_links(const v1::FabricPicture& picture, std::vector<Finding>& findings) {
  const std::vector<std::string> names = names_of_links(picture);
  for (std::size_t at = 0; at < names.size(); ++at) {
    const v1::PictureLink& link = picture.links(static_cast<int>(at));
    if (const std::string_view state = state_of(link); !state.empty()) {
      findings.push_back({link.is_down() ? Weight::trouble : Weight::note,
                          fmt::format("the link {} is {}", names[at], state)});
    }
  }
}

void look_at_jobs(const v1::FabricPicture& picture, std::vector<Finding>& findings) {
  for (const v1::Job& job : picture.jobs()) {
    if (job.state() == "waiting") {
      findings.push_back({Weight::note, title_of(job) + " waits for room"});
    }
    for (const std::string& host : job.waits_for()) {
      findings.push_back({Weight::note, fmt::format("{} waits for {} (rank {})", title_of(job),
                                                    host, rank_of(job, host))});
    }
  }
}

} // namespace

std::string lead_of(const v1::FabricPicture& picture) {
  const std::string who = fmt::format("{}, term {}", picture.manager(), picture.term());
  return picture.is_in_doubt()    ? fmt::format("in doubt whether led by {}", who)
         : picture.awaits_claim() ? fmt::format("led by nobody: {}, waits for a claim", who)
         : picture.is_adopting()  ? fmt::format("led by nobody: {}, waits for switches", who)
                                  : fmt::format("led by {}", who);
}

std::ptrdiff_t rank_of(const v1::Job& job, const std::string& host) {
  return std::ranges::find(job.hosts(), host) - job.hosts().begin();
}

std::string_view state_of(const v1::PictureLink& link) {
  return link.is_down() ? "down" : link.drained().empty() ? "" : "drained";
}

double memory_of(const v1::PictureSwitch& one) {
  return static_cast<double>(one.frames()) /
         std::max<double>(1, static_cast<double>(one.most_frames()));
}

std::string title_of(const v1::Job& job) {
  const std::string number = job.id() == 0 ? "a job" : fmt::format("job {}", job.id());
  return job.name().empty() ? number
                            : fmt::format("{} ({})", number, shortened(job.name(), kMostLetters));
}

std::vector<Finding> findings_of(const v1::FabricPicture& picture) {
  std::vector<Finding> findings;
  look_at_lead(picture, findings);
  look_at_switches(picture, findings);
  look_at_links(picture, findings);
  look_at_hosts(picture, findings);
  look_at_jobs(picture, findings);
  std::ranges::stable_sort(findings, {}, &Finding::weight);
  return findings;
}

} // namespace weir::manager
