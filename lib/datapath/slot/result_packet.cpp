// SPDX-License-Identifier: BSD-3-Clause
#include "slot/result_packet.hpp"

#include "wire/crc32.hpp"
#include "wire/headers.hpp"
#include "wire/icrc.hpp"

#include <cstring>

namespace weir::slot {
namespace {

void mark_result(wire::InaHeader& ina, std::uint32_t session) {
  ina.flags = kInaFlagResult;
  if (ina.collective == static_cast<std::uint8_t>(Collective::hello)) {
    ina.message_id.set(ina.session.get()); // the nonce tells whose hello this is
    ina.session.set(session);
  }
}

} // namespace

void write_result(frame::Frame& frame, const SlotResult& result, std::uint32_t session) {
  std::memcpy(frame.payload() + ina_bytes(frame.packet), result.data.data(), result.data.size());
  seal_result(frame, result, session);
}

void detail::seal_other_result(frame::Frame& frame, const SlotResult& result,
                               std::uint32_t session) {
  const wire::Packet& packet = frame.packet;
  const std::size_t data_offset = packet.payload_offset + ina_bytes(packet);
  clear_udp_checksum(frame);
  const std::uint8_t* pad = frame.data + data_offset + result.data.size();
  const std::uint32_t crc =
      packet.pad == 0 ? result.crc : wire::crc32(result.crc, {pad, packet.pad});
  if (packet.opcode.starts_message()) {
    mark_result(wire::view_as<wire::InaHeader>(frame.payload()), session);
    const wire::Crc32Shift shift(result.data.size() + packet.pad);
    wire::store_icrc(frame, shift.combine(wire::icrc_prefix(frame, data_offset), crc));
  } else {
    wire::store_icrc(frame, wire::stored_icrc(frame) ^ frame.payload_crc ^ crc);
  }
}

} // namespace weir::slot
