// SPDX-License-Identifier: BSD-3-Clause
#include "frame_work.hpp"

#include "frame/frame.hpp"
#include "frame/prefetch.hpp"
#include "wire/crc32.hpp"
#include "wire/icrc.hpp"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace weir::bench {
namespace {

constexpr std::size_t kPayload = FramePlaces::kPayload;
constexpr std::size_t kSliceBytes = std::size_t{2} << 20;
constexpr std::size_t kEthernetBytes = 14;
constexpr std::size_t kIcrcBytes = 4;
constexpr unsigned kTurns = 15; // of measured_in_turn

#if defined(__x86_64__)
#define WEIR_EVERY_LEVEL __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WEIR_EVERY_LEVEL
#endif

/// Reads the inputs and keeps 64 bytes of them: a ReduceKernel that reduces nothing.
WEIR_EVERY_LEVEL void read_payloads(std::byte* out, const std::byte* const* inputs, unsigned count,
                                    std::size_t bytes, op::Copies /*copies*/) {
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

/// Makes four vectors of f32 of each vector of bytes by one shift or mask each, and adds them up: a
/// ReduceKernel whose sums mean nothing.
WEIR_EVERY_LEVEL void add_quarters(std::byte* out, const std::byte* const* inputs, unsigned count,
                                   std::size_t bytes, op::Copies /*copies*/) {
  using Words = std::uint32_t __attribute__((vector_size(64)));
  using Floats = float __attribute__((vector_size(64)));
  constexpr std::size_t vectors = 2; // at a time: as many sums as the registers hold twice
  for (std::size_t at = 0; at < bytes; at += vectors * sizeof(Words)) {
    Floats sums[vectors][4] = {};
    for (unsigned i = 0; i < count; ++i) {
#pragma GCC unroll 2
      for (std::size_t vector = 0; vector < vectors; ++vector) {
        Words words;
        std::memcpy(&words, inputs[i] + at + vector * sizeof words, sizeof words);
        sums[vector][0] += reinterpret_cast<Floats>(words << 24);
        sums[vector][1] += reinterpret_cast<Floats>(words << 16);
        sums[vector][2] += reinterpret_cast<Floats>(words << 8);
        sums[vector][3] += reinterpret_cast<Floats>(words & 0xff00'0000);
      }
    }
    for (std::size_t vector = 0; vector < vectors; ++vector) {
      const Floats all = (sums[vector][0] + sums[vector][1]) + (sums[vector][2] + sums[vector][3]);
      std::memcpy(out + at + vector * sizeof all, &all, sizeof all);
    }
  }
}

constexpr unsigned kFramesAhead = 8;

void ask_for(const frame::Frame& frame) {
  frame::prefetch(&frame);
  frame::prefetch_range(FramePlaces::data_of(frame), kPayload + frame::kCacheLine);
}

/// Prefetches the frames after these while it goes through them.
template <Ahead kAhead, typename Visit>
void for_each(frame::Frame* const* frames, unsigned count, Visit&& visit) {
  for (unsigned i = 0; i < count; ++i) {
    if constexpr (kAhead == Ahead::next_frames) {
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
Work verification_with(const FramePlaces& places) {
  return [&places](const Groups& groups) {
    for (std::size_t group = 0; group < groups.groups; ++group) {
      for_each<kAhead>(places.frames() + groups.first + group * groups.stride, groups.ranks,
                       [](const frame::Frame& frame, unsigned /*rank*/) {
                         expect_valid(wire::icrc_is_valid(frame));
                       });
    }
  };
}

template <Ahead kAhead>
Work slot_arithmetic_with(const FramePlaces& places, op::ReduceKernel kernel) {
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
             kPayload, {});
      const std::uint32_t result = wire::crc32(0, out);
      for (unsigned rank = 0; rank < groups.ranks; ++rank) {
        icrcs[rank] ^= result;
      }
      keep(icrcs.data());
    }
  };
}

template <Ahead kAhead>
Work isal_crc_with(const FramePlaces& places) {
  return [&places](const Groups& groups) {
    std::uint32_t seen = 0;
    for (std::size_t group = 0; group < groups.groups; ++group) {
      for_each<kAhead>(places.frames() + groups.first + group * groups.stride, groups.ranks,
                       [&seen](const frame::Frame& frame, unsigned /*rank*/) {
                         seen ^= crc32_gzip_refl(0, frame.data + kEthernetBytes,
                                                 frame.length - kEthernetBytes - kIcrcBytes);
                       });
    }
    keep(&seen);
  };
}

double median_of(std::array<double, kTurns> rates) {
  std::nth_element(rates.begin(), rates.begin() + kTurns / 2, rates.end());
  return rates[kTurns / 2];
}

} // namespace

std::string_view name_of(From from) {
  return from == From::cache ? "cache" : "memory";
}

Work reading(const FramePlaces& places) {
  return reduction(places, read_payloads);
}

Work reduction(const FramePlaces& places, op::ReduceKernel kernel) {
  return [&places, kernel](const Groups& groups) {
    alignas(64) std::array<std::byte, kPayload> out;
    for (std::size_t group = 0; group < groups.groups; ++group) {
      kernel(out.data(), places.payloads() + groups.first + group * groups.stride, groups.ranks,
             kPayload, {});
      keep(out.data());
    }
  };
}

Work addition_of_quarters(const FramePlaces& places) {
  return reduction(places, add_quarters);
}

Work verification(const FramePlaces& places, Ahead ahead) {
  return ahead == Ahead::nothing ? verification_with<Ahead::nothing>(places)
                                 : verification_with<Ahead::next_frames>(places);
}

Work slot_arithmetic(const FramePlaces& places, op::ReduceKernel kernel, Ahead ahead) {
  return ahead == Ahead::nothing ? slot_arithmetic_with<Ahead::nothing>(places, kernel)
                                 : slot_arithmetic_with<Ahead::next_frames>(places, kernel);
}

Work isal_crc(const FramePlaces& places, Ahead ahead) {
  return ahead == Ahead::nothing ? isal_crc_with<Ahead::nothing>(places)
                                 : isal_crc_with<Ahead::next_frames>(places);
}

Groups Walk::next(unsigned ranks, From from) {
  const std::size_t groups = kSliceBytes / kPayload / ranks;
  if (from == From::cache) {
    return {0, 0, groups, ranks};
  }
  if (at_ + groups * ranks + kFramesAhead > frames_) {
    at_ = 0;
  }
  return {std::exchange(at_, at_ + groups * ranks), ranks, groups, ranks};
}

Medians measured_in_turn(const Rate& first, const Rate& second) {
  std::array<double, kTurns> of_first{};
  std::array<double, kTurns> of_second{};
  for (unsigned turn = 0; turn < kTurns; ++turn) {
    of_first[turn] = first();
    of_second[turn] = second();
  }
  return {median_of(of_first), median_of(of_second)};
}

} // namespace weir::bench
