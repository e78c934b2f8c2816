// SPDX-License-Identifier: BSD-3-Clause
#include "support/ring_job.hpp"

#include <algorithm>
#include <string>

namespace weir::test {

RingJob::RingJob(JobSpec spec) : spec_(std::move(spec)) {
  forget_psns();
}

void RingJob::restart(std::uint32_t epoch) {
  spec_.first_qp += 0x1000;
  spec_.first_own_qp += spec_.first_own_qp == 0 ? 0 : 0x1000;
  spec_.epoch = epoch;
  ++spec_.nonce;
  ++spec_.session;
  forget_psns();
}

void RingJob::forget_psns() {
  psns_.clear();
  next_psn_.clear();
  for (std::uint16_t rank = 0; rank < spec_.world; ++rank) {
    next_psn_.push_back(first_psn_of(rank) + 1); // after the hello
  }
}

ring::RingSpec RingJob::ring() const {
  ring::RingSpec ring{.id = spec_.ring,
                      .window = spec_.window,
                      .max_message_bytes = spec_.max_message_bytes,
                      .mtu = spec_.mtu,
                      .patience_ms = spec_.patience_ms,
                      .keep_alive = spec_.keep_alive,
                      .members = {},
                      .tenant = spec_.tenant};
  for (std::uint16_t rank = 0; rank < spec_.world; ++rank) {
    ring::Member& member = ring.members.emplace_back();
    member.ip = ip_of(rank);
    if (spec_.pins_ports) {
      member.port = port_of(rank);
    }
  }
  return ring;
}

wire::IpAddress RingJob::ip_of(std::uint16_t rank) const {
  const auto host = std::to_string(rank);
  const auto low = std::to_string(spec_.network_id % 256);
  const auto high = std::to_string(spec_.network_id / 256);
  return spec_.network == Network::ipv4 ? ip("10." + low + "." + high + "." + host)
                                        : ip("fd00:" + low + "::" + high + ":" + host);
}

wire::MacAddress RingJob::mac_of(std::uint16_t rank) const {
  return {{0x02, 0x10, static_cast<std::uint8_t>(spec_.network_id),
           static_cast<std::uint8_t>(spec_.network_id >> 8), 0, static_cast<std::uint8_t>(rank)}};
}

FrameSpec RingJob::frame_of(std::uint16_t rank) const {
  FrameSpec frame;
  frame.network = spec_.network;
  frame.source_mac = mac_of(rank);
  frame.destination_mac = mac_of(successor_of(rank));
  frame.tags = spec_.tags;
  frame.source = ip_of(rank);
  frame.destination = ip_of(successor_of(rank));
  frame.ip_options = spec_.ip_options;
  frame.udp_checksum = spec_.udp_checksum;
  frame.ttl = static_cast<std::uint8_t>(10 + rank % 100); // each rank's own headers
  frame.udp_source = static_cast<std::uint16_t>(0xc000 + rank);
  frame.immediate = 0x1000u + rank;
  frame.qp = qp_of(rank);
  return frame;
}

InaSpec RingJob::ina_of(std::uint16_t rank, std::uint32_t message, std::uint32_t data_bytes) const {
  return {.version = static_cast<std::uint8_t>(spec_.operators.empty() ? 2 : 3),
          .operation = static_cast<std::uint8_t>(spec_.operation),
          .data_type = static_cast<std::uint8_t>(spec_.type),
          .ring = spec_.ring,
          .rank = rank,
          .world = spec_.world,
          .message = message,
          .length = data_bytes,
          .epoch = spec_.epoch,
          .session = spec_.session};
}

Built RingJob::hello(std::uint16_t rank) const {
  InaSpec ina = ina_of(rank, 0, static_cast<std::uint32_t>(spec_.operators.size()));
  ina.collective = 1;
  ina.session = spec_.nonce;
  ina.ack_timeout = spec_.ack_timeout;
  ina.qp = own_qp_of(rank);
  FrameSpec frame = frame_of(rank);
  frame.opcode = opcode_of(spec_.verb, 0, 1);
  frame.psn = first_psn_of(rank);
  frame.payload = encode(ina);
  frame.payload.insert(frame.payload.end(), spec_.operators.begin(), spec_.operators.end());
  return build(frame);
}

FrameSpec RingJob::answer_to(std::uint16_t rank, std::uint8_t syndrome, std::uint32_t psn,
                             std::uint32_t message_sequence) const {
  const std::uint16_t receiver = successor_of(rank);
  FrameSpec frame = frame_of(receiver);
  frame.destination_mac = mac_of(rank);
  frame.destination = ip_of(rank);
  frame.udp_source = static_cast<std::uint16_t>(0xd000 + receiver);
  frame.opcode = 0x11;
  frame.qp = own_qp_of(rank);
  frame.psn = psn & 0xffffff;
  frame.aeth = std::uint32_t{syndrome} << 24 | (message_sequence & 0xffffff);
  return frame;
}

std::vector<Built> RingJob::message(std::uint16_t rank, std::uint32_t id, const Bytes& data) {
  return message(rank, ina_of(rank, id, static_cast<std::uint32_t>(data.size())), data);
}

std::vector<Built> RingJob::message(std::uint16_t rank, const InaSpec& ina, const Bytes& data) {
  Bytes bytes = encode(ina);
  bytes.insert(bytes.end(), data.begin(), data.end());
  const std::size_t packets = (bytes.size() + spec_.mtu - 1) / spec_.mtu;
  const std::uint32_t first = psn_of(rank, ina.message, static_cast<std::uint32_t>(packets));
  std::vector<Built> built;
  for (std::size_t packet = 0; packet < packets; ++packet) {
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(packet * spec_.mtu);
    const auto length = std::min<std::ptrdiff_t>(spec_.mtu, bytes.end() - begin);
    FrameSpec frame = frame_of(rank);
    frame.opcode = opcode_of(spec_.verb, packet, packets);
    frame.ack_request = packet + 1 == packets;
    frame.psn = first + static_cast<std::uint32_t>(packet);
    frame.dma_length = static_cast<std::uint32_t>(bytes.size());
    frame.payload.assign(begin, begin + length);
    built.push_back(build(frame));
  }
  return built;
}

std::uint32_t RingJob::psn_of(std::uint16_t rank, std::uint32_t message, std::uint32_t packets) {
  const auto [known, is_new] = psns_.try_emplace({rank, message}, next_psn_[rank]);
  if (is_new) {
    next_psn_[rank] += packets;
  }
  return known->second;
}

std::uint8_t opcode_of(Verb verb, std::size_t packet, std::size_t packets) {
  const bool is_send = verb == Verb::send || verb == Verb::send_immediate;
  const bool has_immediate = verb == Verb::send_immediate || verb == Verb::write_immediate;
  const unsigned base = is_send ? 0x00 : 0x06; // FIRST, MIDDLE, LAST, LAST imm, ONLY, ONLY imm
  if (packets == 1) {
    return static_cast<std::uint8_t>(base + 4 + (has_immediate ? 1 : 0));
  }
  if (packet == 0) {
    return static_cast<std::uint8_t>(base);
  }
  const bool is_last = packet + 1 == packets;
  return static_cast<std::uint8_t>(is_last ? base + 2 + (has_immediate ? 1 : 0) : base + 1);
}

bool starts_message(const Built& frame) {
  const std::uint8_t opcode = frame.bytes[frame.bth];
  return opcode == 0x00 || opcode == 0x04 || opcode == 0x05 || opcode == 0x06 || opcode == 0x0a ||
         opcode == 0x0b;
}

Built result_of(Built frame, const Bytes& data, std::uint32_t session) {
  std::size_t at = frame.payload;
  if (starts_message(frame)) {
    frame.bytes[at + kInaFlagsAt] = 0x01;
    if (frame.bytes[at + kInaCollectiveAt] == 1) {
      put32(frame.bytes, at + kInaMessageAt, get32(frame.bytes, at + kInaSessionAt)); // the nonce
      put32(frame.bytes, at + kInaSessionAt, session);
    }
    at += 40;
  }
  std::copy(data.begin(), data.end(), frame.bytes.begin() + static_cast<std::ptrdiff_t>(at));
  if (frame.udp != 0) {
    put16(frame.bytes, frame.udp + 6, 0); // the checksum
  }
  seal(frame);
  return frame;
}

Bytes data_of(const Built& frame) {
  const std::size_t skip = starts_message(frame) ? 40 : 0;
  const auto begin = frame.bytes.begin() + static_cast<std::ptrdiff_t>(frame.payload + skip);
  return {begin,
          frame.bytes.begin() + static_cast<std::ptrdiff_t>(frame.payload + frame.payload_bytes)};
}

} // namespace weir::test
