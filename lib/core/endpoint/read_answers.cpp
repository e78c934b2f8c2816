// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/read_answers.hpp"

#include "wire/psn.hpp"

#include <algorithm>
#include <cassert>

namespace weir::endpoint {

ReadAnswers::ReadAnswers(const QueuePairConfig& config)
    : config_(config), reads_(config.max_dest_rd_atomic) {}

/// The oldest is forgotten when another comes. Until it was answered the peer may not send one.
bool ReadAnswers::has_room() const {
  return reads_.size() < config_.max_dest_rd_atomic ||
         (!reads_.empty() && reads_.front().answered == reads_.front().packets);
}

void ReadAnswers::accept(const ReadRequest& request, std::uint32_t message_sequence) {
  assert(has_room());
  if (reads_.size() == config_.max_dest_rd_atomic) {
    reads_.pop(); // with what is due of it: the peer has had it all
  }
  Read read;
  read.request = request;
  read.message_sequence = message_sequence;
  read.packets = static_cast<std::uint32_t>(packets_of(request.bytes, config_.path_mtu));
  reads_.push(read);
  answer(reads_.end() - 1, 0, request.bytes);
}

std::uint64_t ReadAnswers::find(std::uint32_t psn) const {
  const auto holds = [psn](const Read& read) {
    const std::int32_t ahead = wire::psn_distance(read.request.psn, psn);
    return ahead >= 0 && static_cast<std::uint32_t>(ahead) < read.packets;
  };
  for (std::uint64_t number = reads_.end(); number != reads_.first(); --number) {
    if (holds(reads_[number - 1])) {
      return number - 1;
    }
  }
  return reads_.end();
}

bool ReadAnswers::repeat(const ReadRequest& request) {
  const std::uint64_t number = find(request.psn);
  if (number == reads_.end()) {
    return false;
  }
  Read& read = reads_[number];
  const std::uint32_t from = wire::psn_add(request.psn, -std::int64_t{read.request.psn});
  const std::uint32_t skipped = from * config_.path_mtu;
  if (request.remote_key != read.request.remote_key ||
      request.address != read.request.address + skipped ||
      request.bytes > read.request.bytes - skipped || from < read.least) {
    return false;
  }
  read.least = is_soft_roce() ? from : 0;
  answer(number, from, skipped + request.bytes);
  return true;
}

/// `bytes` is the end of what is answered, counted from the READ's first.
void ReadAnswers::answer(std::uint64_t number, std::uint32_t from, std::uint32_t bytes) {
  Read& read = reads_[number];
  read.from = read.next = from;
  read.bytes = bytes;
  read.end = static_cast<std::uint32_t>(packets_of(bytes, config_.path_mtu));
  due_ = std::min(due_, number);
  skip_answered();
}

void ReadAnswers::skip_answered() {
  due_ = std::max(due_, reads_.first());
  while (due_ != reads_.end() && !reads_[due_].is_due()) {
    ++due_;
  }
}

/// A repeat's first answer is FIRST or ONLY as another's, by IBTA. soft_roce goes on with MIDDLE.
wire::Opcode ReadAnswers::opcode_of(const Read& read) const {
  const bool is_first = read.next == (is_soft_roce() ? 0 : read.from);
  const bool is_last = read.next + 1 == read.end;
  if (is_first) {
    return is_last ? wire::Opcode::read_response_only : wire::Opcode::read_response_first;
  }
  return is_last ? wire::Opcode::read_response_last : wire::Opcode::read_response_middle;
}

std::optional<ReadPiece> ReadAnswers::next() const {
  if (due_ == reads_.end()) {
    return std::nullopt;
  }
  const Read& read = reads_[due_];
  const std::uint32_t offset = read.next * config_.path_mtu;
  return ReadPiece{
      .header = {.opcode = opcode_of(read),
                 .psn = wire::psn_add(read.request.psn, read.next),
                 .message_sequence = read.message_sequence},
      .remote_key = read.request.remote_key,
      .address = read.request.address + offset,
      .bytes = std::min(config_.path_mtu, read.bytes - offset),
  };
}

void ReadAnswers::sent() {
  Read& read = reads_[due_];
  ++read.next;
  read.answered = std::max(read.answered, read.next);
  skip_answered();
}

void ReadAnswers::clear() {
  for (; due_ != reads_.end(); ++due_) {
    reads_[due_].next = reads_[due_].end;
  }
}

} // namespace weir::endpoint
