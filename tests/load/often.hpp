// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "lcore/happens_before.hpp"

namespace weir::load {

/// How many times to do what a plain build does `times` times. ThreadSanitizer reports two accesses
/// without an order when they happen once, and makes each ten times as long.
constexpr unsigned often(unsigned times) {
  return lcore::kUnderThreadSanitizer ? times / 4 : times;
}

} // namespace weir::load
