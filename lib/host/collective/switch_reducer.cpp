// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/switch_reducer.hpp"

#include <cstring>

namespace weir::host {

void SwitchReducer::begin(const Slice& slice) {
  slice_ = slice;
  bytes_done_ = 0;
  window_.begin(slice.bytes, slice.type, slice.operation);
}

std::optional<OutgoingMessage> SwitchReducer::next() {
  const std::optional<MessageWindow::Outgoing> message = window_.next();
  if (!message) {
    return std::nullopt;
  }
  const std::span<const std::uint8_t> data(slice_.in, slice_.bytes);
  return OutgoingMessage{message->number, message->header,
                         data.subspan(message->piece.offset, message->piece.bytes)};
}

void SwitchReducer::accept(std::uint32_t immediate, std::span<const std::uint8_t> message) {
  const MessageWindow::Piece piece = window_.accept(immediate, message);
  if (piece.bytes != 0) {
    std::memcpy(slice_.out + piece.offset, message.data() + kInaHeaderBytes, piece.bytes);
  }
  bytes_done_ += piece.bytes;
}

} // namespace weir::host
