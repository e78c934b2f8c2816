// SPDX-License-Identifier: BSD-3-Clause
#include "report/reclaims.hpp"

#include "control/switch.hpp"
#include "report/answers.hpp"
#include "text/number.hpp"

#include <fmt/format.h>

#include <string>

namespace weir::report {
namespace {

std::chrono::seconds quiet_of(std::string_view typed) {
  if (typed.empty()) {
    return control::kDefaultQuiet;
  }
  const auto seconds = text::parsed<std::uint32_t>(typed);
  if (!seconds || !control::is_allowed_quiet(std::chrono::seconds(*seconds))) {
    throw UnknownName(
        fmt::format("seconds: found '{}'; allowed: {}", typed, control::kAllowedQuiet));
  }
  return std::chrono::seconds(*seconds);
}

} // namespace

std::chrono::seconds drain_ring(control::Switch& weir, std::string_view ring,
                                std::string_view seconds, const control::Principal& principal) {
  const std::uint32_t id = ring_id(weir, ring);
  const std::chrono::seconds quiet = quiet_of(seconds);
  weir.rings().drain(id, quiet, principal);
  return quiet;
}

} // namespace weir::report
