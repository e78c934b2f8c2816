// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/event_waiter.hpp"
#include "host/transport/queue_pair_filter.hpp"
#include "wire/address.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::host {

/// Takes frames as they come in. The caller owns the bytes again after the call.
class FrameReader {
 public:
  virtual ~FrameReader() = default;
  virtual void accept(std::span<std::uint8_t> frame) = 0;
};

/// Raw Ethernet frames in and out, without FCS, in bursts. One thread at a time. Throws Error
/// when the device is gone. A frame that is lost on the way is no error.
class FrameIo {
 public:
  virtual ~FrameIo() = default;

  virtual wire::MacAddress mac() const = 0;

  /// False where the device knows that nothing is at its other end.
  virtual bool has_link() const { return true; }

  /// Packets for other queue pairs, and what is no RoCE, need not come any more. It may be called
  /// again, with others. Most devices have no other user whose frames would come.
  virtual void keep_only(QueuePairRange queue_pairs) { static_cast<void>(queue_pairs); }

  /// Passes what has come, at most a burst, to `reader`. Returns the number of frames.
  virtual std::size_t receive(FrameReader& reader) = 0;

  /// Room for the next frame to send, up to `bytes` long. Empty when the device is full. Room that
  /// was not committed is returned again.
  virtual std::span<std::uint8_t> reserve(std::size_t bytes) = 0;
  virtual void commit(std::size_t frame_bytes) = 0;
  /// Sends the committed frames, as many as the device takes.
  virtual void flush() = 0;

  /// Readable when a frame has come; kNoDescriptor: only receive() can tell.
  virtual int descriptor() const = 0;
};

} // namespace weir::host
