// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/transport/transport.hpp"
#include "host/transport/verbs_nic.hpp"
#include "host/transport/verbs_objects.hpp"

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace weir::host {

/// A queue of completions, and the descriptor by which one waits for them. Throws Error when the
/// device fails. One thread at a time.
class VerbsCompletions {
 public:
  static constexpr std::size_t kBatch = 16;
  using Batch = std::array<ibv_wc, kBatch>;

  /// Call renew() next.
  explicit VerbsCompletions(const VerbsNic& nic);

  /// A new queue of this depth. No queue pair uses the old one any more.
  void renew(std::size_t depth);

  ibv_cq& queue() const { return *queue_; }

  /// Those that are there.
  std::span<const ibv_wc> take(Batch& room);
  /// What take() gave has been dealt with: there may be more.
  void restart();

  /// Readable when take() gives something, of the object's whole life.
  int descriptor() const { return events_->fd; }

  /// Call it before sleeping on the descriptor. False: take() again first.
  bool arm();

 private:
  bool take_events();

  const VerbsNic& nic_;
  verbs::CompletionChannel events_;
  verbs::CompletionQueue queue_;
  Spins spins_;
  bool is_armed_ = false; // the next completion makes an event, if there was none yet
};

/// The status of a completion that is no success, for an error's text.
std::string said_by_device(const ibv_wc& completion);

} // namespace weir::host
