// SPDX-License-Identifier: BSD-3-Clause

/// Sparse all-reduces by density and ranks: what crosses a rank's link, beside dense all-reduces
/// and what Flare and OmniReduce would send for the same indices, and what a host computes. The
/// network is left out: exchanges are folded in place.

#include "host/collective/sparse_all_reduce.hpp"
#include "measurement.hpp"
#include "op/kernel.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

namespace weir::bench {
namespace {

constexpr std::string_view kPart = "sparse";
constexpr std::uint64_t kElements = std::uint64_t{1} << 22; // 16 MiB of f32
constexpr double kDenseBytes = kElements * 4.0;
constexpr double kPairBytes = 8;                // Flare: u32 index, f32 value
constexpr std::uint64_t kOmniReduceBlock = 256; // elements
constexpr std::uint64_t kRun = 256;             // elements that are there together
constexpr double kMega = 1e6;

using Indices = std::vector<std::int64_t>;

/// Each rank's elements, drawn for each by itself: single ones, or runs.
std::vector<Indices> drawn_indices(std::uint64_t run, std::uint64_t ranks, std::uint64_t ppm) {
  std::vector<Indices> indices(ranks);
  std::mt19937_64 random(run + ranks + ppm);
  for (Indices& own : indices) {
    for (std::uint64_t first = 0; first < kElements; first += run) {
      if (random() % 1'000'000 < ppm) {
        for (std::uint64_t i = 0; i < run; ++i) {
          own.push_back(static_cast<std::int64_t>(first + i));
        }
      }
    }
  }
  return indices;
}

/// How many blocks some rank has, and how many a rank has on average.
struct BlockCounts {
  double together = 0;
  double mean = 0;
};

BlockCounts count_blocks(const std::vector<Indices>& indices, std::uint64_t block) {
  BlockCounts counts;
  std::vector<bool> is_there(kElements / block);
  for (const Indices& own : indices) {
    std::int64_t last = -1;
    for (const std::int64_t index : own) {
      const std::int64_t place = index / static_cast<std::int64_t>(block);
      counts.mean += place == last ? 0 : 1.0 / static_cast<double>(indices.size());
      is_there[static_cast<std::size_t>(place)] = true;
      last = place;
    }
  }
  counts.together = static_cast<double>(std::ranges::count(is_there, true));
  return counts;
}

/// Bytes on the busier direction of a host's link. Flare (SC'21 §7): pairs go up, the union's come
/// down.
double flare_bytes(const std::vector<Indices>& indices) {
  return kPairBytes * count_blocks(indices, 1).together;
}

/// OmniReduce (SIGCOMM'21) with an aggregator on each host: a host sends its blocks to the others'
/// aggregators, and its own aggregator's share of the union to each other host.
double omnireduce_bytes(const std::vector<Indices>& indices) {
  const BlockCounts blocks = count_blocks(indices, kOmniReduceBlock);
  const double others = static_cast<double>(indices.size() - 1);
  return (blocks.mean + blocks.together) * kOmniReduceBlock * 4 * others /
         static_cast<double>(indices.size());
}

/// All ranks of a call.
class Ranks {
 public:
  Ranks(const std::vector<Indices>& indices, std::uint16_t block) {
    const auto world = static_cast<std::uint16_t>(indices.size());
    const host::Call call{
        .kind = host::CallKind::sparse_all_reduce, .count = kElements, .block = block};
    for (const Indices& own : indices) {
      values_.emplace_back(own.size(), 1.0F);
      const auto* const data = reinterpret_cast<const std::uint8_t*>(values_.back().data());
      const host::SparseTensor tensor{
          .count = kElements, .block = block, .indices = own, .values = data};
      host_seconds_ += cpu_seconds_of([&] {
        calls_.push_back(
            std::make_unique<host::SparseAllReduce>(call, world, tensor, std::nullopt));
      });
    }
  }

  void run() {
    while (!calls_.front()->outcome()->is_done()) {
      exchange();
      host_seconds_ += cpu_seconds_of([&] {
        for (const auto& call : calls_) {
          call->advance();
        }
      });
    }
  }

  const host::SparseResult& result() const { return calls_.front()->outcome()->result(); }

  /// Computing of one rank.
  double host_seconds() const { return host_seconds_ / static_cast<double>(calls_.size()); }

 private:
  /// What the switch does.
  void exchange() {
    std::vector<const std::byte*> inputs;
    for (const auto& call : calls_) {
      inputs.push_back(reinterpret_cast<const std::byte*>(call->current().buffers.in));
    }
    const host::Call call = calls_.front()->current().call;
    std::vector<std::byte> result(call.count * element_size(call.type));
    if (!result.empty()) {
      op::find_kernel(call.type, call.operation, op::best_cpu_level())(
          result.data(), inputs.data(), static_cast<unsigned>(inputs.size()), result.size(), {});
    }
    for (const auto& other : calls_) {
      std::ranges::copy(result, reinterpret_cast<std::byte*>(other->current().buffers.out));
    }
  }

  std::vector<std::vector<float>> values_;
  std::vector<std::unique_ptr<host::SparseAllReduce>> calls_;
  double host_seconds_ = 0;
};

struct Setting {
  std::string_view pattern;
  std::uint64_t run = 1;
  std::uint16_t block = 1; // 0: chosen
  std::uint64_t ranks = 2;
  std::uint64_t ppm = 0;

  Case parameters() const {
    return Case().with("pattern", pattern).with("ranks", ranks).with("density ppm", ppm);
  }
};

std::vector<Setting> settings(Effort effort) {
  std::vector<Setting> all;
  const std::vector<std::uint64_t> densities =
      effort == Effort::quick ? std::vector<std::uint64_t>{1'000, 100'000}
                              : std::vector<std::uint64_t>{100,    300,     1'000,   3'000,  10'000,
                                                           30'000, 100'000, 200'000, 500'000};
  all.push_back({"scattered", 1, 1, 64, 1'000'000 / 512}); // as Flare's figure 15
  for (const std::uint64_t ranks : {2, 4, 8}) {
    for (const std::uint64_t ppm : densities) {
      all.push_back({"scattered", 1, 1, ranks, ppm});
      all.push_back({"clustered", kRun, 0, ranks, ppm});
    }
  }
  return all;
}

void measure(const Setting& setting, unsigned round) {
  const std::vector<Indices> indices = drawn_indices(setting.run, setting.ranks, setting.ppm);
  Ranks ranks(indices, setting.block);
  ranks.run();
  report(kPart, setting.parameters(), round,
         {{"weir", static_cast<double>(ranks.result().exchanged_bytes) / kMega, "MB", "dense"},
          {"flare", flare_bytes(indices) / kMega, "MB", "dense"},
          {"omnireduce", omnireduce_bytes(indices) / kMega, "MB", "dense"},
          {"dense", kDenseBytes / kMega, "MB"},
          {"host", ranks.host_seconds() * 1e3, "ms"}});
}

} // namespace
} // namespace weir::bench

int main(int argc, char** argv) {
  using namespace weir::bench;
  const Options options = read_options(argc, argv, {kPart}, {.full = 3, .quick = 1});
  for (unsigned round = 0; round < options.rounds; ++round) {
    tell_progress(kPart, round, options);
    for (const Setting& setting : settings(options.effort)) {
      if (setting.parameters().is_wanted(options)) {
        measure(setting, round);
      }
    }
  }
  return 0;
}
