// SPDX-License-Identifier: BSD-3-Clause

/// Messages say whose memory their data and results are in. A device looks up callers' memory
/// alone: the library's own may have come to addresses that a caller has freed and not released.

#include "host/api/transport_options.hpp"
#include "host/collective/sparse_input.hpp"
#include "host/collective/sparse_outcome.hpp"
#include "host_job.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace weir::host::memory_owner_test {
namespace {

/// The one memory of a caller, in which all its tensors lie.
struct Arena {
  bool has(std::span<const std::uint8_t> bytes) const {
    return !bytes.empty() && bytes.data() >= memory.data() &&
           bytes.data() + bytes.size() <= memory.data() + memory.size();
  }

  std::uint32_t* at(std::size_t element) {
    return reinterpret_cast<std::uint32_t*>(memory.data()) + element;
  }

  Bytes memory = Bytes(1 << 18);
};

/// What a test has seen of one kind of call.
struct Seen {
  std::set<Owner> of_data;
  std::set<Owner> of_results;
};

/// A transport that checks every message against the arena.
class CheckedTransport : public Transport {
 public:
  CheckedTransport(std::unique_ptr<Transport> transport, const Arena& arena, Seen& seen)
      : transport_(std::move(transport)), arena_(arena), seen_(seen) {}

  bool post(std::size_t channel, const OutgoingMessage& message) override {
    check(message.data, message.data_owner, seen_.of_data);
    check(message.result, message.result_owner, seen_.of_results);
    return transport_->post(channel, message);
  }

  std::vector<std::uint8_t> address() const override { return transport_->address(); }

  std::uint32_t queue_pair(std::size_t channel) const override {
    return transport_->queue_pair(channel);
  }

  void connect(const Neighbour& predecessor, const Neighbour& successor) override {
    transport_->connect(predecessor, successor);
  }

  void renew(Delivery delivery) override { transport_->renew(delivery); }

  void close(std::size_t channel) override { transport_->close(channel); }

  void quiesce() override { transport_->quiesce(); }

  bool poll(TransportListener& listener) override { return transport_->poll(listener); }

  int descriptor() const override { return transport_->descriptor(); }

  bool arm() override { return transport_->arm(); }

  Deadline due() const override { return transport_->due(); }

  TransportStatistics statistics() const override { return transport_->statistics(); }

  std::string describe(std::size_t channel) const override { return transport_->describe(channel); }

 private:
  void check(std::span<const std::uint8_t> bytes, Owner owner, std::set<Owner>& seen) const {
    if (!bytes.empty()) {
      EXPECT_EQ(owner, arena_.has(bytes) ? Owner::caller : Owner::library);
      seen.insert(owner);
    }
  }

