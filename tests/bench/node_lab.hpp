// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/api/group.hpp"

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace weir::bench {

/// Ranks that share one NIC: threads of this process, whose all-reduces are in shared memory.
class NodeLab {
 public:
  /// Each with tensors of at most so many f32.
  NodeLab(std::uint16_t ranks, std::size_t most_elements);

  std::uint16_t ranks() const { return static_cast<std::uint16_t>(places_.size()); }

  struct Times {
    double ns = 0;     // of a call: the slowest rank's mean
    double cpu_ns = 0; // of a call and rank, of all threads: others on the machine change it less
  };

  /// Of an all-reduce of so many elements.
  Times all_reduce(std::size_t elements, std::size_t calls);

  /// Of plain copying of as many bytes, which each rank does from its input to its result at the
  /// same time.
  Times copy(std::size_t elements, std::size_t calls);

 private:
  struct Place {
    std::vector<float> in;
    std::vector<float> out;
    std::unique_ptr<host::Group> group;
  };

  Times measure(std::size_t calls, const std::function<void(Place&)>& call);

  std::vector<Place> places_; // by rank
};

} // namespace weir::bench
