// SPDX-License-Identifier: BSD-3-Clause

/// Bytes of payload per second that each kernel reduces, that the ICRC check handles, and that both
/// together do. Plain reading of payloads in the same memory is measured in turn with them.

#include "frame/frame.hpp"
#include "frame_places.hpp"
#include "measurement.hpp"
#include "op/kernel.hpp"
#include "wire/crc32.hpp"
#include "wire/icrc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace weir::bench {
namespace {

constexpr std::string_view kPart = "kernels";
constexpr std::size_t kPayload = FramePlaces::kPayload;

/// Long enough for the clock. Short enough that a disturbance of the work also disturbs the reading
/// next to it.
constexpr std::size_t kSliceBytes = std::size_t{2} << 20;
constexpr unsigned kSlices = 15;

enum class From : std::uint8_t { cache, memory };

/// The frames of one piece of work: `groups` times `ranks` in a row, `stride` apart.
struct Groups {
  std::size_t first = 0;
  std::size_t stride = 0;
  std::size_t groups = 0;
  unsigned ranks = 0;
};

using Work = std::function<void(const Groups&)>;

#if defined(__x86_64__)
#define WEIR_EVERY_LEVEL __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WEIR_EVERY_LEVEL
#endif

/// Reads the inputs and keeps 64 bytes of them: a ReduceKernel that reduces nothing.
WEIR_EVERY_LEVEL void read_payloads(std::byte* out, const std::byte* const* inputs, unsigned count,
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

/// Stops the compiler from removing stores that are not read.
void keep(const void* memory) {
  __asm__ volatile("" : : "g"(memory) : "memory");
}

Work reduction(const FramePlaces& places, op::ReduceKernel kernel) {
  return [&places, kernel](const Groups& groups) {
    alignas(64) std::array<std::byte, kPayload> out;
    for (std::size_t group = 0; group < groups.groups; ++group) {
      kernel(out.data(), places.payloads() + groups.first + group * groups.stride, groups.ranks,
             kPayload);
      keep(out.data());
    }
  };
}

/// Whether the first lines of the next frames are prefetched during the work on the present ones.
/// The CPU prefetches the rest of a payload once it is being read, but it cannot guess the next
/// payload.
enum class Ahead : std::uint8_t { nothing, first_lines };

constexpr unsigned kLine = 64;
constexpr unsigned kFirstLines = 4;
constexpr unsigned kFramesAhead = 8;

void ask_for(const frame::Frame& frame) {
  __builtin_prefetch(&frame);
  __builtin_prefetch(reinterpret_cast<const std::byte*>(&frame) + kLine);
  for (unsigned line = 0; line < kFirstLines; ++line) {
    __builtin_prefetch(FramePlaces::data_of(frame) + line * kLine);
  }
}

/// Prefetches the frames after these while it goes through them.
template <Ahead kAhead, typename Visit>
void for_each(frame::Frame* const* frames, unsigned count, Visit&& visit) {
  for (unsigned i = 0; i < count; ++i) {
    if constexpr (kAhead == Ahead::first_lines) {
      ask_for(*frames[i + kFramesAhead]);
    }
    visit(*frames[i], i);
  }
}

void expect_valid(bool is_valid) {
  if (!is_valid) {
    throw std::logic_error("a frame with a wrong ICRC");
  }
}

template <Ahead kAhead>
Work verification(const FramePlaces& places) {
  return [&places](const Groups& groups) {
    for (std::size_t group = 0; group < groups.groups; ++group) {
      for_each<kAhead>(places.frames() + groups.first + group * groups.stride, groups.ranks,
                       [](const frame::Frame& frame, unsigned /*rank*/) {
                         expect_valid(wire::icrc_is_valid(frame));
                       });
    }
  };
}

/// The cost of a slot without its bookkeeping: every frame is checked as it comes, the fold when
/// the last is there, an ICRC for each result (stored elsewhere, because the frames are used
/// again).
template <Ahead kAhead>
Work slot_arithmetic(const FramePlaces& places, op::ReduceKernel kernel) {
  return [&places, kernel](const Groups& groups) {
    std::array<std::uint8_t, kPayload> out;
    std::array<std::uint32_t, FramePlaces::kMostRanks> icrcs;
    for (std::size_t group = 0; group < groups.groups; ++group) {
      const std::size_t at = groups.first + group * groups.stride;
      for_each<kAhead>(places.frames() + at, groups.ranks,
                       [&icrcs](frame::Frame& frame, unsigned rank) {
                         // It was verified in an earlier pass.
                         frame.icrc = wire::IcrcState::unverified;
                         expect_valid(wire::verify_icrc(frame));
                         icrcs[rank] = wire::stored_icrc(frame) ^ frame.payload_crc;
                       });
      kernel(reinterpret_cast<std::byte*>(out.data()), places.payloads() + at, groups.ranks,
             kPayload);
      const std::uint32_t result = wire::crc32(0, out);
      for (unsigned rank = 0; rank < groups.ranks; ++rank) {
        icrcs[rank] ^= result;
      }
      keep(icrcs.data());
    }
  };
}

double median_of(std::array<double, kSlices>& values) {
  std::nth_element(values.begin(), values.begin() + kSlices / 2, values.end());
  return values[kSlices / 2];
}

struct Measured {
  Case parameters;
  unsigned ranks = 0;
  From from = From::cache;
  Work work;
};

/// Goes through the frames, so that the next one from memory is the one that was read longest ago.
class Walk {
 public:
  explicit Walk(std::size_t frames) : frames_(frames) {}

  Groups next(unsigned ranks, From from) {
    const std::size_t groups = kSliceBytes / kPayload / ranks;
    if (from == From::cache) {
      return {0, 0, groups, ranks};
    }
    if (at_ + groups * ranks + kFramesAhead > frames_) {
      at_ = 0;
    }
    return {std::exchange(at_, at_ + groups * ranks), ranks, groups, ranks};
  }

 private:
  std::size_t frames_;
  std::size_t at_ = 0;
};

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) { add_cases(); }

