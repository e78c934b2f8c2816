// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/frame.hpp"
#include "slot/slot_table.hpp"
#include "weir/ina.hpp"
#include "wire/packet.hpp"

#include <cstdint>

namespace weir::slot {

/// Turns a rank's own frame, whose data is the result's already (slot::sum_frames), into its
/// result packet (docs/protocol.md §5): headers, RETH, immediate and pad stay, but for the UDP
/// checksum, which becomes 0 (none); an INA header gets RESULT, and in a hello the session and, for
/// a message id, the nonce. The data is summed over once for all ranks: without an INA header the
/// ICRC changes by the difference of old and new data alone, with one it is the CRC of the rank's
/// headers combined with the data's.
///
/// The frame carries exactly result.data.size() bytes of data (SlotTable::arrive has seen to it)
/// and, without an INA header, its payload_crc.
void seal_result(frame::Frame& frame, const SlotResult& result, std::uint32_t session);

/// The same for a frame that still has its rank's own data.
void write_result(frame::Frame& frame, const SlotResult& result, std::uint32_t session);

/// Bytes of INA header in front of a message packet's data: 40 in a FIRST or ONLY, else 0.
inline std::size_t ina_bytes(const wire::Packet& packet) {
  return packet.opcode.starts_message() ? kInaHeaderBytes : 0;
}

} // namespace weir::slot
