// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/switch_reducer.hpp"

namespace weir::host {
namespace {

// From one segment to the next.
constexpr std::uint16_t kSameRoot = 0;
constexpr std::uint16_t kNextRank = 1;

} // namespace

void SwitchReducer::begin(const Slice& slice) {
  under_way_.push_back({.slice = slice});
  window_.begin({.collective = slice.collective,
                 .type = slice.type,
                 .operation = slice.operation,
                 .root = slice.root,
                 .root_step = slice.kind == Segments::of_each_rank ? kNextRank : kSameRoot,
                 .segments = slice.segments,
                 .segment_bytes = slice.segment_bytes});
  forget_finished();
}

std::optional<OutgoingMessage> SwitchReducer::next() {
  const std::optional<MessageWindow::Outgoing> message = window_.next();
  if (!message) {
    return std::nullopt;
  }
  OutgoingMessage outgoing{
      .number = message->number, .header = message->header, .result = place_of(message->piece)};
  if (!message->table.empty()) {
    outgoing.data = message->table;
  }
  add_data(outgoing, message->piece);
  return outgoing;
}

/// The window lets message m go when m-2N is acknowledged.
void SwitchReducer::add_data(OutgoingMessage& message, const MessageWindow::Piece& piece) {
  const auto& [work, segment, offset, bytes] = piece;
  if (bytes == 0) {
    return;
  }
  const Slice& slice = progress(work).slice;
  message.result_owner = slice.out_owner;
  if (slice.is_in_one_place(offset, bytes)) {
    message.data = slice.source(segment, offset, bytes);
    message.data_owner = slice.source_owner(segment);
    return;
  }
  std::vector<std::uint8_t>& gathered = gathered_[message.number % gathered_.size()];
  gathered.resize(bytes);
  slice.list->gather(slice.list_begin + offset, gathered);
  message.data = gathered;
}

std::span<std::uint8_t> SwitchReducer::place_of(const MessageWindow::Piece& piece) {
  if (piece.bytes == 0) {
    return {};
  }
  return progress(piece.work).slice.target(piece.segment, piece.offset, piece.bytes);
}

Arrival SwitchReducer::accept(const IncomingMessage& message) {
  const std::uint64_t arrived_before = window_.arrived();
  const MessageWindow::Piece piece = window_.accept(message);
  if (piece.bytes != 0) {
    store(piece, message.data);
  }
  forget_finished();
  return window_.arrived() == arrived_before ? Arrival::ignored : Arrival::taken;
}

void SwitchReducer::store(const MessageWindow::Piece& piece, std::span<const std::uint8_t> result) {
  Progress& progress = this->progress(piece.work);
  if (place_of(piece).data() != result.data()) { // else the transport has put it there
    progress.slice.store(piece.segment, piece.offset, result);
  }
  progress.bytes_done += piece.bytes;
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
