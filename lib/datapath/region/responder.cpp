// SPDX-License-Identifier: BSD-3-Clause
#include "region/responder.hpp"

#include "endpoint/config.hpp"
#include "recovery/flow.hpp"
#include "region/requester.hpp"
#include "wire/headers.hpp"

#include <algorithm>

namespace weir::region {
namespace {

constexpr std::uint32_t kHelloPackets = 1;
constexpr std::int32_t kMostBehind = 1 << 22; // PSNs between A and what an ACK names

const wire::Reth& reth_of(const frame::Frame& frame) {
  assert(frame.packet.opcode.has_reth != 0);
  return wire::view_as<wire::Reth>(frame.data + frame.packet.bth_offset + sizeof(wire::Bth));
}

bool has_range(const RegionSpec& spec, std::uint64_t offset, std::uint64_t bytes) {
  return bytes <= spec.bytes && offset <= spec.bytes - bytes; // below the base: huge
}

} // namespace

Responder::Responder(const RegionSpec& spec, const MemberSpec& member)
    : spec_(spec), member_(member), requests_(spec.window + kHelloPackets + member.reads),
      reader_(spec.mtu, member.reads), expected_(member.first_psn), unanswered_(expected_),
      furthest_(expected_), previous_(wire::psn_add(expected_, -1)), acknowledged_(previous_) {}

bool Responder::hear(std::uint32_t psn) {
  const bool goes_back = !wire::psn_before(previous_, psn);
  previous_ = psn;
  has_gone_back_ = has_gone_back_ || goes_back;
  const std::uint32_t behind = wire::psn_add(psn, 1);
  if (wire::psn_before(furthest_, behind)) {
    furthest_ = behind;
  }
  return goes_back;
}

Responder::Verdict Responder::place(std::uint32_t psn) const {
  if (wire::psn_before(expected_, psn)) {
    return Verdict::gap;
  }
  if (psn != expected_) {
    return wire::psn_before(psn, unanswered_) ? Verdict::answered : Verdict::under_way;
  }
  return Verdict::accept;
}

Responder::Verdict Responder::judge(const frame::Frame& frame, const RegionBirth& birth) const {
  const wire::Packet& packet = frame.packet;
  if (const Verdict verdict = place(packet.psn); verdict != Verdict::accept) {
    return verdict;
  }
  if (held_ >= spec_.window) {
    return Verdict::full;
  }
  if (packet.opcode.starts_message() == message_.is_open) { // IBTA §9.7.4.1.2: opcode order
    return Verdict::invalid_request;
  }
  if (packet.opcode.starts_message()) {
    return judge_start(frame, birth);
  }
  return has_fitting_length(frame, message_.left) ? Verdict::accept : Verdict::invalid_request;
}

/// Without bytes, key and range have no meaning (IBTA §9.7.4.1.3). An immediate is a write too.
Responder::Verdict Responder::judge_start(const frame::Frame& frame,
                                          const RegionBirth& birth) const {
  const wire::Reth& reth = reth_of(frame);
  const std::uint32_t bytes = reth.dma_length.get();
  if (!has_fitting_length(frame, bytes)) {
    return Verdict::invalid_request;
  }
  const bool is_in_region = reth.remote_key.get() == birth.multicast_key &&
                            has_range(spec_, reth.virtual_address.get() - birth.base, bytes);
  return allows(member_.right, Right::write) && (bytes == 0 || is_in_region)
             ? Verdict::accept
             : Verdict::access_error;
}

/// As a write. Besides, no element of a view may lie in two packets.
Responder::Verdict Responder::judge_read(const std::optional<endpoint::ReadRequest>& request,
                                         const RegionBirth& birth) const {
  if (!request || message_.is_open || !reader_.has_room() || request->bytes % kReadUnit != 0 ||
      endpoint::packets_of(request->bytes, spec_.mtu) > kMostReadPackets) {
    return Verdict::invalid_request;
  }
  if (!allows(member_.right, Right::read)) {
    return Verdict::access_error;
  }
  if (request->bytes == 0) {
    return Verdict::accept;
  }
  const std::uint64_t offset = request->address - birth.base;
  const auto key = std::ranges::find(birth.view_keys, request->remote_key);
  if (key == birth.view_keys.end() || !has_range(spec_, offset, request->bytes)) {
    return Verdict::access_error;
  }
  return offset % kReadUnit == 0 ? Verdict::accept : Verdict::invalid_request;
}

/// IBTA §9.7.4.1.6: all packets but the last one are full.
bool Responder::has_fitting_length(const frame::Frame& frame, std::uint64_t left) const {
  const std::uint64_t bytes = frame.packet.payload_bytes;
  return frame.packet.opcode.ends_message() ? bytes == left && bytes <= spec_.mtu
                                            : bytes == spec_.mtu && left > bytes;
}

std::uint64_t Responder::accept(frame::Frame& frame, const RegionBirth& birth, std::uint64_t now) {
  const wire::Packet& packet = frame.packet;
  if (packet.opcode.starts_message()) {
    const wire::Reth& reth = reth_of(frame);
    const std::uint32_t bytes = reth.dma_length.get();
    message_ = {.is_open = true,
                .offset = bytes == 0 ? 0 : reth.virtual_address.get() - birth.base,
                .left = bytes};
  }
  push({.frame = &frame,
        .offset = message_.offset,
        .psn = packet.psn,
        .asks = packet.opcode.ends_message() || (frame.bth().ack_request & wire::kAckRequest) != 0,
        .ends = packet.opcode.ends_message()},
       1, now);
  message_.offset += packet.payload_bytes;
  message_.left -= packet.payload_bytes;
  message_.is_open = !packet.opcode.ends_message();
  return requests_.end() - 1;
}

void Responder::accept_hello(std::uint64_t now) {
  push({.psn = member_.first_psn, .missing = 1, .asks = true, .ends = true}, 1, now);
}

std::optional<std::uint32_t> Responder::accept_read(const endpoint::ReadRequest& request,
                                                    const RegionBirth& birth, std::uint64_t now) {
  const auto key = std::ranges::find(birth.view_keys, request.remote_key);
  const Read read{.psn = request.psn,
                  .packets =
                      static_cast<std::uint32_t>(endpoint::packets_of(request.bytes, spec_.mtu)),
                  .key = request.remote_key,
                  .address = request.address,
                  .offset = request.address - birth.base,
                  .bytes = request.bytes,
                  .view = static_cast<std::uint16_t>(key - birth.view_keys.begin())};
  push({.psn = request.psn, .is_read = true}, read.packets, now);
  return reader_.accept(read);
}

std::optional<std::uint32_t> Responder::repeat_read(const endpoint::ReadRequest& request,
                                                    std::uint64_t now) {
  spoke_ns_ = waits() ? spoke_ns_ : now;
  return reader_.repeat(request);
}

std::uint32_t Responder::answer_read(std::uint64_t now) {
  assert(is_turn_of_read());
  const bool is_new = !is_answering_again();
  const bool is_first = is_new && reader_.answered_of_oldest() == 0;
  message_sequence_ = wire::psn_add(message_sequence_, is_first ? 1 : 0);
  spoke_ns_ = now;
  reader_.leave();
  if (is_new) {
    unanswered_ = wire::psn_add(unanswered_, 1);
    if (reader_.answered_of_oldest() == 0) { // it was the READ's last
      requests_.pop();
    }
    reader_.forget_old(unanswered_);
    keep_acknowledged_near();
  }
  return message_sequence_;
}

/// A member that only reads leaves its last WRITE behind, until PSNs have no order any more.
void Responder::keep_acknowledged_near() {
  if (wire::psn_distance(acknowledged_, unanswered_) > kMostBehind) {
    acknowledged_ = reader_.psn_below_all().value_or(acknowledged_);
  }
}

/// Soft-RoCE completes a READ without data by an ACK that names one of its PSNs.
std::uint32_t Responder::acknowledged() const {
  return is_answering_again() ? reader_.psn_below_all().value_or(acknowledged_) : acknowledged_;
}

void Responder::push(const Request& request, std::uint32_t packets, std::uint64_t now) {
  assert(request.psn == expected_);
  spoke_ns_ = waits() ? spoke_ns_ : now;
  requests_.push(request);
  held_ += request.is_read ? 0 : 1;
  expected_ = wire::psn_add(expected_, packets);
  if (wire::psn_before(furthest_, expected_)) {
    furthest_ = expected_;
  }
  if (!lacks_packets()) {
    asks_ = 0;
  }
}

bool Responder::advance(std::uint64_t now) {
  bool is_asked = false;
  while (!requests_.empty() && !is_turn_of_read() && requests_.front().missing == 0) {
    const Request& request = requests_.front();
    assert(request.frame == nullptr && request.psn == unanswered_);
    acknowledged_ = unanswered_;
    unanswered_ = wire::psn_add(unanswered_, 1);
    --held_;
    message_sequence_ = wire::psn_add(message_sequence_, request.ends ? 1 : 0);
    is_asked = is_asked || request.asks;
    spoke_ns_ = now;
    requests_.pop();
    reader_.forget_old(unanswered_);
  }
  if (is_full_ && held_ <= spec_.window / 2) {
    is_full_ = false;
    asks_ = 0;
  }
  return is_asked;
}

/// A NAK names the first PSN of a request, and nothing that is answered again.
bool Responder::may_ask() const {
  return !is_answering_again() && is_between_requests();
}

/// The first ask is a NAK, and so is each one after A has moved: a requester goes back by one. The
/// others are RNR NAKs, which cost no retry.
Responder::Ask Responder::ask(std::uint64_t now) {
  if (now < ask_timer()) {
    return Ask::nothing;
  }
  const bool is_news = asks_ == 0 || asked_unanswered_ != unanswered_;
  asks_ = is_news ? 1 : asks_ + 1;
  asked_unanswered_ = unanswered_;
  asked_ns_ = now;
  has_gone_back_ = false;
  return is_news ? Ask::nak : Ask::rnr;
}

std::uint64_t Responder::ask_timer() const {
  if (!lacks_packets() || is_full_ || !may_ask()) {
    return kNever;
  }
  if (asks_ == 0) {
    return 0;
  }
  if (asks_ == 1) {
    return asked_ns_ + (has_gone_back_ ? 0 : recovery::kFirstTimer);
  }
  const std::uint64_t pause = recovery::kRnrWait << std::min<std::uint32_t>(asks_ - 2, 3);
  return asked_ns_ + std::min(pause, recovery::kLongestPause);
}

bool Responder::wants_sign(std::uint64_t now) {
  if (now < sign_timer()) {
    return false;
  }
  spoke_ns_ = now;
  return true;
}

std::uint64_t Responder::sign_timer() const {
  return waits() ? spoke_ns_ + recovery::keep_alive_interval(member_.ack_timeout) : kNever;
}

} // namespace weir::region
