// SPDX-License-Identifier: BSD-3-Clause
#include "manager/fabric_metrics.hpp"

#include "manager/picture_findings.hpp"
#include "manager/picture_links.hpp"
#include "text/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::manager {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

/// A label's value: names come from users, and a quote must not end it.
std::string quoted(const std::string& value) {
  std::string out = "\"";
  for (const char c : text::printable(value)) {
    if (c == '"' || c == '\\') {
      out += '\\';
    }
    out += c;
  }
  return out + "\"";
}

/// Text that grows family by family.
class Sheet {
 public:
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    text_ +=
        fmt::format("# HELP weir_fabric_{} {}\n# TYPE weir_fabric_{} {}\n", name, help, name, type);
    name_ = name;
  }

  void add(const Labels& labels, double value) {
    std::string list;
    for (const auto& [name, of] : labels) {
      list += fmt::format("{}{}={}", list.empty() ? "" : ",", name, quoted(of));
    }
    text_ +=
        fmt::format("weir_fabric_{}{} {}\n", name_, list.empty() ? "" : "{" + list + "}", value);
  }

  void add(std::string_view label, const std::map<std::string, std::uint64_t>& counts) {
    for (const auto& [of, count] : counts) {
      add({{label, of}}, static_cast<double>(count));
    }
  }

  const std::string& text() const { return text_; }

 private:
  std::string name_;
  std::string text_;
};

void add_lead(double leads, const Labels& who, Sheet& sheet) {
  sheet.begin("leader", "gauge", "1: this manager leads");
  sheet.add({}, leads);
  sheet.begin("info", "gauge", "whose fabric, by which term");
  sheet.add(who, 1);
}

void add_manager(const v1::FabricPicture& picture, Sheet& sheet) {
  add_lead(picture.awaits_claim() || picture.is_adopting() ? 0 : 1,
           {{"fabric", picture.fabric()}, {"manager", picture.manager()}, {"term", picture.term()}},
           sheet);
  sheet.begin("store_lost", "gauge", "1: the store does not answer");
  sheet.add({}, picture.store_is_lost() ? 1 : 0);
  sheet.begin("in_doubt", "gauge", "1: the manager has led, and does not know whether it does");
  sheet.add({}, picture.is_in_doubt() ? 1 : 0);
  sheet.begin("awaits_claim", "gauge", "1: no orders are given before weirctl fabric claim");
  sheet.add({}, picture.awaits_claim() ? 1 : 0);
  sheet.begin("adopts", "gauge", "1: no orders are given until all switches have told their rings");
  sheet.add({}, picture.is_adopting() ? 1 : 0);
}

void add_counts(const jobs::Loop::Counts& counts, Sheet& sheet) {
  sheet.begin("requests_total", "counter", "requests for rings by answer");
  sheet.add("answer", counts.requests);
  sheet.begin("refusals_total", "counter", "requests that were refused by what was short");
  sheet.add("what", counts.refusals);
  sheet.begin("drift_total", "counter", "what the loop has put right");
  sheet.add("kind", counts.drift);
}

std::string number_of(const v1::Job& job) {
  return job.id() == 0 ? "" : std::to_string(job.id());
}

/// Those that wait have no number, and may be alike.
void add_job_names(const v1::FabricPicture& picture, Sheet& sheet) {
  std::map<std::string, std::uint64_t> by_state{
      {"placing", 0}, {"placed", 0}, {"ending", 0}, {"waiting", 0}};
  std::map<Labels, double> by_name;
  for (const v1::Job& job : picture.jobs()) {
    ++by_state[job.state()];
    ++by_name[{{"job", number_of(job)},
               {"name", job.name()},
               {"tenant", job.tenant()},
               {"state", job.state()}}];
  }
  sheet.begin("jobs", "gauge", "jobs by state");
  sheet.add("state", by_state);
  sheet.begin("job", "gauge", "how many jobs are called so");
  for (const auto& [labels, count] : by_name) {
    sheet.add(labels, count);
  }
}

void add_job_hosts(const v1::FabricPicture& picture, Sheet& sheet) {
  sheet.begin("job_ranks", "gauge", "ranks of a job on a host");
  for (const v1::Job& job : picture.jobs()) {
    std::map<std::string, double> ranks_of;
    for (const std::string& host : job.hosts()) {
      ++ranks_of[host];
    }
    for (const auto& [host, ranks] : ranks_of) {
      sheet.add({{"job", number_of(job)}, {"host", host}}, ranks);
    }
  }
  sheet.begin("job_waits_for", "gauge", "1: the oldest packets of a job wait for this host");
  for (const v1::Job& job : picture.jobs()) {
    for (const std::string& host : job.waits_for()) {
      sheet.add(
          {{"job", number_of(job)}, {"host", host}, {"rank", std::to_string(rank_of(job, host))}},
          1);
    }
  }
}

