// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/found_job.hpp"

#include "jobs/records.hpp"
#include "jobs/ring_messages.hpp"
#include "wire/address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace weir::jobs {
namespace {

/// The parts of a ring that no tree has taken yet.
class LooseParts {
 public:
  LooseParts(const Site& site, const v1::RingRecord& ring) : site_(site), ring_(ring) {
    for (const v1::PartRecord& part : ring.parts()) {
      const SwitchIndex at = *site.switch_named(part.switch_name());
      parts_.emplace(at, read_part(site, at, part.ring()));
    }
  }

  /// From its root on, depth first. Throws UnknownPart.
  placement::Tree tree() {
    const auto root = std::ranges::find(parts_, plan::kNone,
                                        [](const auto& entry) { return entry.second.parent; });
    if (root == parts_.end()) {
      throw UnknownPart(fmt::format("no switch has the root of ring {}", ring_.id()));
    }
    placement::Tree tree;
    take(root->first, plan::kNone, tree);
    const auto ranks = static_cast<std::uint32_t>(ring_.parts(0).ring().members_size());
    if (!parts_.empty() || tree.switches.front().count != ranks) {
      throw UnknownPart(
          fmt::format("the parts of ring {} are no tree of its {} ranks", ring_.id(), ranks));
    }
    return tree;
  }

 private:
  /// A part is taken once, so a circle has an end.
  void take(SwitchIndex at, SwitchIndex parent, placement::Tree& tree) {
    const auto part = parts_.extract(at);
    if (part.empty() || part.mapped().parent != parent) {
      throw UnknownPart(fmt::format("{} has no part of ring {}", site_.name_of(at), ring_.id()));
    }
    tree.switches.push_back(part.mapped());
    for (const placement::TreeChild& child : part.mapped().children) {
      if (!child.is_rank()) {
        take(child.below, at, tree);
      }
    }
  }

  const Site& site_;
  const v1::RingRecord& ring_;
  std::map<SwitchIndex, placement::TreeSwitch> parts_;
};

} // namespace

FoundJob::FoundJob(const Site& site, v1::FabricLabel label)
    : site_(&site), label_(std::move(label)) {}

void FoundJob::add(SwitchIndex at, const std::string& boot, const v1::Ring& ring) {
  v1::RingRecord& record = rings_[ring.id()];
  record.set_id(ring.id());
  v1::PartRecord& part = *record.add_parts();
  part.set_switch_name(site_->name_of(at));
  part.set_boot(boot);
  *part.mutable_ring() = ring;
}

v1::JobRecord FoundJob::record() const {
  v1::JobRecord record = as_labelled();
  try {
    write_ranks(record);
    for (v1::RingRecord& ring : *record.mutable_rings()) {
      arrange(ring);
    }
    // A manager that did not label so much has told no number.
    if (label_.rings() != 0 && label_.rings() != rings_.size()) {
      throw UnknownPart(
          fmt::format("switches have {} of its {} rings", rings_.size(), label_.rings()));
    }
    if (record.rate() == 0) {
      record.set_rate(usual_rate(record));
    }
    record.set_fold_shape(fold_shape_of(record));
  } catch (const UnknownPart& missing) {
    record.set_state(v1::JobRecord::ENDING);
    record.set_why(missing.what());
  }
  return record;
}

/// With the rings' parts as they were found.
v1::JobRecord FoundJob::as_labelled() const {
  v1::JobRecord record;
  record.set_schema(kSchema);
  record.set_id(label_.job());
  record.set_state(v1::JobRecord::PLACED);
  record.set_owner(label_.owner());
  record.set_allocation(label_.allocation());
  if (!label_.allocation().empty()) {
    record.mutable_token()->set_sha256(label_.token_sha256());
    record.mutable_token()->set_host(label_.token_host());
  }
  record.set_rate(label_.rate());
  *record.mutable_positions() = label_.positions();
  for (const auto& [id, ring] : rings_) {
    *record.add_rings() = ring;
  }
  const v1::Ring& any = rings_.begin()->second.parts(0).ring();
  v1::HoldJobRequest& request = *record.mutable_request();
  request.set_request_id(label_.request_id());
  request.set_name(label_.name());
  request.set_tenant(label_.tenant());
  request.set_reserve(label_.reserve());
  request.set_rings_wanted(static_cast<std::uint32_t>(rings_.size()));
  request.set_rings_least(static_cast<std::uint32_t>(rings_.size()));
  request.set_window(any.window());
  request.set_message_bytes(any.max_message_bytes());
  request.set_mtu(any.mtu());
  return record;
}

/// Addresses and hosts, by rank.
void FoundJob::write_ranks(v1::JobRecord& record) const {
  const v1::Ring& ring = record.rings(0).parts(0).ring();
  for (const std::uint32_t position : label_.positions()) {
    if (position >= static_cast<std::uint32_t>(ring.members_size())) {
      throw UnknownPart(fmt::format("ring {} has no member {}", ring.id(), position));
    }
    const std::string& address = ring.members(static_cast<int>(position)).ip();
    const auto parsed = wire::parse_ip(address);
    const auto endpoint = parsed ? site_->endpoints.find(*parsed) : site_->endpoints.end();
    if (endpoint == site_->endpoints.end()) {
      throw UnknownPart(fmt::format("no host of the topology has {}", address));
    }
    record.mutable_request()->add_members()->add_addresses(address);
    record.add_hosts(site_->topology().name(endpoint->second.host));
  }
}

/// Bits a second of one tree of a job that reserves none: all together what its slowest host has.
double FoundJob::usual_rate(const v1::JobRecord& record) const {
  double slowest = std::numeric_limits<double>::infinity();
  for (const v1::JobMember& member : record.request().members()) {
    const Endpoint& endpoint = site_->endpoints.at(*wire::parse_ip(member.addresses(0)));
    slowest = std::min(slowest, site_->index().rate(plan::cable_of(endpoint.seat.down)));
  }
  return slowest / record.rings_size();
}

/// The parts depth first, each with its cable to its parent.
void FoundJob::arrange(v1::RingRecord& record) const {
  const placement::Tree tree = LooseParts(*site_, record).tree();
  record.set_shape(placement::shape_of(tree));
  v1::RingRecord arranged = record;
  arranged.clear_parts();
  for (const placement::TreeSwitch& one : tree.switches) {
    const auto part =
        std::ranges::find(record.parts(), site_->name_of(one.at), &v1::PartRecord::switch_name);
    v1::PartRecord& made = *arranged.add_parts();
    made = *part;
    if (one.up != plan::kNone) {
      made.set_up(plan::cable_of(one.up));
    }
  }
  record = std::move(arranged);
}

} // namespace weir::jobs
