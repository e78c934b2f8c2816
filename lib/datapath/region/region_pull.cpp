// SPDX-License-Identifier: BSD-3-Clause

/// Rules P1 to P6 of docs/protocol.md §13: READs of members, answered by the fold of all members'
/// memory.

#include "endpoint/read_packets.hpp"
#include "region/region.hpp"
#include "wire/headers.hpp"
#include "wire/psn.hpp"
#include "wire/syndrome.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

namespace weir::region {
namespace {

wire::Opcode opcode_of(Part part) {
  constexpr std::array opcodes{wire::Opcode::read_response_first,
                               wire::Opcode::read_response_middle, wire::Opcode::read_response_last,
                               wire::Opcode::read_response_only};
  return opcodes[static_cast<std::size_t>(part)];
}

/// Of a READ of one packet. It ends what it answers, so an AETH is before its payload.
bool is_of_one_packet(const endpoint::ReadResponse& response) {
  return response.ends();
}

const std::byte* payload_of(const frame::Frame& response) {
  return reinterpret_cast<const std::byte*>(response.data + response.packet.bth_offset +
                                            sizeof(wire::Bth) + sizeof(wire::Aeth));
}

} // namespace

/// A READ that is taken. All members are asked after it came (V2).
void Region::pull(frame::Frame& frame, std::uint16_t number, frame::Instant now) {
  const endpoint::ReadRequest request = *endpoint::read_request_in(frame);
  take_back(number, members_[number].asked.accept_read(request, birth_, now.ns));
  outlet_.consume(frame);
  ++counters_.reads;
  is_table_changed_ = true;
  gather(now);
}

/// P4. Entries for later answers go first: they would bar the way.
void Region::repeat_pull(const frame::Frame& frame, std::uint16_t number, frame::Instant now) {
  const auto request = endpoint::read_request_in(frame);
  if (request) {
    take_back(number, members_[number].asked.repeat_read(*request, now.ns));
    gather(now);
  }
}

/// All entries of the reader but for so many; nullopt: none.
void Region::take_back(std::uint16_t reader, std::optional<std::uint32_t> kept) {
  if (kept) {
    table_.take_behind(reader, *kept, [this](frame::Frame& frame) { outlet_.consume(frame); });
    is_table_changed_ = true;
  }
}

/// Gives what entries there are, and asks members for them.
void Region::gather(frame::Instant now) {
  while (std::exchange(is_table_changed_, false)) {
    give_entries(now);
    for (std::uint16_t member = 0; member < members(); ++member) {
      if (table_.has_to_ask(member)) {
        read_from(member, now);
      }
    }
  }
}

/// In turn, and to each reader in the order of its answers: so what must leave next has an entry
/// (P1).
void Region::give_entries(frame::Instant now) {
  for (std::uint16_t idle = 0; idle < members() && !table_.is_full();) {
    const std::uint16_t reader =
        std::exchange(turn_, static_cast<std::uint16_t>(turn_ + 1 == members() ? 0 : turn_ + 1));
    const auto due = members_[reader].asked.due_read(table_.entries_of(reader));
    if (!due) {
      ++idle;
      continue;
    }
    idle = 0;
    table_.give(reader, {due->offset, due->bytes});
    if (due->bytes == 0) {
      answer(reader, now);
    }
  }
}

/// As many READs as the member will remember (P2).
void Region::read_from(std::uint16_t member, frame::Instant now) {
  Requester& told = members_[member].told;
  while (told.has_room_for_read()) {
    const auto asked = table_.ask(member);
    if (!asked) {
      break;
    }
    told.add_read(*asked, now.ns);
  }
  send_copies(member, now);
  expect(members_[member]);
}

/// Without room for it, it is as if it were lost.
void Region::send_read(std::uint16_t target, const Requester::Due& due, frame::Instant now) {
  const Member& member = members_[target];
  frame::Frame* const frame = outlet_.originate(Speech::kReadBytes);
  if (frame == nullptr) {
    return;
  }
  const Piece& piece = member.told.piece_of(due.copy);
  const MemberSpec& spec = spec_.members[target];
  member.speech.read(*frame, {spec.base + piece.offset, spec.key}, piece.bytes, due.psn);
  ++counters_.member_reads;
  counters_.member_reads_again += due.copy.is_again ? 1 : 0;
  outlet_.send(*frame, *this, *member.port, now);
}

/// It belongs to the READ with its PSN, and to no other (P3).
void Region::accept_response(frame::Frame& frame, std::uint16_t number, frame::Instant now) {
  const auto response = endpoint::read_response_in(frame);
  const auto entry =
      response && is_of_one_packet(*response)
          ? members_[number].told.take_response(response->psn, response->payload.size(), now.ns,
                                                [this](const Copy& copy) { count_off(copy); })
          : std::nullopt;
  const auto reader = entry ? table_.hold(*entry, number, frame) : std::nullopt;
  if (!reader) {
    outlet_.drop(frame, DropReason::region_response, now);
  }
  answer_freed(now);
  if (reader && table_.is_ready(*reader)) {
    answer(*reader, now);
  }
  gather(now);
  read_from(number, now);
}

/// Answers one packet if it is due and all members have answered. Results are not kept.
bool Region::answer_read(std::uint16_t reader, frame::Instant now) {
  Responder& asked = members_[reader].asked;
  if (!asked.is_turn_of_read() || !table_.is_ready(reader)) {
    return false;
  }
  const Answer due = *asked.due_read(0);
  const bool is_again = asked.is_answering_again();
  const std::uint32_t message_sequence = asked.answer_read(now.ns);
  respond(reader, due, message_sequence, now);
  counters_.folds_again += is_again ? 1 : 0;
  table_.take_first(reader, [this](frame::Frame& frame) { outlet_.consume(frame); });
  is_table_changed_ = true;
  if (is_again && !asked.is_answering_again()) {
    acknowledge(reader, now); // WRITEs that the member has repeated behind its READs
  }
  return true;
}

/// Without room for it, it is as if it were lost.
void Region::respond(std::uint16_t reader, const Answer& answer, std::uint32_t message_sequence,
                     frame::Instant now) {
  const Member& member = members_[reader];
  ++counters_.folds;
  frame::Frame* const frame =
      outlet_.originate(static_cast<std::uint32_t>(Speech::kMostAnswerBytes + answer.bytes));
  if (frame == nullptr) {
    return;
  }
  std::uint8_t* const payload =
      member.speech.begin_response(*frame, opcode_of(answer.part), answer.psn, message_sequence);
  fold(answer, reader, payload);
  member.speech.end_response(*frame, payload, answer.bytes);
  outlet_.send(*frame, *this, *member.port, now);
}

/// In the order of members (docs/protocol.md §2).
void Region::fold(const Answer& answer, std::uint16_t reader, std::uint8_t* out) {
  if (answer.bytes == 0) {
    return;
  }
  std::ranges::transform(table_.frames_of_first(reader), inputs_.begin(),
                         [](const frame::Frame* frame) { return payload_of(*frame); });
  kernels_[answer.view](reinterpret_cast<std::byte*>(out), inputs_.data(),
                        static_cast<unsigned>(inputs_.size()), answer.bytes, {});
}

/// The rest of a READ does not come, because the region has ended. Soft-RoCE of Linux 6.1 completes
/// a READ with success when a NAK comes between its responses, without the data that it lacks. So
/// the READ is ended by a response of no bytes first, after which that one believes the NAK. To
/// others this response is wrong, and ends the READ by an error.
void Region::cut_off(std::uint16_t reader, std::uint32_t psn, frame::Instant now) {
  Member& member = members_[reader];
  frame::Frame* const frame = outlet_.originate(Speech::kMostAnswerBytes);
  if (frame == nullptr) {
    return;
  }
  const std::uint8_t* const payload = member.speech.begin_response(
      *frame, wire::Opcode::read_response_last, psn, member.asked.message_sequence());
  member.speech.end_response(*frame, payload, 0);
  outlet_.send(*frame, *this, *member.port, now);
  member.cut_off_at = wire::psn_add(psn, 1);
  say(reader, wire::nak_syndrome(member.farewell), *member.cut_off_at, now);
}

/// Of a region that has ended. An entry is one piece, and so much work as its frames and one more.
void Region::drop_entries(std::size_t most, frame::Instant now) {
  std::size_t done = 0;
  const auto drop = [&](frame::Frame& frame) {
    outlet_.drop(frame, DropReason::region_ended, now);
    ++done;
  };
  for (std::uint16_t reader = 0; reader < members(); ++reader) {
    for (; table_.entries_of(reader) != 0 && done < most; ++done) {
      table_.take_first(reader, drop);
    }
  }
}

} // namespace weir::region
