// SPDX-License-Identifier: BSD-3-Clause

/// Bytes of input per second that each kernel reduces, for payloads of 1 KiB in mbuf-like places:
/// from cache (one set of payloads again and again) and from memory (places drawn at random from
/// more memory than the last-level cache holds). `read` does nothing but read the same bytes: the
/// bound for the others.
///
/// Names are type/operation/level/ranks/where, e.g. --benchmark_filter='f32/sum/.*/8/'.

#include "agg/kernel.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace weir::agg {

namespace {

constexpr std::size_t kPayload = 1024;
constexpr std::size_t kPlace = 2048 + 128 + 128; // an mbuf with its headroom and its header
constexpr std::size_t kOffset =
    128 + 54 + 16 + 4; // what lies before the payload: nothing is aligned
constexpr std::size_t kHugePage = std::size_t{2} << 20;

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};

/// Memory several times the last-level cache, cut into places, in random order.
class Places {
 public:
  Places() : memory_(static_cast<std::byte*>(std::aligned_alloc(kHugePage, size()))) {
    madvise(memory_.get(), size(), MADV_HUGEPAGE);
    std::memset(memory_.get(), 0x3c, size()); // an ordinary number in every format
    payloads_.resize(size() / kPlace);
    for (std::size_t i = 0; i < payloads_.size(); ++i) {
      payloads_[i] = memory_.get() + i * kPlace + kOffset;
    }
    std::shuffle(payloads_.begin(), payloads_.end(), std::mt19937_64(1));
  }

  const std::vector<const std::byte*>& payloads() const { return payloads_; }

 private:
  static std::size_t size() {
    const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    const std::size_t wanted = 8 * static_cast<std::size_t>(std::max(cache, 32L << 20));
    return (wanted + kHugePage - 1) / kHugePage * kHugePage;
  }

  std::unique_ptr<std::byte, Free> memory_;
  std::vector<const std::byte*> payloads_;
};

const Places& places() {
  static const Places instance;
  return instance;
}

#if defined(__x86_64__)
#define WEIR_EVERY_LEVEL __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WEIR_EVERY_LEVEL
#endif

/// Reads the inputs and keeps 64 bytes of them: not a reduction.
WEIR_EVERY_LEVEL void read(std::byte* out, const std::byte* const* inputs, unsigned count,
                           std::size_t bytes) {
  using Line = std::uint64_t __attribute__((vector_size(64)));
  Line seen[4] = {};
  for (unsigned i = 0; i < count; ++i) {
    for (std::size_t at = 0; at < bytes; at += sizeof seen) {
#pragma GCC unroll 4
      for (std::size_t k = 0; k < 4; ++k) {
        Line line;
        std::memcpy(&line, inputs[i] + at + k * sizeof line, sizeof line);
        seen[k] |= line;
      }
    }
  }
  const Line all = (seen[0] | seen[1]) | (seen[2] | seen[3]);
  std::memcpy(out, &all, sizeof all);
}

enum class Where : std::uint8_t { cache, memory };

void run(benchmark::State& state, ReduceKernel kernel, unsigned ranks, Where where) {
  const auto& payloads = places().payloads();
  std::vector<std::byte> out(kPayload);
  std::size_t next = 0;
  for (auto _ : state) {
    kernel(out.data(), &payloads[next], ranks, kPayload);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
    if (where == Where::memory) {
      next = next + 2 * ranks <= payloads.size() ? next + ranks : 0;
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(ranks * kPayload));
}

void add(const std::string& name, ReduceKernel kernel) {
  for (const unsigned ranks : {2U, 8U, 64U}) {
    for (const Where where : {Where::cache, Where::memory}) {
      const std::string place = where == Where::cache ? "/cache" : "/memory";
      benchmark::RegisterBenchmark(
          (name + '/' + std::to_string(ranks) + place).c_str(),
          [=](benchmark::State& state) { run(state, kernel, ranks, where); });
    }
  }
}

void add_levels(DataType type, Operation operation) {
  for (std::size_t i = 0; i <= static_cast<std::size_t>(best_cpu_level()); ++i) {
    const auto level = static_cast<CpuLevel>(i);
    const std::string name = std::string(name_of(type)) + '/' + std::string(name_of(operation)) +
                             '/' + std::string(name_of(level));
    add(name, find_kernel(type, operation, level));
  }
}

void add_all() {
  add("read", read);
  for (std::size_t t = 0; t < kDataTypes; ++t) {
    for (std::size_t o = 0; o < kOperations; ++o) {
      const auto type = static_cast<DataType>(t);
      const auto operation = static_cast<Operation>(o);
      if (is_reducible(type, operation)) {
        add_levels(type, operation);
      }
    }
  }
}

} // namespace

} // namespace weir::agg

int main(int argc, char** argv) {
  weir::agg::add_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 1;
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
