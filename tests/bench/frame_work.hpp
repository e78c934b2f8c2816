// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Work on the payloads of FramePlaces: reading, reducing and checking them.

#include "frame_places.hpp"
#include "op/kernel.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace weir::bench {

enum class From : std::uint8_t { cache, memory };

std::string_view name_of(From from);

/// The frames of one piece of work: `groups` times `ranks` in a row, `stride` apart.
struct Groups {
  std::size_t first = 0;
  std::size_t stride = 0;
  std::size_t groups = 0;
  unsigned ranks = 0;

  double payload_bytes() const {
    return static_cast<double>(groups) * ranks * FramePlaces::kPayload;
  }
};

using Work = std::function<void(const Groups&)>;

/// Whether the frame eight places later is loaded during the work on the present one, as the switch
/// does. The CPU loads the rest of a payload once it is being read, but it cannot guess the next
/// payload.
enum class Ahead : std::uint8_t { nothing, next_frames };

/// Reads the payloads: the bound of all other work.
Work reading(const FramePlaces& places);

Work reduction(const FramePlaces& places, op::ReduceKernel kernel);

/// What no sum of f8 by way of f32 can leave out: of each vector of payload four vectors of f32, by
/// one shift or mask each, and four additions. No table, no sign, no rounding.
Work addition_of_quarters(const FramePlaces& places);

/// Checks every frame's ICRC.
Work verification(const FramePlaces& places, Ahead ahead);

/// The cost of a slot without its bookkeeping: every frame is checked as it comes, the fold when
/// the last is there, an ICRC for each result (stored elsewhere, because the frames are used
/// again).
Work slot_arithmetic(const FramePlaces& places, op::ReduceKernel kernel, Ahead ahead);

/// ISA-L's CRC-32 over the bytes of each frame that its ICRC covers as they are: all but the
/// Ethernet header and the ICRC.
Work isal_crc(const FramePlaces& places, Ahead ahead);

/// Goes through the frames, so that the next one from memory is the one that was read longest ago.
class Walk {
 public:
  explicit Walk(std::size_t frames) : frames_(frames) {}

  /// Long enough for the clock. Short enough that a disturbance of the work also disturbs what is
  /// measured next to it.
  Groups next(unsigned ranks, From from);

 private:
  std::size_t frames_;
  std::size_t at_ = 0;
};

/// Stops the compiler from removing stores that are not read.
inline void keep(const void* memory) {
  __asm__ volatile("" : : "g"(memory) : "memory");
}

/// Works, and returns bytes of payload a second.
using Rate = std::function<double()>;

struct Medians {
  double first = 0;
  double second = 0;
};

/// Of several measurements of the two in turn. Medians, because a disturbed measurement shows
/// nothing.
Medians measured_in_turn(const Rate& first, const Rate& second);

} // namespace weir::bench
