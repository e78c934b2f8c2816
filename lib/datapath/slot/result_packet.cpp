// SPDX-License-Identifier: BSD-3-Clause
#include "slot/result_packet.hpp"

#include "wire/crc32.hpp"
#include "wire/headers.hpp"
#include "wire/icrc.hpp"

#include <cstring>

namespace weir::slot {
namespace {

/// The session of a message is the ring's already.
void mark_result(wire::InaHeader& ina, std::uint32_t session) {
  if (ina.collective == static_cast<std::uint8_t>(Collective::hello)) {
    wire::SumStamp::total(session).mark(ina);
  }
  ina.flags = kInaFlagResult;
}

void copy_data(const frame::Frame& frame, const SlotResult& sum) {
  std::memcpy(frame.payload() + ina_bytes(frame.packet), sum.data.data(), sum.data.size());
}

/// Once the INA header, if there is one, says what the sum is.
void seal_marked(frame::Frame& frame, const SlotResult& sum) {
  const wire::Packet& packet = frame.packet;
  const std::size_t data_offset = packet.payload_offset + ina_bytes(packet);
  detail::clear_udp_checksum(frame);
  const std::uint8_t* pad = frame.data + data_offset + sum.data.size();
  const std::uint32_t crc = packet.pad == 0 ? sum.crc : wire::crc32(sum.crc, {pad, packet.pad});
  if (packet.opcode.starts_message()) {
    const wire::Crc32Shift shift(sum.data.size() + packet.pad);
    wire::store_icrc(frame, shift.combine(wire::icrc_prefix(frame, data_offset), crc));
  } else {
    wire::store_icrc(frame, wire::stored_icrc(frame) ^ frame.payload_crc ^ crc);
  }
}

} // namespace

void write_result(frame::Frame& frame, const SlotResult& result, std::uint32_t session) {
  copy_data(frame, result);
  seal_result(frame, result, session);
}

void detail::seal_other_result(frame::Frame& frame, const SlotResult& result,
                               std::uint32_t session) {
  if (frame.packet.opcode.starts_message()) {
    mark_result(wire::view_as<wire::InaHeader>(frame.payload()), session);
  }
  seal_marked(frame, result);
}

void seal_sum(frame::Frame& frame, const SlotResult& sum, const wire::SumStamp& stamp) {
  detail::cut_trailer(frame);
  if (frame.packet.opcode.starts_message()) {
    stamp.mark(wire::view_as<wire::InaHeader>(frame.payload()));
  }
  seal_marked(frame, sum);
}

void write_sum(frame::Frame& frame, const SlotResult& sum, const wire::SumStamp& stamp) {
  copy_data(frame, sum);
  seal_sum(frame, sum, stamp);
}

} // namespace weir::slot
