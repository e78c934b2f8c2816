// SPDX-License-Identifier: BSD-3-Clause
#include "op/collectives.hpp"

namespace weir::op {
namespace {

constexpr bool rows_stand_at_their_numbers() {
  for (std::size_t number = 0; number < kCollectiveRows.size(); ++number) {
    if (kCollectiveRows[number].collective != static_cast<Collective>(number)) {
      return false;
    }
  }
  return true;
}

static_assert(rows_stand_at_their_numbers());

} // namespace

std::string_view name_of(Who who) {
  switch (who) {
  case Who::nobody:
    return "nobody";
  case Who::root:
    return "the root";
  case Who::everybody:
    return "every child";
  }
  return "?";
}

} // namespace weir::op
