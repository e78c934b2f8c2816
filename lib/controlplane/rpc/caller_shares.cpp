// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/caller_shares.hpp"

#include "rpc/too_many.hpp"

#include <fmt/format.h>

#include <string_view>

namespace weir::rpc {
namespace {

Places::Place take(Places& places, std::string_view what, const Caller& caller,
                   const config::Config& config) {
  auto place = places.take(caller.name, names_of(caller.kind, config));
  if (!place) {
    throw TooMany(fmt::format("found as many {} as this caller may have at once; allowed: one more "
                              "when one has gone",
                              what));
  }
  return std::move(*place);
}

} // namespace

void CallerShares::count_requests(const Caller& caller, int count) {
  const auto now = net::RequestShares::Clock::now();
  for (; count > 0; --count) {
    if (!share_of(caller).requests.lets_pass(caller.name, now)) {
      throw TooMany(fmt::format("found more than this caller's part of {} requests in a second; "
                                "allowed: the same a little later",
                                kRequestsPerSecond));
    }
  }
}

Places::Place CallerShares::take_watcher(const Caller& caller, const config::Config& config) {
  return take(share_of(caller).watchers, "watchers", caller, config);
}

Places::Place CallerShares::take_held_ring(const Caller& caller, const config::Config& config) {
  return take(share_of(caller).held_rings, "held rings", caller, config);
}

void CallerShares::expect_room_for_answer(const Caller& caller, const config::Config& config) {
  if (!share_of(caller).answer_bytes.has_room(caller.name, names_of(caller.kind, config))) {
    throw TooMany(
        fmt::format("found this caller's part of {} MiB full of answers that he has not "
                    "read; allowed: read these first, or end the client that does not read",
                    kMostAnswerBytes >> 20U));
  }
}

Places::Place CallerShares::take_answer(const Caller& caller, std::size_t bytes) {
  return share_of(caller).answer_bytes.take_some(caller.name, bytes);
}

} // namespace weir::rpc