void add_links(const v1::FabricPicture& picture, Sheet& sheet) {
  const std::vector<std::string> names = names_of_links(picture);
  const auto add_each = [&](auto value_of) {
    for (std::size_t at = 0; at < names.size(); ++at) {
      sheet.add({{"link", names[at]}}, value_of(picture.links(static_cast<int>(at))));
    }
  };
  sheet.begin("link_load", "gauge", "load of a link over its rate");
  add_each([](const v1::PictureLink& link) { return link.load(); });
  sheet.begin("link_down", "gauge", "1: a switch says that the link is down");
  add_each([](const v1::PictureLink& link) { return link.is_down() ? 1 : 0; });
  sheet.begin("link_drained", "gauge", "1: an operator has drained the link");
  add_each([](const v1::PictureLink& link) { return link.drained().empty() ? 0 : 1; });
  sheet.begin("job_link", "gauge", "1: a tree of the job goes over the link");
  for (std::size_t at = 0; at < names.size(); ++at) {
    for (const std::uint64_t job : picture.links(static_cast<int>(at)).jobs()) {
      sheet.add({{"job", std::to_string(job)}, {"link", names[at]}}, 1);
    }
  }
}

void add_switches(const v1::FabricPicture& picture, Sheet& sheet) {
  const auto add_each = [&](auto value_of) {
    for (const v1::PictureSwitch& one : picture.switches()) {
      sheet.add({{"switch", one.name()}}, value_of(one));
    }
  };
  sheet.begin("switch_memory_ratio", "gauge", "frames promised over those that rings may hold");
  add_each(memory_of);
  sheet.begin("switch_suspect", "gauge", "1: the switch is not heard");
  add_each([](const v1::PictureSwitch& one) { return one.state() == "serving" ? 0 : 1; });
  sheet.begin("switch_drained", "gauge", "1: an operator has drained the switch");
  add_each([](const v1::PictureSwitch& one) { return one.drained().empty() ? 0 : 1; });
  sheet.begin("switch_state", "gauge", "1: the switch's state is this one");
  for (const v1::PictureSwitch& one : picture.switches()) {
    sheet.add({{"switch", one.name()}, {"state", one.state()}}, 1);
  }
}

void add_hosts(const v1::FabricPicture& picture, Sheet& sheet) {
  sheet.begin("host_drained", "gauge", "1: an operator has drained the host");
  for (const v1::PictureHost& host : picture.hosts()) {
    sheet.add({{"host", host.name()}, {"switch", host.switch_name()}},
              host.drained().empty() ? 0 : 1);
  }
}

} // namespace

/// All that the page shows is here too: who may read one may read the other (docs/security.md).
std::string metrics_of(const v1::FabricPicture& picture, const jobs::Loop::Counts& counts) {
  Sheet sheet;
  add_manager(picture, sheet);
  add_counts(counts, sheet);
  add_job_names(picture, sheet);
  add_job_hosts(picture, sheet);
  add_links(picture, sheet);
  add_switches(picture, sheet);
  add_hosts(picture, sheet);
  return sheet.text();
}

std::string metrics_of(const std::optional<std::uint64_t>& standbys) {
  Sheet sheet;
  if (standbys) {
    sheet.begin("standbys", "gauge", "managers that wait for the lead");
    sheet.add({}, static_cast<double>(*standbys));
  }
  return sheet.text();
}

std::string metrics_of(const GateLog& log) {
  Sheet sheet;
  sheet.begin("gate_ended_processes_total", "counter",
              "processes between the network and the manager that did not end by themselves");
  sheet.add("process", {{"connection", log.connections()}, {"acceptor", log.acceptors()}});
  return sheet.text();
}

std::string metrics_of(const std::vector<CertificateEnd>& ends) {
  Sheet sheet;
  sheet.begin("certificate_seconds_left", "gauge",
              "until the first certificate in a file of the configuration ends");
  for (const CertificateEnd& end : ends) {
    sheet.add({{"file", end.key}}, static_cast<double>(end.seconds_left));
  }
  return sheet.text();
}

std::string metrics_of(const Standby& standby) {
  Sheet sheet;
  add_lead(0, {{"fabric", standby.fabric}, {"manager", standby.manager}, {"term", ""}}, sheet);
  sheet.begin("stands_by", "gauge", "1: this manager stands by while that one leads");
  sheet.add({{"leader", standby.leader}}, 1);
  return sheet.text();
}

} // namespace weir::manager
