// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "lab.hpp"

#include <cstdint>

namespace weir::load {

/// One host after another comes to the passers' port, sends as fast as it can and is gone in the
/// middle of it. Returns the number of frames that they put on the wire.
std::uint64_t let_pass(const Lab& lab, unsigned passers);

} // namespace weir::load
