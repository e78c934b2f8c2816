// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/switch_reducer.hpp"

namespace weir::host {

void SwitchReducer::begin(const Slice& slice) {
  slice_ = slice;
  bytes_done_ = 0;
  window_.begin({.collective = slice.collective,
                 .type = slice.type,
                 .operation = slice.operation,
                 .root = slice.root,
                 .segments = slice.segments,
                 .segment_bytes = slice.segment_bytes});
}

std::optional<OutgoingMessage> SwitchReducer::next() {
  const std::optional<MessageWindow::Outgoing> message = window_.next();
  if (!message) {
    return std::nullopt;
  }
  const auto& [segment, offset, bytes] = message->piece;
  return OutgoingMessage{message->number, message->header, slice_.source(segment, offset, bytes)};
}

void SwitchReducer::accept(std::uint32_t immediate, std::span<const std::uint8_t> message) {
  const MessageWindow::Piece piece = window_.accept(immediate, message);
  if (piece.bytes != 0) {
    slice_.store(piece.segment, piece.offset, message.subspan(kInaHeaderBytes, piece.bytes));
  }
  bytes_done_ += piece.bytes;
}

} // namespace weir::host
