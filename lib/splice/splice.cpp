// SPDX-License-Identifier: BSD-3-Clause
#include "splice/splice.hpp"

#include "wire/icrc.hpp"

#include <cstring>

namespace weir::splice {
namespace {

void mark_result(wire::InaHeader& ina, std::uint32_t session) {
  ina.flags |= kInaFlagResult;
  if (ina.collective == static_cast<std::uint8_t>(Collective::hello)) {
    ina.session.set(session);
  }
}

} // namespace

std::size_t ina_bytes(const wire::Packet& packet) {
  return packet.opcode.starts_message() ? kInaHeaderBytes : 0;
}

void write_result(wire::Frame& frame, const agg::SlotResult& result, std::uint32_t session) {
  const wire::Packet& packet = frame.packet;
  if (packet.opcode.starts_message()) {
    mark_result(wire::view_as<wire::InaHeader>(frame.payload()), session);
  }
  const std::size_t data_offset = packet.payload_offset + ina_bytes(packet);
  std::memcpy(frame.data + data_offset, result.data.data(), result.data.size());

  const std::uint32_t headers = wire::icrc_prefix(frame, data_offset);
  const std::uint32_t with_data = result.shift.combine(headers, result.crc);
  const std::uint8_t* pad = frame.data + data_offset + result.data.size();
  wire::store_icrc(frame, wire::crc32(with_data, {pad, packet.pad}));
}

} // namespace weir::splice
