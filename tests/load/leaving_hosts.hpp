// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "lab.hpp"

#include <cstdint>

namespace weir::load {

/// One host after another connects to the leaving hosts' port, sends as fast as it can and leaves
/// in the middle of it. Returns the number of frames that they sent.
std::uint64_t let_come_and_go(const Lab& lab, unsigned hosts);

} // namespace weir::load
