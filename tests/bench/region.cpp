// SPDX-License-Identifier: BSD-3-Clause
#include "op/float_environment.hpp"
#include "pipeline.hpp"
#include "region_lab.hpp"
#include "region_peers.hpp"
#include "ring_ranks.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string_view>
#include <vector>

namespace weir::bench {
namespace {

constexpr std::uint32_t kTensorBytes = 2u << 20; // of each call, approximately
constexpr std::uint32_t kQuickTensorBytes = 1u << 18;

/// A tensor that members of both kinds have, and hosts of both kinds send in messages of so many
/// packets.
struct Tensor {
  std::uint16_t members = 8;
  std::uint16_t mtu = 1024;
  std::uint32_t bytes = 0; // approximately

  /// Of each member's share, a multiple of RegionPeers::kPacketsOfRequest.
  std::uint64_t packets_of_share() const {
    constexpr std::uint32_t unit = RegionPeers::kPacketsOfRequest;
    return std::uint64_t{unit} * std::max(1u, bytes / members / mtu / unit);
  }

  std::uint64_t bytes_of_region() const { return packets_of_share() * members * mtu; }
};

Shape shape_of(const Tensor& tensor, Collective collective) {
  return {.world = tensor.members,
          .payload = tensor.mtu,
          .packets = RegionPeers::kPacketsOfRequest,
          .bytes = tensor.members * tensor.bytes,
          .messages_before = RingRanks::kWindow, // as in a job that runs, all memory was used
          .collective = collective,
          .answers = Answers::one_a_message};
}

struct Costs {
  double ns = 0;     // of the lcore, for a byte of the tensor
  double frames = 0; // that came or left, in a second of the lcore
  double up = 0;     // bytes of the busiest link, for a byte of the tensor
  double down = 0;
};

Costs costs_of(const LcoreWork& work, std::uint64_t bytes) {
  const auto count = static_cast<double>(bytes);
  return {work.seconds * 1e9 / count, static_cast<double>(work.frames) / work.seconds,
          static_cast<double>(work.most_up) / count, static_cast<double>(work.most_down) / count};
}

/// Data of a workload's messages, without the headers before it.
std::uint64_t tensor_bytes_of(const Workload& workload) {
  const Shape& shape = workload.shape();
  const std::uint64_t messages = workload.data().size() / shape.world / shape.packets;
  return messages * (std::uint64_t{shape.payload} * shape.packets - kInaHeaderBytes);
}

LcoreWork work_of_ring(const Workload& workload, FramesFrom from) {
  RegionLab lab(workload, from);
  RingRanks ranks(workload);
  lab.open(ranks);
  ranks.add_data();
  Peers* const all = &ranks;
  return lab.run({&all, 1});
}

/// Two regions over the same tensor, because one pulls beside another's writes.
class Pair {
 public:
  Pair(const Tensor& tensor, const Workload& idle, FramesFrom from)
      : tensor_(tensor), lab_(idle, from) {
    lab_.open(writers_);
    lab_.open(readers_);
  }

  void broadcast() { writers_.write(0, tensor_.packets_of_share() * tensor_.members); }

  void all_gather() {
    for (std::uint16_t member = 0; member < tensor_.members; ++member) {
      writers_.write(member, tensor_.packets_of_share());
    }
  }

  void reduce_scatter() {
    for (std::uint16_t member = 0; member < tensor_.members; ++member) {
      readers_.read(member, tensor_.packets_of_share());
    }
  }

  LcoreWork run() {
    const std::array<Peers*, 2> both{&writers_, &readers_};
    return lab_.run(both);
  }

