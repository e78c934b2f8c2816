// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>

namespace weir::host {

/// How a device took the wish to hand over short messages with their requests.
struct InlineTrial {
  std::uint32_t bytes = 0; // of the last attempt
  int error = 0;           // its errno; 0: it went well
};

/// Attempts `wanted` bytes, then half of them and so on, none at last. `attempt` returns 0 or an
/// errno. Ends at the first errno that does not mean that too much was asked.
InlineTrial try_inline(std::uint32_t wanted,
                       const std::function<int(std::uint32_t bytes)>& attempt);

} // namespace weir::host
