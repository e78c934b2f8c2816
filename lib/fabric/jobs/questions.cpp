// SPDX-License-Identifier: BSD-3-Clause

/// What operators and owners ask and order of the loop.

#include "jobs/hexadecimal.hpp"
#include "jobs/loop.hpp"
#include "jobs/records.hpp"
#include "jobs/ring_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace weir::jobs {
namespace {

constexpr std::array<std::string_view, 3> kKinds{"switch", "host", "link"};

std::string key_of(const std::string& kind, const std::string& name) {
  return fmt::format("mark/{}/{}", kind, name);
}

std::string state_of(v1::JobRecord::State state) {
  switch (state) {
  case v1::JobRecord::PLACING:
    return "placing";
  case v1::JobRecord::PLACED:
    return "placed";
  case v1::JobRecord::ENDING:
    return "ending";
  default:
    return "unknown";
  }
}

bool goes_over(const v1::JobRecord& record, std::uint32_t cable) {
  return std::ranges::any_of(record.rings(), [&](const v1::RingRecord& ring) {
    return std::ranges::any_of(ring.parts(), [&](const v1::PartRecord& part) {
      return part.has_up() && part.up() == cable;
    });
  });
}

/// Who has drained what, and where a switch is reached, is for operators.
void leave_out_reasons(v1::FabricPicture& picture) {
  const auto shorten = [](auto& drawn) {
    if (!drawn.drained().empty()) {
      drawn.set_drained("drained");
    }
  };
  for (v1::PictureSwitch& one : *picture.mutable_switches()) {
    shorten(one);
    one.clear_why();
  }
  std::ranges::for_each(*picture.mutable_hosts(), shorten);
  std::ranges::for_each(*picture.mutable_links(), shorten);
}

} // namespace

std::string Loop::doubt() const {
  return is_in_doubt_ ? "the manager does not know whether it leads: this is from its memory"
         : is_lost_   ? "the manager's store does not answer: this is from its memory"
                      : why_waiting();
}

/// For a person, or for switches. Empty: it does not.
std::string Loop::why_waiting() const {
  return awaits_claim_.empty() ? why_adopting() : awaits_claim_;
}

bool Loop::is_idle() const {
  return is_lost_ || !awaits_claim_.empty() || is_adopting();
}

/// For those whom it can do nothing.
std::string Loop::why_idle() const {
  const std::string waits = is_lost_ ? "" : why_waiting();
  return waits.empty() ? "the manager's store does not answer" : waits;
}

/// Else another manager is to be asked: its memory may be old.
void Loop::require_lead() const {
  if (is_idle() || is_over_) {
    throw Refused(Code::unavailable, why_idle());
  }
}

void Loop::require_operator(const Caller& caller) const {
  if (!caller.is_operator) {
    throw Refused(
        Code::not_allowed,
        fmt::format("certificate: found '{}'; allowed: a name under operators", caller.name));
  }
}

/// An allocation's job is of whoever has its token, whatever his name is. Root has none.
bool Loop::is_owner(const Caller& caller, const v1::JobRecord& record) {
  const bool has_name = caller.is_operator || !caller.name.empty();
  return record.request().allocation() == caller.allocation &&
         (caller.allocation != 0 || (record.owner() == caller.name && has_name));
}

void Loop::end_job(const Caller& caller, std::uint64_t job, const std::string& why, Time now) {
  const auto found = records_.find(job);
  const bool is_his =
      found != records_.end() && (caller.is_operator || is_owner(caller, found->second));
  if (!is_his) { // as if it were not there
    throw Refused(Code::not_found, fmt::format("job: found {}; allowed: a job of the list", job));
  }
  begin_end(job,
            why.empty()
                ? fmt::format("{} ended it", caller.name.empty() ? "its owner" : caller.name)
                : why,
            now);
  require_lead(); // which is to be told
  step(now);
}