 private:
  const Tensor tensor_;
  RegionLab lab_;
  RegionPeers writers_{{.id = 1, .members = tensor_.members, .mtu = tensor_.mtu}};
  RegionPeers readers_{{.id = 2, .members = tensor_.members, .mtu = tensor_.mtu}};
};

struct Calls {
  std::string_view name;
  void (*begin)(Pair&);
  std::vector<Collective> by_ring;
};

const std::array kCalls{
    Calls{"broadcast", [](Pair& pair) { pair.broadcast(); }, {Collective::broadcast}},
    Calls{"all-gather", [](Pair& pair) { pair.all_gather(); }, {Collective::broadcast}},
    Calls{"reduce-scatter", [](Pair& pair) { pair.reduce_scatter(); }, {Collective::all_reduce}},
    Calls{"both",
          [](Pair& pair) {
            pair.all_gather();
            pair.reduce_scatter();
          },
          {Collective::broadcast, Collective::all_reduce}},
};

struct Place {
  std::string_view name;
  FramesFrom from;
};

constexpr std::array kPlaces{Place{"cache", FramesFrom::cache},
                             Place{"memory", FramesFrom::memory}};

Case case_of(const Calls& calls, const Tensor& tensor, const Place& frames) {
  return Case()
      .with("about", calls.name)
      .with("frames", frames.name)
      .with("members", tensor.members)
      .with("payload", tensor.mtu);
}

/// A tensor, and the ring's calls of it that regions are compared with.
class RingCalls {
 public:
  explicit RingCalls(const Tensor& size)
      : tensor(size), sums_(shape_of(size, Collective::all_reduce)),
        broadcasts_(shape_of(size, Collective::broadcast)) {}

  const Workload& by_ring(Collective collective) const {
    return collective == Collective::broadcast ? broadcasts_ : sums_;
  }

  const Tensor tensor;