  const std::unique_ptr<Transport> transport_;
  const Arena& arena_;
  Seen& seen_;
};

constexpr std::size_t kCount = 2000;

/// Some calls of one rank, and whose memory its messages must then have been in.
struct Row {
  const char* name;
  std::function<void(Group&, Arena&)> call;
  std::set<Owner> of_data;
  std::set<Owner> of_results; // over the switch
};

const std::set<Owner> kCaller{Owner::caller};
const std::set<Owner> kLibrary{Owner::library};
const std::set<Owner> kBoth{Owner::library, Owner::caller};

std::function<void(Group&, Arena&)> dense(CallKind kind, DataType type = DataType::u32) {
  return [=](Group& group, Arena& arena) {
    group.start(arena.at(0), arena.at(4 * kCount), {.kind = kind, .count = kCount, .type = type})
        .wait();
  };
}

std::function<void(Group&, Arena&)> scaled(CallKind kind) {
  return [=](Group& group, Arena& arena) {
    Factor factor{};
    factor[0] = 3;
    group
        .start_scaled(arena.at(0), arena.at(4 * kCount),
                      {.kind = kind, .count = kCount, .type = DataType::u32}, factor)
        .wait();
  };
}

void coalesced(Group& group, Arena& arena) {
  const std::array<Group::Part, 2> parts{Group::Part{arena.at(0), arena.at(0), 333},
                                         Group::Part{arena.at(500), arena.at(900), 333}};
  group.start_all_reduce(parts, {.type = DataType::u32}).wait();
}

/// Values that lie in the caller's memory are packed before they travel.
void sparse(Group& group, Arena& arena) {
  static constexpr std::array<std::int64_t, 2> kIndices{1, 9};
  group
      .start_sparse({.count = 100 * kCount,
                     .block = 500,
                     .indices = kIndices,
                     .values = reinterpret_cast<const std::uint8_t*>(arena.at(0))},
                    {.type = DataType::u32})
      .pending.wait();
}

/// Calls on three ranks, each with an arena. Returns what all of them have seen.
Seen seen_in(Fallback fallback, const std::function<void(Group&, Arena&)>& call) {
  const JobPlan plan{.world = 3, .fallback = fallback};
  const bool has_switch = fallback == Fallback::none;
  HostFabric fabric(has_switch ? rings_of(plan) : std::vector<ring::RingSpec>(), plan.world,
                    kSession);
  const std::string address = free_address();
  std::array<Seen, 3> seen;
  expect_none(run_ranks(plan.world, [&](std::uint16_t rank) {
    const GroupOptions options = options_of(plan, rank, address);
    Arena arena;
    Group group(options,
                std::make_unique<CheckedTransport>(
                    open_software_transport(options, fabric.open(rank)), arena, seen[rank]));
    call(group, arena);
  }));
  for (const Seen& other : seen) {
    seen[0].of_data.insert(other.of_data.begin(), other.of_data.end());
    seen[0].of_results.insert(other.of_results.begin(), other.of_results.end());
  }
  return seen[0];
}

TEST(MemoryOwner, IsToldToTheDeviceOverTheSwitch) {
  const std::vector<Row> rows{
      {"all-reduce", dense(CallKind::all_reduce), kCaller, kCaller},
      {"all-gather", dense(CallKind::all_gather), kCaller, kCaller},
      {"broadcast", dense(CallKind::broadcast), kCaller, kCaller},
      {"reduce-scatter", dense(CallKind::reduce_scatter), kCaller, kCaller},
      {"coalesced", coalesced, kBoth, kCaller},
      {"sparse", sparse, kLibrary, kLibrary},
      {"scaled all-reduce", scaled(CallKind::all_reduce), kCaller, kCaller},
      {"scaled reduce", scaled(CallKind::reduce), kLibrary, kCaller},
      {"scaled reduce-scatter", scaled(CallKind::reduce_scatter), kLibrary, kCaller},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const Seen seen = seen_in(Fallback::none, row.call);
    EXPECT_EQ(seen.of_data, row.of_data);
    EXPECT_EQ(seen.of_results, row.of_results);
  }
}

TEST(MemoryOwner, IsToldToTheDeviceOnTheHostsRing) {
  const std::vector<Row> rows{
      {"all-reduce", dense(CallKind::all_reduce), kBoth, {}},
      {"all-reduce, folded in f32", dense(CallKind::all_reduce, DataType::bf16), kBoth, {}},
      {"all-gather", dense(CallKind::all_gather), kLibrary, {}},
      {"reduce-scatter", dense(CallKind::reduce_scatter), kBoth, {}},
      {"coalesced", coalesced, kLibrary, {}},
      {"sparse", sparse, kLibrary, {}},
      {"scaled reduce-scatter", scaled(CallKind::reduce_scatter), kLibrary, {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const Seen seen = seen_in(Fallback::ring, row.call);
    EXPECT_EQ(seen.of_data, row.of_data);
    EXPECT_EQ(seen.of_results, row.of_results);
  }
}

} // namespace
} // namespace weir::host::memory_owner_test
