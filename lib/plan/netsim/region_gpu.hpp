// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "netsim/region_run.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <numeric>
#include <vector>

namespace weir::netsim {

/// What a GPU injects: a range of addresses, plane by plane, as its waves allow (Klenk et al.
/// §IV-F1, Fig. 6). A wave may start while fewer than settings.waves are outstanding. `stride`
/// gives each GPU its own order of the addresses of a wave; 0: ascending.
class WaveControl {
 public:
  WaveControl(const RegionSettings& settings, std::uint32_t planes, std::uint32_t first,
              std::uint32_t end, std::uint64_t stride)
      : first_(first), end_(end), planes_(planes), stride_(stride),
        wave_packets_(std::max(1U, settings.wave_bytes / settings.payload_bytes)),
        span_(settings.waves == 0 ? std::max(1U, end - first) : wave_packets_), next_(planes),
        reading_(planes) {
    const std::uint32_t waves = (end - first + wave_packets_ - 1) / wave_packets_;
    credited_ = settings.waves == 0 ? waves : std::min(waves, settings.waves);
    missing_.assign(waves, wave_packets_);
    if (waves != 0) {
      missing_.back() = end - first - (waves - 1) * wave_packets_;
    }
    for (std::uint32_t plane = 0; plane < planes; ++plane) {
      next_[plane] = first + (plane + planes - first % planes) % planes;
    }
  }

  /// Whether an address of that plane may be injected now.
  bool has_next(std::uint32_t plane) const {
    return next_[plane] < end_ && (next_[plane] - first_) / wave_packets_ < credited_;
  }

  std::uint32_t take_next(std::uint32_t plane) {
    const std::uint32_t address = next_[plane];
    next_[plane] += planes_;
    return shuffled(address);
  }

  bool owns(std::uint32_t address) const { return address >= first_ && address < end_; }

  enum class Progress : std::uint8_t { within_wave, wave_credited };

  /// An address has got what it waited for.
  Progress complete(std::uint32_t address) {
    assert(owns(address) && missing_[(address - first_) / wave_packets_] != 0);
    if (--missing_[(address - first_) / wave_packets_] != 0 || credited_ == missing_.size()) {
      return Progress::within_wave;
    }
    ++credited_;
    return Progress::wave_credited;
  }

  /// Reads or requests under way on a plane.
  std::uint32_t& reading(std::uint32_t plane) { return reading_[plane]; }

 private:
  /// Maps an address to another one of the same plane and span, one to one. Stride 0: to itself.
  std::uint32_t shuffled(std::uint32_t address) const {
    if (stride_ == 0) {
      return address;
    }
    const std::uint32_t begin = first_ + (address - first_) / span_ * span_;
    const std::uint32_t end = std::min(end_, begin + span_);
    const std::uint32_t lowest = begin + (address - begin) % planes_;
    const std::uint64_t count = (end - lowest + planes_ - 1) / planes_;
    std::uint64_t stride = stride_ % count;
    while (std::gcd(stride, count) != 1) {
      stride = (stride + 1) % count;
    }
    const std::uint64_t place = (address - lowest) / planes_;
    return lowest + static_cast<std::uint32_t>((place * stride + stride_) % count) * planes_;
  }

  std::uint32_t first_;
  std::uint32_t end_;
  std::uint32_t planes_;
  std::uint64_t stride_;
  std::uint32_t wave_packets_;
  std::uint32_t span_;                 // number of packets that are shuffled together
  std::uint32_t credited_ = 0;         // waves that may start, from the first
  std::vector<std::uint32_t> missing_; // by wave
  std::vector<std::uint32_t> next_;    // by plane
  std::vector<std::uint32_t> reading_;
};

} // namespace weir::netsim