 private:
  Workload sums_;
  Workload broadcasts_;
};

void measure(const Calls& calls, const RingCalls& rings, const Place& frames, unsigned round) {
  const Tensor& tensor = rings.tensor;
  const Workload& sums = rings.by_ring(Collective::all_reduce);
  LcoreWork of_rings;
  for (const Collective collective : calls.by_ring) {
    of_rings += work_of_ring(rings.by_ring(collective), frames.from);
  }
  Pair pair(tensor, sums, frames.from);
  calls.begin(pair);
  pair.run(); // as the rings' messages before
  calls.begin(pair);
  const Costs region = costs_of(pair.run(), tensor.bytes_of_region());
  const Costs ring = costs_of(of_rings, tensor_bytes_of(sums));
  report("region", case_of(calls, tensor, frames), round,
         {{"region", region.ns * 1024, "ns/KiB", "ring"},
          {"ring", ring.ns * 1024, "ns/KiB"},
          {"up", region.up, "bytes a byte", "ring up"},
          {"ring up", ring.up, "bytes a byte"},
          {"down", region.down, "bytes a byte", "ring down"},
          {"ring down", ring.down, "bytes a byte"},
          {"frames", region.frames / 1e6, "Mpps", "ring frames"},
          {"ring frames", ring.frames / 1e6, "Mpps"}});
}

std::vector<Tensor> tensors(Effort effort) {
  if (effort == Effort::quick) {
    return {{.members = 4, .bytes = kQuickTensorBytes}};
  }
  std::vector<Tensor> tensors;
  for (const std::uint16_t mtu : {1024, 4096}) {
    for (const std::uint16_t members : {2, 4, 8, 16}) {
      tensors.push_back({members, mtu, kTensorBytes});
    }
  }
  return tensors;
}

/// Calls `act` with each wanted combination.
template <typename Act>
void for_each_case(const Tensor& tensor, const Options& options, Act&& act) {
  for (const Place& frames : kPlaces) {
    for (const Calls& calls : kCalls) {
      const bool can = kCanEvict || frames.from != FramesFrom::memory;
      if (can && case_of(calls, tensor, frames).is_wanted(options)) {
        act(calls, frames);
      }
    }
  }
}

bool is_wanted(const Tensor& tensor, const Options& options) {
  bool is_one = false;
  for_each_case(tensor, options, [&](const Calls&, const Place&) { is_one = true; });
  return is_one;
}

std::vector<std::unique_ptr<RingCalls>> wanted_ring_calls(const Options& options) {
  std::vector<std::unique_ptr<RingCalls>> wanted;
  for (const Tensor& tensor : tensors(options.effort)) {
    if (is_wanted(tensor, options)) {
      wanted.push_back(std::make_unique<RingCalls>(tensor));
    }
  }
  return wanted;
}

constexpr RegionShape kNeighbour{.members = 4, .window = region::kMostWindow, .first_port = 4};
constexpr std::uint32_t kQueueRoom = 8192; // frames

/// So many rings with as much data each.
Shape shape_of_rings(std::uint16_t rings, Effort effort) {
  return {.world = 4,
          .rings = rings,
          .bytes = rings * (effort == Effort::quick ? 1u << 20 : 8u << 20),
          .messages_before = RingRanks::kWindow,
          .spare_ports = kNeighbour.members};
}

/// What a region does beside a ring.
enum class Region : std::uint8_t {
  none,   // there is none
  silent, // its members have said hello
  floods, // a member has always a window under way
};

/// The second half of the rings' data, until they are done. `queue_room` is as a lab's.
double ms_of_rings(const Workload& workload, std::uint32_t queue_room, Region neighbour) {
  constexpr std::uint64_t endless = RegionPeers::kPacketsOfRequest * (std::uint64_t{1} << 32);
  RegionLab lab(workload, FramesFrom::cache, queue_room);
  RegionPeers members(kNeighbour);
  RingRanks ranks(workload);
  lab.open(ranks);
  if (neighbour != Region::none) {
    lab.open(members);
  }
  if (neighbour == Region::floods) {
    members.write(0, endless);
  }
  ranks.add_data();
  const std::array<Peers*, 2> all{&ranks, &members};
  const std::size_t half = ranks.turns_left() / 2;
  lab.run(all, [&] { return ranks.turns_left() <= half; });
  return lab.run(all, [&] { return ranks.is_done(); }).seconds * 1e3;
}

/// How frames are served of which more come than the lcore can do.
struct Service {
  std::string_view name;
  std::uint32_t queue_room;
};

constexpr std::array kServices{Service{"turns", kQueueRoom}, Service{"arrival", 0}};

/// A ring whose ranks always have a window under way, beside a region or another such ring.
class Victim {
 public:
  explicit Victim(Effort effort)
      : alone_(shape_of_rings(1, effort)), beside_ring_(shape_of_rings(2, effort)) {}

  void measure(const Options& options, unsigned round) const {
    for (const auto& [name, room] : kServices) {
      const auto parameters = Case().with("about", "flood").with("served by", name);
      if (parameters.is_wanted(options)) {
        report("region", parameters, round,
               {{"flooding", ms_of_rings(alone_, room, Region::floods), "ms", "alone"},
                {"ring", ms_of_rings(beside_ring_, room, Region::none), "ms", "alone"},
                {"silent", ms_of_rings(alone_, room, Region::silent), "ms", "alone"},
                {"alone", ms_of_rings(alone_, room, Region::none), "ms"}});
      }
    }
  }

 private:
  Workload alone_;
  Workload beside_ring_;
};

} // namespace

void measure_region(const Options& options) {
  const op::DefaultFloatEnvironment environment;
  if (!kCanEvict) {
    std::fputs("region: frames from memory are left out: nothing is known to evict them by\n",
               stderr);
  }
  const auto all = wanted_ring_calls(options);
  const Victim victim(options.effort);
  for (unsigned round = 0; round < options.rounds; ++round) {
    tell_progress("region", round, options);
    for (const auto& rings : all) {
      for_each_case(rings->tensor, options, [&](const Calls& calls, const Place& frames) {
        measure(calls, *rings, frames, round);
      });
    }
    victim.measure(options, round);
  }
}

} // namespace weir::bench
