// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The names of a switch's ports, where a topology does not say them.

#include "plan/topology.hpp"

#include <set>
#include <span>
#include <string>
#include <vector>

namespace weir::plan {

/// With a '-' for every character but letters, digits, '_', '.' and '-'.
std::string plain(std::string name);

/// The ports of a switch: all its cables, with names. One without a name has its peer's; of
/// parallel cables the further ones are numbered from 2 on.
class Ports {
 public:
  /// Throws PlanError for a name that a port cannot have, or that two have.
  Ports(const Topology& topology, VertexId at);

  std::span<const LinkId> links() const { return links_; }

  const std::string& name(LinkId link) const;

 private:
  void take_given(std::size_t port);
  void name_after_peer(std::size_t port);

  const Topology& topology_;
  const VertexId at_;
  std::vector<LinkId> links_;
  std::vector<std::string> names_;
  std::set<std::string> taken_{"all", "json"}; // words of the prompt
};

} // namespace weir::plan
