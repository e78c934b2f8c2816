// SPDX-License-Identifier: BSD-3-Clause
#include "manager/gate_log.hpp"

#include <fmt/format.h>

namespace weir::manager {
namespace {

constexpr std::chrono::seconds kPause{1};
constexpr std::chrono::seconds kPauseOfSame{60}; // a gate that does not start is tried each second

} // namespace

std::optional<std::string> GateLog::note(gate::Incident incident, const std::string& sentence,
                                         Clock::time_point now) {
  const auto place = static_cast<std::size_t>(incident);
  const bool is_complaint = incident == gate::Incident::refused;
  if (!is_complaint) {
    ++counts_.at(place);
  }
  std::optional<Last>& last = last_.at(place);
  const bool is_same = last && last->sentence == sentence;
  const auto pause = is_complaint && is_same ? kPauseOfSame : kPause;
  if (last && (is_same || !is_complaint) && now - last->at < pause) {
    ++last->left_out;
    return std::nullopt;
  }
  const std::uint64_t left_out = last && is_same ? last->left_out : 0;
  last = {sentence, now, 0};
  return left_out == 0 ? sentence : fmt::format("{}; {} times more before", sentence, left_out);
}

} // namespace weir::manager
