// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/message_window.hpp"

#include "host/base/error.hpp"
#include "wire/sum_stamp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace weir::host {

MessageWindow::MessageWindow(const WindowConfig& config)
    : config_(config), headers_(std::size_t{2} * config.window) {}

MessageWindow::State MessageWindow::state() const {
  if (is_greeting_) {
    return State::greeting;
  }
  return entries_.empty() ? State::idle : State::working;
}

void MessageWindow::begin(const Work& work) {
  assert(!is_greeting_);
  const std::size_t capacity = config_.data_bytes();
  const std::uint64_t per_segment =
      work.collective == Collective::barrier ? 1 : (work.segment_bytes + capacity - 1) / capacity;
  const std::uint64_t first = end_;
  end_ += work.segments * per_segment;
  entries_.push_back({work, per_segment, first, end_});
  settle();
}

std::optional<MessageWindow::Outgoing> MessageWindow::next() {
  // The header's place is free once the message 2N before is acknowledged.
  if (next_ == end_ || next_ >= arrived_ + config_.window ||
      next_ >= completed_ + headers_.size()) {
    return std::nullopt;
  }
  const std::uint64_t number = next_++;
  Piece piece;
  std::span<const std::uint8_t> table;
  if (is_greeting_) {
    write_hello();
    table = config_.operators.bytes();
  } else {
    skip_to(number, sending_);
    piece = piece_of(number, sending_);
    write_header(number, piece);
  }
  assert(next_ <= end_ && next_ <= arrived_ + config_.window);
  const auto* header = reinterpret_cast<const std::uint8_t*>(&headers_[slot_of(number)]);
  return Outgoing{number, {header, kInaHeaderBytes}, piece, table};
}

/// Moves on to the work that has the message. Works without messages have none.
void MessageWindow::skip_to(std::uint64_t number, std::uint64_t& work) const {
  work = std::max(work, finished_);
  while (entry(work).end <= number) {
    ++work;
  }
}

MessageWindow::Piece MessageWindow::piece_of(std::uint64_t number, std::uint64_t work) const {
  const Entry& entry = this->entry(work);
  assert(entry.first <= number && number < entry.end);
  const std::uint64_t message = number - entry.first;
  const auto segment = static_cast<std::uint16_t>(message / entry.messages_per_segment);
  const std::size_t offset =
      static_cast<std::size_t>(message % entry.messages_per_segment) * config_.data_bytes();
  return {work, segment, offset, std::min(config_.data_bytes(), entry.work.segment_bytes - offset)};
}

wire::InaHeader MessageWindow::common_header(std::uint64_t number) const {
  wire::InaHeader header{};
  header.magic.set(kInaMagic);
  header.version = config_.operators.entries().empty() ? kInaVersion : kInaVersionWithOperators;
  header.ring_id.set(config_.ring);
  header.rank.set(config_.rank);
  header.world.set(config_.world);
  header.message_id.set(static_cast<std::uint32_t>(number));
  header.epoch.set(config_.epoch);
  return header;
}

void MessageWindow::write_hello() {
  wire::InaHeader header = common_header(0);
  header.session.set(config_.nonce);
  header.collective = static_cast<std::uint8_t>(Collective::hello);
  header.message_length.set(static_cast<std::uint32_t>(config_.operators.bytes().size()));
  header.ack_timeout = config_.ack_timeout;
  header.qp.set(config_.qp);
  headers_[0] = header;
}

void MessageWindow::write_header(std::uint64_t number, const Piece& piece) {
  const Work& work = entry(piece.work).work;
  wire::InaHeader header = common_header(number);
  header.operation = static_cast<std::uint8_t>(work.operation);
  header.data_type = static_cast<std::uint8_t>(work.type);
  header.message_length.set(static_cast<std::uint32_t>(piece.bytes));
  header.session.set(session_);
  header.collective = static_cast<std::uint8_t>(work.collective);
  header.root.set(static_cast<std::uint16_t>(work.root + piece.segment * work.root_step));
  headers_[slot_of(number)] = header;
}

MessageWindow::Piece MessageWindow::accept(const IncomingMessage& message) {
  const std::uint64_t number = arrived_;
  const auto fail = [&](ErrorCode code, const std::string& text) {
    throw Error(code, config_.predecessor(),
                fmt::format("ring {}: message {} from rank {}: {}", config_.ring, number,
                            config_.predecessor(), text));
  };
  if (message.size() < kInaHeaderBytes) {
    fail(ErrorCode::transport_failure,
         fmt::format("found {} bytes; at least the {} of the header are due", message.size(),
                     kInaHeaderBytes));
  }
  const auto& header = wire::view_as<wire::InaHeader>(message.header.data());
  if (header.magic.get() != kInaMagic || message.immediate != static_cast<std::uint32_t>(number)) {
    fail(ErrorCode::transport_failure,
         fmt::format("found magic {:#010x} and immediate {}; due are {:#010x} and {}",
                     header.magic.get(), message.immediate, kInaMagic,
                     static_cast<std::uint32_t>(number)));
  }
  if (is_greeting_ && wire::nonce_of(header) != config_.nonce) {
    ++others_hellos_;
    return {};
  }
  if ((header.flags & kInaFlagResult) == 0) {
    if (is_greeting_) {
      return take_plain_hello();
    }
    fail(ErrorCode::not_aggregated, explain_plain());
  }
  if (number >= next_) {
    fail(ErrorCode::transport_failure, "a result of a message that this rank has not sent");
  }
  check_result(header, number);
  Piece piece;
  if (!is_greeting_) {
    skip_to(number, receiving_);
    piece = piece_of(number, receiving_);
  }
  const std::size_t due =
      kInaHeaderBytes + (is_greeting_ ? config_.operators.bytes().size() : piece.bytes);
  if (message.size() != due) {
    fail(ErrorCode::transport_failure,
         fmt::format("found {} bytes; {} are due", message.size(), due));
  }
  if (is_greeting_) {
    take_table(message.data);
    session_ = header.session.get();
    answer_ = Answer::aggregated;
  }
  ++arrived_;
  settle();
  return piece;
}

