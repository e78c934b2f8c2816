// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/capture_tap.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>

namespace weir::control {

/// A capture is asked for while another one runs. what() names that one.
class CaptureRuns : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a capture takes, and where to.
struct CaptureOrder {
  std::string file; // must not exist
  std::string what; // "ring 1": for people
  frame::CaptureFilter filter;
  std::uint64_t count = 0; // it ends after so many packets
};

} // namespace weir::control
