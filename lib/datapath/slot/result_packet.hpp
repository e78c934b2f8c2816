// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/frame.hpp"
#include "slot/slot_table.hpp"
#include "weir/ina.hpp"
#include "wire/icrc.hpp"
#include "wire/packet.hpp"
#include "wire/sum_stamp.hpp"

#include <cstdint>

namespace weir::slot {

namespace detail {

/// A checksum by the sender would be wrong for the new data. The ICRC does not cover it.
inline void clear_udp_checksum(frame::Frame& frame) {
  const wire::Packet& packet = frame.packet;
  if (packet.encapsulation != wire::Encapsulation::v1_grh) {
    const std::size_t udp_offset = packet.bth_offset - sizeof(wire::UdpHeader);
    wire::view_as<wire::UdpHeader>(frame.data + udp_offset).checksum.set(0);
  }
}

/// Only the packet's bytes are a result: not those behind its ICRC, which a link or a monitor
/// added.
inline void cut_trailer(frame::Frame& frame) {
  frame.length = frame.packet.icrc_offset + static_cast<std::uint32_t>(wire::kIcrcBytes);
}

/// With an INA header or a pad.
void seal_other_result(frame::Frame& frame, const SlotResult& result, std::uint32_t session);

} // namespace detail

/// Turns a rank's frame into its result packet (docs/protocol.md §5). The frame has the result's
/// data already (slot::fold_frames). Headers, RETH, immediate and pad stay; the UDP checksum
/// becomes 0 (none). Bytes behind the ICRC are cut off. An INA header gets RESULT; in a hello it
/// also gets the session, and the nonce as message id. The CRC of the data is computed once for all
/// ranks. Without an INA header the ICRC changes by the difference of old and new data. With one it
/// is the CRC of the rank's headers combined with that of the data.
///
/// The frame has exactly result.data.size() bytes of data (SlotTable::arrive checks it) and,
/// without an INA header, a valid payload_crc.
[[gnu::always_inline]] inline void seal_result(frame::Frame& frame, const SlotResult& result,
                                               std::uint32_t session) {
  detail::cut_trailer(frame);
  if (frame.packet.opcode.starts_message() || frame.packet.pad != 0) [[unlikely]] {
    return detail::seal_other_result(frame, result, session);
  }
  detail::clear_udp_checksum(frame);
  wire::store_icrc(frame, wire::stored_icrc(frame) ^ frame.payload_crc ^ result.crc);
}

/// The same for a frame that still has its rank's own data.
void write_result(frame::Frame& frame, const SlotResult& result, std::uint32_t session);

/// The same for a frame whose header gets another session, or is no result's: a partial sum that
/// goes to the switch above, or a total that has come from there.
void seal_sum(frame::Frame& frame, const SlotResult& sum, const wire::SumStamp& stamp);

/// The same for a frame that still has other data.
void write_sum(frame::Frame& frame, const SlotResult& sum, const wire::SumStamp& stamp);

/// Bytes of INA header before a message packet's data: 40 in a FIRST or ONLY, else 0.
inline std::size_t ina_bytes(const wire::Packet& packet) {
  return packet.opcode.starts_message() ? kInaHeaderBytes : 0;
}

} // namespace weir::slot