  void run() {
    for (unsigned round = 0; round < options_.rounds; ++round) {
      tell_progress(kPart, round, options_);
      for (const Measured& measured : cases_) {
        measure(measured, round);
      }
    }
  }

 private:
  void add(Case parameters, unsigned ranks, From from, Work work) {
    parameters.with("ranks", ranks).with("from", from == From::cache ? "cache" : "memory");
    if (parameters.is_wanted(options_)) {
      cases_.push_back({std::move(parameters), ranks, from, std::move(work)});
    }
  }

  void add_both(const Case& parameters, unsigned ranks, const Work& work) {
    add(parameters, ranks, From::cache, work);
    add(parameters, ranks, From::memory, work);
  }

  void add_reduction(DataType type, Operation operation, op::CpuLevel level, unsigned ranks) {
    Case parameters;
    parameters.with("about", "kernels")
        .with("work", name_of(operation))
        .with("type", name_of(type));
    parameters.with("level", level == best_ ? "best" : name_of(level));
    add_both(parameters, ranks, reduction(places_, op::find_kernel(type, operation, level)));
  }

  void add_every_pair() {
    for (std::size_t t = 0; t < kDataTypes; ++t) {
      for (std::size_t o = 0; o < kOperations; ++o) {
        const auto type = static_cast<DataType>(t);
        const auto operation = static_cast<Operation>(o);
        if (is_reducible(type, operation)) {
          add_reduction(type, operation, best_, 8);
        }
      }
    }
  }

  void add_sums_by_ranks() {
    for (const DataType type :
         {DataType::f32, DataType::f16, DataType::bf16, DataType::f8e4m3, DataType::i32}) {
      for (const unsigned ranks : {2U, 4U, 16U, 32U, 64U}) {
        add_reduction(type, Operation::sum, best_, ranks);
      }
    }
  }

  void add_sums_by_level() {
    for (std::size_t t = 0; t < kDataTypes; ++t) {
      for (std::size_t level = 0; level < static_cast<std::size_t>(best_); ++level) {
        add_reduction(static_cast<DataType>(t), Operation::sum, static_cast<op::CpuLevel>(level),
                      8);
      }
    }
  }

  static Case icrc_case(std::string_view work) {
    return Case().with("about", "icrc").with("work", work);
  }

  void add_icrc() {
    const op::ReduceKernel sum = op::find_kernel(DataType::f32, Operation::sum, best_);
    for (const unsigned ranks : {2U, 8U, 64U}) {
      const Case verifying = icrc_case("verify");
      add_both(verifying, ranks, verification<Ahead::nothing>(places_));
      const Case slot = icrc_case("verify+sum+recompute");
      add_both(slot, ranks, slot_arithmetic<Ahead::nothing>(places_, sum));
    }
    for (const unsigned ranks : {2U, 8U, 64U}) {
      add(icrc_case("verify, lines ahead"), ranks, From::memory,
          verification<Ahead::first_lines>(places_));
      add(icrc_case("verify+sum+recompute, lines ahead"), ranks, From::memory,
          slot_arithmetic<Ahead::first_lines>(places_, sum));
    }
  }

  void add_cases() {
    add_icrc();
    add_every_pair();
    if (options_.effort == Effort::full) {
      add_sums_by_ranks();
      add_sums_by_level();
    }
  }

  /// Takes the median slice of each, because a disturbed one shows nothing.
  void measure(const Measured& measured, unsigned round) {
    std::array<double, kSlices> work;
    std::array<double, kSlices> reading;
    for (unsigned slice = 0; slice < kSlices; ++slice) {
      const Groups for_work = walk_.next(measured.ranks, measured.from);
      work[slice] = cpu_seconds_of([&] { measured.work(for_work); });
      const Groups for_reading = walk_.next(measured.ranks, measured.from);
      reading[slice] = cpu_seconds_of([&] { reading_(for_reading); });
    }
    const double bytes =
        static_cast<double>(kSliceBytes / kPayload / measured.ranks) * measured.ranks * kPayload;
    report(kPart, measured.parameters, round,
           {{"rate", bytes / median_of(work) / 1e9, "GB/s", "reading"},
            {"reading", bytes / median_of(reading) / 1e9, "GB/s"}});
  }

  const Options options_;
  const op::CpuLevel best_ = op::best_cpu_level();
  const FramePlaces places_;
  const Work reading_ = reduction(places_, read_payloads);
  Walk walk_{places_.size()};
  std::vector<Measured> cases_;
};

} // namespace
} // namespace weir::bench

int main(int argc, char** argv) {
  using namespace weir::bench;
  Bench(read_options(argc, argv, {kPart}, {.full = 9, .quick = 3})).run();
  return 0;
}
