// SPDX-License-Identifier: BSD-3-Clause

/// Figures of Flare (SC'21): the model of its switch, sparse folds, and traffic at scale.

#include "figure.hpp"
#include "flare_model.hpp"
#include "flare_simulated.hpp"
#include "inputs.hpp"
#include "sparse.hpp"
#include "sparse_traffic.hpp"
#include "units.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <string>
#include <vector>

namespace weir::figures::flare {
namespace {

constexpr double kLargestTensor = 1024 * kMib; // every design has its highest bandwidth
constexpr TwoLevels kTree{kLeaves, kHosts / kLeaves};

Design shared(double buffers, Mean mean = Mean::printed) {
  return {.buffers = buffers, .cores = kCoresPerCluster, .mean = mean};
}

void plot_model(Results& results) {
  struct Line {
    std::string name;
    Design design;
  };

  const std::array lines{Line{"one buffer", shared(1)}, Line{"2 buffers", shared(2)},
                         Line{"4 buffers", shared(4)},
                         Line{"tree", {.sharing = Sharing::tree, .cores = kCoresPerCluster}},
                         Line{"one buffer, S = 1", {}}};
  for (const Line& line : lines) {
    for (double kib = 1; kib <= 4096; kib *= 2) {
      results.point("bandwidth", line.name, kib, bandwidth(line.design, kib * kKib) / kTera);
      results.point("memory", line.name, kib,
                    (working_memory(line.design, kib * kKib) +
                     queued_packets(line.design, kib * kKib) * kPacketBytes) /
                        kMib);
    }
  }
}

/// Fig. 7, 10 and §6.1.
void model(const Settings& settings, Results& results) {
  results.value("peak", bandwidth({}, kLargestTensor) / kTera);
  results.value("contended.printed", bandwidth(shared(1), kPacketBytes) / kTera);
  results.value("contended.corrected", bandwidth(shared(1, Mean::corrected), kPacketBytes) / kTera);
  for (const double buffers : {1.0, 2.0, 4.0}) {
    results.value(fmt::format("threshold.{}", buffers), full_rate_from(shared(buffers)) / kKib);
  }
  const Design tree{.sharing = Sharing::tree, .cores = kCoresPerCluster};
  results.value("threshold.tree", full_rate_from(tree) / kKib);
  // §6.1.1: from this size on, a single buffer is not contended.
  constexpr double kContended = 512 * kKib;
  const double working = working_memory(shared(1), kContended);
  results.value("working.512", working / kKib);
  results.value("total.512",
                (working + queued_packets(shared(1), kContended) * kPacketBytes) / kMib);
  results.value("queues.16", waiting_packets({}, 16 * kKib) * kPacketBytes / kMib);
  simulated_servers(settings, results);
  plot_model(results);
}

/// Memory accesses for each value in a block's packets, and for one read of its result.
struct Folded {
  double array = 0;
  double hash = 0;
  double traffic = 0; ///< pairs that leave the hash table and its spills, divided by the union
  double union_size = 0;
  double array_bytes = 0;
  double hash_bytes = 0;
};

Folded fold_block(double density, std::uint32_t slots) {
  const auto span = static_cast<std::uint32_t>(kBlockValues / density);
  Draws draws(span);
  ArrayFold array(span);
  HashFold hash(slots);
  const auto children = static_cast<std::uint32_t>(kChildren);
  for (std::uint32_t child = 0; child < children; ++child) {
    const std::vector<Pair> pairs = scattered(draws, span, kBlockValues);
    array.add(pairs);
    hash.add(pairs);
  }
  Folded folded;
  folded.union_size = array.drain();
  const double values = static_cast<double>(children) * kBlockValues;
  folded.array = static_cast<double>(array.accesses()) / values;
  folded.hash = static_cast<double>(hash.accesses()) / values;
  folded.traffic = (hash.held() + static_cast<double>(hash.spilled())) / folded.union_size;
  folded.array_bytes = static_cast<double>(array.bytes());
  folded.hash_bytes = static_cast<double>(hash.bytes());
  return folded;
}

/// As many as a block's values, rounded up to a power of two; the paper gives no number.
constexpr std::uint32_t kSlots = std::bit_ceil(kBlockValues);

/// Fig. 13: at 10 % density, values folded per memory access.
void sparse_and_dense(const Settings& /*settings*/, Results& results) {
  constexpr double kDense = 3; // a packet's value; the sum is read and written
  constexpr double kDensity = 0.1;
  const Folded folded = fold_block(kDensity, kSlots);
  results.value("array over dense", folded.array / kDense);
  results.value("hash over array", folded.hash / folded.array);
}

/// Fig. 14.
void densities(const Settings& /*settings*/, Results& results) {
  const Folded thin = fold_block(0.01, kSlots);
  const Folded thick = fold_block(0.2, kSlots);
  results.value("hash accesses", thin.hash / thick.hash);
  results.value("hash memory", thin.hash_bytes / thick.hash_bytes);
  results.value("array accesses", thin.array / thick.array);
  results.value("array KiB at 1 %", thin.array_bytes / kKib);
  results.value("values KiB at 1 %", kBlockValues * kValueBytes / kKib);
  results.value("traffic.hash", thick.traffic);
  results.value("traffic.array", 1);
  for (const double percent : {1.0, 2.0, 5.0, 10.0, 20.0}) {
    for (const std::uint32_t slots : {1U, 2U, 4U}) {
      results.point("traffic", fmt::format("{} slots", slots * kSlots), percent,
                    fold_block(percent / 100, slots * kSlots).traffic);
    }
    results.point("traffic", "array", percent, 1);
  }
}

/// Mean sizes of unions of a bucket's indices, one per host, over `buckets` buckets.
Unions bucket_unions(const ZipfLaw& law, std::uint32_t buckets) {
  constexpr std::uint64_t kSeed = 64;
  Draws draws(kSeed);
  Unions sum;
  for (std::uint32_t bucket = 0; bucket < buckets; ++bucket) {
    std::vector<std::vector<std::uint32_t>> sets(kHosts);
    for (auto& set : sets) {
      set.push_back(law.draw(draws));
    }
    const Unions one = unions_of(kTree, sets);
    sum.host += one.host;
    sum.leaf += one.leaf;
    sum.all += one.all;
  }
  return {sum.host / buckets, sum.leaf / buckets, sum.all / buckets};
}

/// Fig. 15, dense.
void dense_traffic(const Settings& settings, Results& results) {
  const double dense = through_switches(kTree, kTensorBytes);
  const double ring = host_ring(kTree, kTensorBytes);
  results.value("GB.dense", dense / kGiga);
  results.value("GB.ring", ring / kGiga);
  results.value("ring over dense", ring / dense);
  simulated_traffic(settings, results);
}

/// Fig. 15, sparse.
void sparse_traffic(const Settings& /*settings*/, Results& results) {
  const double buckets = kTensorBytes / kValueBytes / kBucketValues;
  const double dense = through_switches(kTree, kTensorBytes);
  const double gather = split_and_gather(kTree, buckets * kPairBytes, kTensorBytes);
  results.value("GB.SparCML", gather / kGiga);

  struct Law {
    std::string name;
    double exponent;
  };

  for (const Law& law : {Law{"skewed", kZipfExponent}, Law{"uniform", 0}}) {
    const Unions unions =
        bucket_unions(ZipfLaw(kBucketValues, law.exponent), static_cast<std::uint32_t>(buckets));
    const double bytes = sparse_through_switches(kTree, unions, kPairBytes) * buckets;
    results.value("union." + law.name, unions.all);
    results.value("GB." + law.name, bytes / kGiga);
    results.value("dense over sparse." + law.name, dense / bytes);
    results.value("SparCML over sparse." + law.name, gather / bytes);
  }
}

constexpr std::array kFigures{
    Figure{"FL1", model},      Figure{"FL4", sparse_and_dense}, Figure{"FL5", densities},
    Figure{"FL7", dense_time}, Figure{"FL8", dense_traffic},    Figure{"FL9", sparse_traffic},
};

} // namespace
} // namespace weir::figures::flare

std::span<const weir::figures::Figure> weir::figures::flare_figures() {
  return flare::kFigures;
}