std::vector<std::uint64_t> Loop::drain(const Caller& caller, const v1::DrainRequest& request,
                                       Time now) {
  require_operator(caller);
  if (std::ranges::find(kKinds, request.kind()) == kKinds.end()) {
    throw Refused(Code::invalid, fmt::format("kind: found '{}'; allowed: {}", request.kind(),
                                             fmt::join(kKinds, ", ")));
  }
  const plan::VertexId vertex = site_.topology().find(request.name());
  const bool is_known =
      request.kind() == "link" ||
      (vertex != plan::kNone && site_.topology().is_node(vertex) == (request.kind() == "host"));
  if (!is_known) {
    throw Refused(Code::not_found, fmt::format("found the {} '{}'; allowed: one of the topology",
                                               request.kind(), request.name()));
  }
  v1::MarkRecord mark;
  mark.set_schema(kSchema);
  mark.set_who(caller.name.empty() ? "root" : caller.name);
  mark.set_why(request.why());
  if (!save({{key_of(request.kind(), request.name()), mark.SerializeAsString()}})) {
    throw Refused(Code::unavailable, why_idle());
  }
  marks_[fmt::format("{}/{}", request.kind(), request.name())] = mark;
  std::vector<std::uint64_t> on_it;
  for (const auto& [id, record] : records_) {
    const auto parts = switches_of(record);
    const auto at = site_.switch_named(request.name());
    const bool is_on =
        request.kind() == "switch" ? at && std::ranges::find(parts, *at) != parts.end()
        : request.kind() == "host"
            ? std::ranges::find(record.hosts(), request.name()) != record.hosts().end()
            : false;
    if (is_on && record.state() != v1::JobRecord::ENDING) {
      on_it.push_back(id);
    }
  }
  if (request.now()) {
    for (const std::uint64_t id : on_it) {
      begin_end(id,
                fmt::format("{} {} was drained by {}: {}", request.kind(), request.name(),
                            mark.who(), mark.why()),
                now);
    }
  }
  step(now);
  return on_it;
}

void Loop::undrain(const Caller& caller, const v1::UndrainRequest& request, Time now) {
  require_operator(caller);
  const std::string name = fmt::format("{}/{}", request.kind(), request.name());
  if (!marks_.contains(name)) {
    throw Refused(Code::not_found, fmt::format("found the {} '{}'; allowed: one that is drained",
                                               request.kind(), request.name()));
  }
  if (!save({{key_of(request.kind(), request.name()), std::nullopt}})) {
    throw Refused(Code::unavailable, why_idle());
  }
  marks_.erase(name);
  step(now);
}

v1::PlanJobResponse Loop::plan(const Caller& caller, const v1::PlanJobRequest& asked) {
  v1::HoldJobRequest request = as_of(caller, asked.request());
  if (!asked.hosts().empty()) {
    for (const std::string& name : hosts_in(asked.hosts())) {
      const auto endpoint = std::ranges::find_if(site_.endpoints, [&](const auto& entry) {
        return site_.topology().name(entry.second.host) == name;
      });
      if (endpoint == site_.endpoints.end()) {
        throw Refused(Code::invalid,
                      fmt::format("hosts: found '{}'; allowed: hosts of the topology", name));
      }
      request.add_members()->add_addresses(wire::to_string(endpoint->first));
    }
  }
  request.set_request_id(std::string(16, '\0'));
  request.set_window(request.window() == 0 ? 8 : request.window());
  request.set_message_bytes(request.message_bytes() == 0 ? 65536 : request.message_bytes());
  request.set_mtu(request.mtu() == 0 ? 1024 : request.mtu());
  request.set_rings_wanted(std::max(1U, request.rings_wanted()));
  request.set_rings_least(std::max(1U, request.rings_least()));
  placement::Usage used = usage();
  for (const std::string& name : asked.without()) {
    const auto at = site_.switch_named(name);
    if (!at) {
      throw Refused(Code::invalid,
                    fmt::format("without: found '{}'; allowed: a switch of the topology", name));
    }
    used.out[*at] = 1;
  }
  const v1::JobRecord record = decide(caller, request, used);
  v1::PlanJobResponse response;
  response.set_doubt(doubt());
  *response.mutable_hosts() = record.hosts();
  for (const v1::RingRecord& ring : record.rings()) {
    v1::PlannedTree& tree = *response.add_trees();
    tree.set_shape(ring.shape());
    for (const v1::PartRecord& part : ring.parts()) {
      tree.add_switches(part.switch_name());
    }
  }
  return response;
}

