// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/collective/slice.hpp"
#include "host/transport/transport.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace weir::host {

/// Turns slices into their results, in their order, by messages to the successor and from the
/// predecessor. One per channel. No I/O, no clock.
class Reducer {
 public:
  virtual ~Reducer() = default;

  /// Also while others are on their way.
  virtual void begin(const Slice& slice) = 0;

  /// Whether anything of the slice may have left, or come: of slice `number`, counted from 0 in the
  /// order of begin().
  virtual bool has_begun(std::uint64_t /*number*/) const { return true; }

  /// A slice that has not begun becomes this one: the same call with other buffers.
  virtual void replace(std::uint64_t /*number*/, const Slice& /*slice*/) { assert(false); }

  /// The next message, if one may be sent now.
  virtual std::optional<OutgoingMessage> next() = 0;
  /// A message of the predecessor. Throws Error when it is not the one that is due.
  virtual Arrival accept(const IncomingMessage& message) = 0;
  /// The oldest message under way has been acknowledged.
  virtual void complete() = 0;

  /// Slices whose results are all here and whose messages are all acknowledged, since the
  /// beginning: the caller owns their buffers again.
  virtual std::uint64_t finished() const = 0;
  /// Bytes that are here of the result of the slice after those.
  virtual std::size_t bytes_done() const = 0;
  /// Nothing is on its way, neither slices nor a hello.
  virtual bool is_idle() const = 0;
  /// What it waits for, for an error's text.
  virtual std::string describe() const = 0;
};

} // namespace weir::host
