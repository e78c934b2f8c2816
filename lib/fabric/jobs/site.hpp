// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What the manager's files say of a fabric: switches, hosts, links, who may have how much.

#include "placement/index.hpp"
#include "placement/place.hpp"
#include "plan/topology.hpp"
#include "wire/address.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::jobs {

using placement::SwitchIndex;

/// An address at a switch's port.
struct Endpoint {
  plan::VertexId host = plan::kNone;
  placement::Seat seat;
};

struct Tenant {
  std::string name;               // the common name of its certificates
  std::vector<std::string> hosts; // empty: any
  std::uint32_t jobs = UINT32_MAX;
  std::uint32_t rings = UINT32_MAX;
};

class Site {
 public:
  explicit Site(plan::Topology topology)
      : topology_(std::make_unique<plan::Topology>(std::move(topology))),
        index_(std::make_unique<placement::Index>(*topology_)) {}

  const plan::Topology& topology() const { return *topology_; }

  const placement::Index& index() const { return *index_; }

  const std::string& name_of(SwitchIndex at) const {
    return topology_->name(index_->vertex_of(at));
  }

  /// None: no such switch.
  std::optional<SwitchIndex> switch_named(const std::string& name) const {
    const plan::VertexId vertex = topology_->find(name);
    return vertex == plan::kNone || topology_->is_node(vertex)
               ? std::nullopt
               : std::optional(index_->switch_at(vertex));
  }

  std::string fabric;
  std::uint32_t trees = 4;
  std::map<wire::IpAddress, Endpoint> endpoints;
  std::vector<std::string> ports;   // names, by link: that by which it leaves
  std::vector<std::string> control; // addresses of the switches' control services, by switch
  std::vector<Tenant> tenants;

 private:
  std::unique_ptr<plan::Topology> topology_; // stays where it is: the index refers to it
  std::unique_ptr<placement::Index> index_;
};

} // namespace weir::jobs
