// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "net/request_shares.hpp"
#include "rpc/caller.hpp"
#include "rpc/places.hpp"

#include <array>

namespace weir::rpc {

/// Each may stop the lcores for some microseconds.
inline constexpr double kRequestsPerSecond = 200;
inline constexpr std::size_t kMostWatchers = 32;
inline constexpr std::size_t kMostHolders = 256;
/// Bytes that answers take until they are on their way.
inline constexpr std::size_t kMostAnswerBytes = std::size_t{64} << 20;

/// What the service has for its callers. Each kind has its own, and in a kind each name has a part,
/// so that whoever floods takes from himself. Any thread may use it.
class CallerShares {
 public:
  /// Throws TooMany when the caller's part of this second is used up.
  void count_requests(const Caller& caller, int count);

  /// Each throws TooMany when the caller has his part.
  Places::Place take_watcher(const Caller& caller, const config::Config& config);
  Places::Place take_held_ring(const Caller& caller, const config::Config& config);
  /// Throws TooMany when the caller has his part of bytes in answers that he has not read. Before
  /// the work for a further one, so that nothing is done whose answer is refused.
  void expect_room_for_answer(const Caller& caller, const config::Config& config);
  /// For an answer that is there, until its caller has it.
  Places::Place take_answer(const Caller& caller, std::size_t bytes);

 private:
  struct Share {
    net::RequestShares requests{kRequestsPerSecond};
    Places watchers{kMostWatchers};
    Places held_rings{kMostHolders};
    Places answer_bytes{kMostAnswerBytes};
  };

  Share& share_of(const Caller& caller) { return shares_[static_cast<std::size_t>(caller.kind)]; }

  std::array<Share, kCallerKinds> shares_;
};

} // namespace weir::rpc