v1::Job Loop::job_of(const v1::JobRecord& record) const {
  v1::Job job;
  job.set_id(record.id());
  job.set_name(record.request().name());
  job.set_tenant(record.request().tenant());
  job.set_owner(record.owner());
  job.set_state(state_of(record.state()));
  *job.mutable_hosts() = record.hosts();
  job.set_why(record.why());
  std::set<std::string> switches;
  std::set<std::string> late;
  for (const v1::RingRecord& ring : record.rings()) {
    job.add_rings(ring.id());
    job.add_shapes(ring.shape());
    for (const v1::PartRecord& part : ring.parts()) {
      switches.insert(part.switch_name());
      const auto at = site_.switch_named(part.switch_name());
      if (!at) {
        continue;
      }
      for (const v1::SeenRing& seen : switches_[*at].seen.rings()) {
        for (const std::uint32_t position :
             seen.id() == ring.id() ? seen.waits_for() : decltype(seen.waits_for()){}) {
          const auto rank = std::ranges::find(record.positions(), position);
          if (rank != record.positions().end()) {
            late.insert(record.hosts(static_cast<int>(rank - record.positions().begin())));
          }
        }
      }
    }
  }
  job.mutable_switches()->Add(switches.begin(), switches.end());
  job.mutable_waits_for()->Add(late.begin(), late.end());
  return job;
}

std::vector<v1::Job> Loop::jobs(const Caller& caller) const {
  std::vector<v1::Job> jobs;
  for (const auto& [id, record] : records_) {
    if (caller.is_operator || is_owner(caller, record)) {
      jobs.push_back(job_of(record));
    }
  }
  for (const Waiter& waiter : waiters_) {
    const bool is_his =
        waiter.caller.name == caller.name && waiter.caller.allocation == caller.allocation;
    if (caller.is_operator || is_his) {
      v1::Job& job = jobs.emplace_back();
      job.set_name(waiter.request.name());
      job.set_tenant(waiter.request.tenant());
      job.set_owner(waiter.caller.name);
      job.set_state("waiting");
    }
  }
  return jobs;
}

void Loop::draw_switches(const placement::Usage& used, v1::FabricPicture& picture) const {
  for (SwitchIndex at = 0; at < switches_.size(); ++at) {
    v1::PictureSwitch& drawn = *picture.add_switches();
    const SwitchState& state = switches_[at];
    drawn.set_name(site_.name_of(at));
    drawn.set_state(state.is_suspect                ? "suspect"
                    : state.reach == Reach::serving ? "serving"
                    : state.reach == Reach::refused ? "refused"
                                                    : "unreached");
    drawn.set_why(state.why);
    drawn.set_drained(mark("switch", site_.name_of(at)).value_or(""));
    drawn.set_most_rings(state.seen.room().rings());
    drawn.set_rings(state.seen.room().rings() - used.room[at].rings);
    drawn.set_most_frames(state.seen.room().frames());
    drawn.set_frames(state.seen.room().frames() - used.room[at].frames);
    std::uint8_t level = placement::Index::kFar;
    for (const auto& [address, endpoint] : site_.endpoints) {
      level = std::min(level, site_.index().distances(at)[endpoint.seat.at]);
    }
    drawn.set_level(level);
  }
}

void Loop::draw_hosts(v1::FabricPicture& picture) const {
  std::set<plan::VertexId> drawn;
  for (const auto& [address, endpoint] : site_.endpoints) {
    if (drawn.insert(endpoint.host).second) {
      v1::PictureHost& host = *picture.add_hosts();
      host.set_name(site_.topology().name(endpoint.host));
      host.set_switch_name(site_.name_of(endpoint.seat.at));
      host.set_drained(mark("host", host.name()).value_or(""));
    }
  }
}

