// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/watcher.hpp"

#include "rpc/messages.hpp"

#include <utility>

namespace weir::rpc {
namespace {

std::uint64_t unix_time_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

} // namespace

Watcher::Watcher(Backend& backend, Order order, Places::Place place, Room room)
    : RepeatedAnswer(order.period), backend_(backend), words_(std::move(order.words)),
      place_(std::move(place)), room_(std::move(room)) {
  begin();
}

void Watcher::fill(v1::Statistics& message) {
  room_.shares.expect_room_for_answer(room_.caller, *backend_.config());
  const report::Report answer = backend_.ask(words_, room_.caller.principal());
  write(answer, *message.mutable_tables());
  message.set_time_ns(unix_time_ns());
  bytes_.emplace(room_.shares.take_answer(room_.caller, bytes_of(message)));
}

void Watcher::give_back(v1::Statistics& message) {
  v1::Statistics().Swap(&message);
  bytes_.reset();
}

} // namespace weir::rpc
