// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "weir/ina.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::host {

/// Whose memory bytes are in. Only callers' memory is registered. The library's own may have the
/// addresses of memory that a caller has freed and not released, so it is never taken for such.
enum class Owner : std::uint8_t { library, caller };

/// One outgoing message. Its bytes must stay unchanged until it is completed. Exception: an
/// arriving result may overwrite its data in place, because the switch never reads a repeat of
/// those (docs/protocol.md §4).
struct OutgoingMessage {
  std::uint64_t number = 0; // 0, 1, 2, … on its channel; determines immediate and inbox slot
  std::span<const std::uint8_t> header;
  std::span<const std::uint8_t> data;
  /// Where the data of the incoming message with the same number belong, if they lie in one place.
  /// A transport may store them there. The message then has as many bytes, or ends the job.
  std::span<std::uint8_t> result = {};
  Owner data_owner = Owner::library;
  Owner result_owner = Owner::library;
};

/// One message of the predecessor.
struct IncomingMessage {
  std::uint32_t immediate = 0;
  std::span<const std::uint8_t> header; // kInaHeaderBytes, unless the whole message has fewer
  std::span<const std::uint8_t> data;   // in OutgoingMessage::result, or in the transport's memory

  std::size_t size() const { return header.size() + data.size(); }
};

/// A message whose header and data lie one after the other.
inline IncomingMessage message_in_one_piece(std::uint32_t immediate,
                                            std::span<const std::uint8_t> bytes) {
  const std::size_t header_bytes = std::min(bytes.size(), kInaHeaderBytes);
  return {immediate, bytes.first(header_bytes), bytes.subspan(header_bytes)};
}

/// What became of an incoming message.
enum class Arrival : std::uint8_t {
  taken,
  ignored, // it was another one's: the message that is due still comes
};

} // namespace weir::host
