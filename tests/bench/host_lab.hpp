// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/api/group.hpp"
#include "stage_clock.hpp"
#include "unit/host_fabric.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace weir::bench {

/// In whose code a rank's thread is.
enum class Stage : std::uint8_t {
  outside, // the loop that calls
  start,   // the library: weir_start_...
  wait,    // the library: weir_wait
  results, // the library: what the transport reports
  post,    // the transport: a message
  poll,    // the transport: frames, acknowledgements, completions
  network, // frames on their way, and the switch
  sleep,   // until a frame comes
};
constexpr std::size_t kStages = 8;

using Stages = StageClock<Stage, kStages>;

/// All-reduces of equal length, of f32.
struct Calls {
  std::size_t bytes = 0;
  std::size_t queued = 1; // that a rank starts before it waits for all of them
  std::size_t batches = 1;
};

/// Two ranks with the software transport, each a thread of this process. The switch works in the
/// thread that sends a frame. A clock for each rank says in whose code its thread is.
class HostLab {
 public:
  static constexpr std::uint16_t kRanks = 2;

  /// What both ranks did, for each call of one rank.
  struct Spent {
    std::array<double, kStages> ns{};
    double cpu_ns = 0;         // of computing, the switch's share included
    double own_threads_ns = 0; // of computing, of the groups' own threads

    double in(Stage stage) const { return ns[static_cast<std::size_t>(stage)]; }

    double in_library() const { return in(Stage::start) + in(Stage::wait) + in(Stage::results); }

    double in_transport() const { return in(Stage::post) + in(Stage::poll); }
  };

  /// `most_bytes` of a call.
  HostLab(std::uint32_t rings, std::size_t most_bytes);
  ~HostLab();
  HostLab(const HostLab&) = delete;
  HostLab& operator=(const HostLab&) = delete;

  Spent measure(const Calls& calls);

 private:
  std::unique_ptr<host::Group> form_group(std::uint16_t rank, const std::string& address);
  void make(std::uint16_t rank, const Calls& calls);

  const std::vector<std::uint32_t> rings_;
  std::array<std::vector<float>, kRanks> data_;
  test::HostFabric fabric_;
  std::array<std::unique_ptr<host::Group>, kRanks> groups_;
};

} // namespace weir::bench
