// SPDX-License-Identifier: BSD-3-Clause
#include "host/control/stall_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

namespace weir::host {

StallSearch::StallSearch(Suspicion suspicion, std::uint16_t world, Deadline deadline)
    : suspicion_(std::move(suspicion)), deadline_(deadline), answers_(world) {
  if (suspicion_.kind == Suspicion::Kind::late) {
    lateness_ = suspicion_.error;
  }
}

void StallSearch::add(const Suspicion& suspicion) {
  if (suspicion.kind > suspicion_.kind) {
    suspicion_ = suspicion;
  }
}

void StallSearch::note_answer(std::uint16_t rank, const Progress& progress) {
  assert(rank < answers_.size());
  answers_[rank] = {.is_there = true, .progress = progress};
}

void StallSearch::excuse(std::uint16_t rank) {
  assert(rank < answers_.size());
  answers_[rank] = {.is_there = true, .is_excused = true};
}

bool StallSearch::is_over(Deadline now) const {
  return now >= deadline_ || std::ranges::all_of(answers_, &Answer::is_there);
}

template <typename Condition>
std::vector<std::uint16_t> StallSearch::ranks_where(Condition condition) const {
  std::vector<std::uint16_t> ranks;
  for (std::uint16_t rank = 0; rank < answers_.size(); ++rank) {
    if (condition(answers_[rank])) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

/// The first call that a rank has made and not done. 0: no rank waits.
std::uint64_t StallSearch::awaited_call() const {
  std::uint64_t first = UINT64_MAX;
  for (const Answer& answer : answers_) {
    if (answer.progress.is_waiting()) {
      first = std::min(first, answer.progress.calls_done + 1);
    }
  }
  return first == UINT64_MAX ? 0 : first;
}

/// The ranks with the fewest results, if others have more. Those that lack only an acknowledgement
/// are not among them: their successor is.
std::vector<std::uint16_t> StallSearch::behind() const {
  const auto how_far = [](const Answer& answer) {
    return answer.is_excused ? std::tuple(UINT64_MAX, UINT64_MAX)
                             : std::tuple(answer.progress.calls_done, answer.progress.bytes_done);
  };
  const auto ends = std::ranges::minmax_element(answers_, {}, how_far);
  const auto least = how_far(*ends.min);
  if (least == how_far(*ends.max)) {
    return {};
  }
  return ranks_where([&](const Answer& answer) { return how_far(answer) == least; });
}

StallSearch::Outcome StallSearch::outcome() const {
  const auto silent = ranks_where([](const Answer& answer) { return !answer.is_there; });
  if (!silent.empty()) {
    return {.error = Error(ErrorCode::timeout, silent.front(),
                           fmt::format("no answer from {}: stopped, or the machine or its network "
                                       "is gone; {}",
                                       named(silent), noticed()))};
  }
  const std::uint64_t call = awaited_call();
  const auto late = ranks_where([&](const Answer& answer) {
    return !answer.is_excused && answer.progress.calls_made < call;
  });
  return late.empty() ? outcome_with_all(call) : outcome_without(late, call);
}

/// These ranks have not made the call.
StallSearch::Outcome StallSearch::outcome_without(const std::vector<std::uint16_t>& late,
                                                  std::uint64_t call) const {
  const std::string who =
      fmt::format("{} {} not made call {}", named(late), late.size() == 1 ? "has" : "have", call);
  if (suspicion_.kind == Suspicion::Kind::broken) {
    return {.error = Error(suspicion_.error.code(), late.front(),
                           fmt::format("{}; {}", who, noticed()))};
  }
  if (lateness_) {
    return {.error = lateness_};
  }
  return {.waits_for = who};
}

/// All ranks have made the call. It may have been a moment ago.
StallSearch::Outcome StallSearch::outcome_with_all(std::uint64_t call) const {
  if (suspicion_.kind == Suspicion::Kind::broken) {
    return {.error = error_about_links()};
  }
  const auto moving = ranks_where([](const Answer& answer) {
    return answer.progress.is_waiting() && !answer.progress.stands_still;
  });
  const bool goes_on = call == 0 || !moving.empty() || suspicion_.kind == Suspicion::Kind::late;
  return goes_on ? Outcome() : Outcome{.error = error_about_links()};
}

Error StallSearch::error_about_links() const {
  const ErrorCode code = suspicion_.error.code();
  if (const auto ranks = behind(); !ranks.empty()) {
    return {code, ranks.front(),
            fmt::format("{} of {} lack results that others have: look at that link; {}",
                        named(ranks), answers_.size(), noticed())};
  }
  return {code, std::nullopt,
          fmt::format("all {} ranks are there and equally far: the switch or a link is gone, or "
                      "the switch was restarted and refuses their packets (its `show drops` says "
                      "so); {}",
                      answers_.size(), noticed())};
}

std::string StallSearch::noticed() const {
  return fmt::format("rank {} noticed: {}", suspicion_.by,
                     static_cast<const char*>(suspicion_.error.what()));
}

} // namespace weir::host
