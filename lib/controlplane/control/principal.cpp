// SPDX-License-Identifier: BSD-3-Clause
#include "control/principal.hpp"

#include <fmt/format.h>

namespace weir::control {

void Principal::check_may_order(const ring::RingSpec& ring) const {
  if (!is_operator() && ring.tenant != tenant) {
    throw NotAllowed(fmt::format("ring: found {}, which is not of tenant {}; allowed: its own",
                                 ring.id, tenant));
  }
}

} // namespace weir::control
