// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/frame.hpp"
#include "frame/instant.hpp"
#include "weir/reasons.hpp"

#include <cstdint>

namespace weir::region {

class Region;

/// Where a region's frames go. Each frame that a region was given ends in one of consume() and
/// drop(), each that it made in send().
class Outlet {
 public:
  virtual ~Outlet() = default;

  /// An empty frame with room for so many bytes; nullptr when there is none.
  virtual frame::Frame* originate(std::uint32_t bytes) = 0;
  virtual void send(frame::Frame& frame, const Region& from, std::uint16_t port,
                    frame::Instant now) = 0;
  virtual void consume(frame::Frame& frame) = 0;
  virtual void drop(frame::Frame& frame, DropReason reason, frame::Instant now) = 0;
};

} // namespace weir::region