/// What the hello's result says of our operators: each is there, or its entry is empty.
void MessageWindow::take_table(std::span<const std::uint8_t> bytes) {
  const wire::OperatorTable answered(bytes);
  for (std::size_t i = 0; i < answered.entries().size(); ++i) {
    const wire::OperatorEntry& found = answered.entries()[i];
    if (found != config_.operators.entries()[i] && !found.is_empty()) {
      throw Error(
          ErrorCode::mismatch, config_.predecessor(),
          fmt::format("ring {}: the hello's result has another operator {} than this rank's",
                      config_.ring, i));
    }
    operators_[i] = !found.is_empty();
  }
}

/// The predecessor's hello may come before our own has left.
MessageWindow::Piece MessageWindow::take_plain_hello() {
  answer_ = Answer::plain;
  ++arrived_;
  settle();
  return {};
}

std::string MessageWindow::explain_plain() const {
  return fmt::format("no RESULT flag: nobody on the path aggregates ring {} (is a Weir switch on "
                     "the path, does its configuration name this ring, its {} members and their "
                     "addresses in rank order, and is the job's epoch {} larger than the last "
                     "one's?)",
                     config_.ring, config_.world, config_.epoch);
}

std::string MessageWindow::explain_silence() const {
  return fmt::format("`show ring {}` at the switch, and at those above it in a tree, tells whose "
                     "hello is missing or refused; if an earlier job had a larger epoch "
                     "(old_epoch; this job's is {}), `reset ring {}` ends that job",
                     config_.ring, config_.epoch, config_.ring);
}

void MessageWindow::check_result(const wire::InaHeader& found, std::uint64_t number) const {
  const wire::InaHeader& own = headers_[slot_of(number)];
  const auto same = [&](std::string_view field, std::uint64_t have, std::uint64_t due) {
    if (have != due) {
      throw Error(ErrorCode::mismatch, config_.predecessor(),
                  fmt::format("ring {}: result {} from rank {}: found {} {}; due is {}",
                              config_.ring, number, config_.predecessor(), field, have, due));
    }
  };
  same("version", found.version, own.version);
  same("op", found.operation, own.operation);
  same("dtype", found.data_type, own.data_type);
  same("flags", found.flags, kInaFlagResult);
  same("ring_id", found.ring_id.get(), own.ring_id.get());
  same("rank", found.rank.get(), config_.predecessor());
  same("world", found.world.get(), own.world.get());
  if (!is_greeting_) {
    same("msg_id", found.message_id.get(), own.message_id.get());
  }
  same("msg_len", found.message_length.get(), own.message_length.get());
  same("epoch", found.epoch.get(), own.epoch.get());
  same("collective", found.collective, own.collective);
  same("root", found.root.get(), own.root.get());
  if (!is_greeting_) {
    same("session", found.session.get(), session_);
  } else if (found.session.get() == 0) {
    throw Error(ErrorCode::mismatch, config_.predecessor(),
                fmt::format("ring {}: the hello's result has session 0; the switch's is never 0",
                            config_.ring));
  }
}

void MessageWindow::complete() {
  assert(completed_ < next_);
  ++completed_;
  settle();
}

/// Ends the hello or works whose results are all here and whose messages are all acknowledged.
void MessageWindow::settle() {
  const std::uint64_t settled = std::min(arrived_, completed_);
  if (is_greeting_) {
    is_greeting_ = settled == 0;
    return;
  }
  while (!entries_.empty() && entries_.front().end <= settled) {
    entries_.pop_front();
    ++finished_;
  }
}

std::string MessageWindow::describe() const {
  if (is_greeting_) {
    return fmt::format("ring {}: the hello is {}{}", config_.ring,
                       arrived_ == 0 ? "unanswered" : "answered but not acknowledged",
                       others_hellos_ == 0 ? "" : ", but hellos of other runs came");
  }
  return fmt::format("ring {}: messages {} to {} under way, results in up to {}, acknowledged up "
                     "to {}",
                     config_.ring, std::min(arrived_, completed_), next_ - 1, arrived_ - 1,
                     completed_ - 1);
}

} // namespace weir::host