/// Cables between switches. Which jobs go over them is for operators.
void Loop::draw_links(const Caller& caller, const placement::Usage& used,
                      v1::FabricPicture& picture) const {
  const plan::Topology& topology = site_.topology();
  for (plan::LinkId link = 0; link < topology.links().size(); link += 2) {
    const plan::Link& ends = topology.link(link);
    if (topology.is_node(ends.from) || topology.is_node(ends.to)) {
      continue;
    }
    const std::uint32_t cable = plan::cable_of(link);
    v1::PictureLink& drawn = *picture.add_links();
    drawn.set_one(topology.name(ends.from));
    drawn.set_one_port(site_.ports[link]);
    drawn.set_other(topology.name(ends.to));
    drawn.set_other_port(site_.ports[plan::Topology::reverse_of(link)]);
    drawn.set_load(used.load[cable] / site_.index().rate(cable));
    drawn.set_is_down(cut_of(link).has_value());
    drawn.set_drained(link_mark(link).value_or(""));
    for (const auto& [id, record] : records_) {
      if (caller.is_operator && goes_over(record, cable)) {
        drawn.add_jobs(id);
      }
    }
  }
}

v1::FabricPicture Loop::picture(const Caller& caller) const {
  v1::FabricPicture picture;
  picture.set_fabric(site_.fabric);
  picture.set_manager(identity_.manager);
  picture.set_term(fmt::format("{}.{}", identity_.term.epoch, identity_.term.number));
  picture.set_store_is_lost(is_lost_);
  picture.set_doubt(doubt());
  picture.set_is_in_doubt(is_in_doubt_);
  picture.set_awaits_claim(!awaits_claim_.empty());
  picture.set_is_adopting(is_adopting() && awaits_claim_.empty());
  const placement::Usage used = usage();
  draw_switches(used, picture);
  draw_hosts(picture);
  draw_links(caller, used, picture);
  if (!caller.is_operator) {
    leave_out_reasons(picture);
  }
  for (v1::Job& job : jobs(caller)) {
    *picture.add_jobs() = std::move(job);
  }
  return picture;
}

std::string Loop::explain(const Caller& caller, const std::string& name) const {
  std::uint64_t id = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
  const bool is_number = error == std::errc{} && end == name.data() + name.size();
  const auto record = is_number ? records_.find(id) : records_.end();
  if (record != records_.end() && (caller.is_operator || is_owner(caller, record->second))) {
    const v1::Job job = job_of(record->second);
    std::string text = fmt::format("job {} ({}) is {}: {}\n", id, job.name(), job.state(),
                                   explain_trees(record->second));
    if (!record->second.allocation().empty()) {
      text += fmt::format("it is of allocation {}\n", record->second.allocation());
    }
    if (!job.why().empty()) {
      text += job.why() + "\n";
    }
    if (job.waits_for_size() != 0) {
      text += fmt::format("it waits for {}\n", fmt::join(job.waits_for(), ", "));
    }
    for (const std::string& trouble : care_.at(id).troubles) {
      text += trouble + "\n";
    }
    return text;
  }
  require_operator(caller);
  std::string text;
  for (const Decision& decision : decisions_) {
    if (decision.request.starts_with(name) || decision.name == name) {
      text += fmt::format("{} ({}): {}\n", decision.request.substr(0, 8), decision.name,
                          decision.words);
    }
  }
  if (const auto at = site_.switch_named(name)) {
    std::string why;
    is_out(*at, &why);
    text += why.empty() ? fmt::format("{} serves\n", name) : why + "\n";
    for (const std::string& holder : holders_at(*at)) {
      text += holder + "\n";
    }
  }
  for (plan::LinkId link = 0; link < site_.topology().links().size(); ++link) {
    const plan::Link& ends = site_.topology().link(link);
    if (fmt::format("{}-{}", site_.topology().name(ends.from), site_.topology().name(ends.to)) !=
        name) {
      continue;
    }
    std::string why;
    const double rate = site_.index().rate(plan::cable_of(link));
    text += is_shut(link, &why) ? why + "\n"
                                : fmt::format("{} carries {:.0f} % of its rate\n", name,
                                              100 * usage().load[plan::cable_of(link)] / rate);
  }
  if (text.empty()) {
    throw Refused(Code::not_found,
                  fmt::format("found '{}'; allowed: a job, a request, a switch, or a link as "
                              "leaf0-spine0",
                              name));
  }
  return text;
}

} // namespace weir::jobs
