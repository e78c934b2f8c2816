// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The fabric for schedulers of jobs: hosts that are near each other should get a job together.

#include <stdexcept>
#include <string>
#include <vector>
#include <weir/v1/fabric.pb.h>

namespace weir::manager {

/// A name that the scheduler cannot read, or has no key for. what() names it, and what is allowed.
class NotForSchedulers : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Keys of node labels, from the leaf outwards.
inline const std::vector<std::string> kTopographKeys{"network.topology.nvidia.com/leaf",
                                                     "network.topology.nvidia.com/spine",
                                                     "network.topology.nvidia.com/core"};

// Switches that reach the same leaves are one, by the first one's name: schedulers want a tree. A
// host with several cables is at the leaf of its first address. Each throws NotForSchedulers.

/// Slurm's topology.conf for its plugin topology/tree.
std::string slurm_of(const v1::FabricPicture& picture);

/// A command `kubectl label` for each host.
std::string kubernetes_of(const v1::FabricPicture& picture, const std::vector<std::string>& keys);

} // namespace weir::manager
