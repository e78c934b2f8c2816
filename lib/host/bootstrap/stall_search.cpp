// SPDX-License-Identifier: BSD-3-Clause
#include "host/bootstrap/stall_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weir::host {

std::string named(const std::vector<std::uint16_t>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

StallSearch::StallSearch(Suspicion suspicion, std::uint16_t world, Deadline deadline)
    : suspicion_(std::move(suspicion)), deadline_(deadline), answers_(world) {}

void StallSearch::note_answer(std::uint16_t rank, std::uint64_t bytes_done) {
  answers_[rank] = bytes_done;
}

bool StallSearch::is_over(Deadline now) const {
  return now >= deadline_ || silent().empty();
}

std::vector<std::uint16_t> StallSearch::silent() const {
  std::vector<std::uint16_t> ranks;
  for (std::uint16_t rank = 0; rank < answers_.size(); ++rank) {
    if (!answers_[rank]) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

/// Ranks that have fewer bytes than the furthest one. All have answered.
std::vector<std::uint16_t> StallSearch::behind() const {
  const std::uint64_t furthest = **std::max_element(answers_.begin(), answers_.end());
  std::vector<std::uint16_t> ranks;
  for (std::uint16_t rank = 0; rank < answers_.size(); ++rank) {
    if (answers_[rank] != furthest) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

Error StallSearch::verdict() const {
  const Error& noticed = suspicion_.error;
  const std::string how =
      fmt::format("rank {} noticed: {}", suspicion_.by, static_cast<const char*>(noticed.what()));
  if (const auto ranks = silent(); !ranks.empty()) {
    return {ErrorCode::timeout, ranks.front(),
            fmt::format("no answer from {}: stopped, or the machine or its network is gone; {}",
                        named(ranks), how)};
  }
  if (suspicion_.kind == Suspicion::Kind::late_entry) {
    return noticed;
  }
  if (const auto ranks = behind(); !ranks.empty()) {
    return {noticed.code(), ranks.front(),
            fmt::format("{} of {} lack results that others have: look at that link; {}",
                        named(ranks), answers_.size(), how)};
  }
  return {noticed.code(), std::nullopt,
          fmt::format("all {} ranks are there and equally far: the switch or a link is gone, or "
                      "the switch was restarted and refuses their packets (its `show drops` says "
                      "so); {}",
                      answers_.size(), how)};
}

} // namespace weir::host
