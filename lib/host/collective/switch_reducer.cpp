// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/switch_reducer.hpp"

namespace weir::host {

void SwitchReducer::begin(const Slice& slice) {
  under_way_.push_back({.slice = slice});
  window_.begin({.collective = slice.collective,
                 .type = slice.type,
                 .operation = slice.operation,
                 .root = slice.root,
                 .segments = slice.segments,
                 .segment_bytes = slice.segment_bytes});
  forget_finished();
}

std::optional<OutgoingMessage> SwitchReducer::next() {
  const std::optional<MessageWindow::Outgoing> message = window_.next();
  if (!message) {
    return std::nullopt;
  }
  const auto& [work, segment, offset, bytes] = message->piece;
  const std::span<const std::uint8_t> data =
      bytes == 0 ? std::span<const std::uint8_t>()
                 : progress(work).slice.source(segment, offset, bytes);
  return OutgoingMessage{message->number, message->header, data};
}

void SwitchReducer::accept(std::uint32_t immediate, std::span<const std::uint8_t> message) {
  const MessageWindow::Piece piece = window_.accept(immediate, message);
  if (piece.bytes != 0) {
    Progress& progress = this->progress(piece.work);
    progress.slice.store(piece.segment, piece.offset,
                         message.subspan(kInaHeaderBytes, piece.bytes));
    progress.bytes_done += piece.bytes;
  }
  forget_finished();
}

void SwitchReducer::complete() {
  window_.complete();
  forget_finished();
}

void SwitchReducer::forget_finished() {
  for (; forgotten_ < window_.finished(); ++forgotten_) {
    under_way_.pop_front();
  }
}

} // namespace weir::host
