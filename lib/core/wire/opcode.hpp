// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weir::wire {

/// BTH opcodes of the reliable connection service (IBTA table 38; SEND with Invalidate: annex A9).
/// Other services start at 0x20.
enum class Opcode : std::uint8_t {
  send_first = 0x00,
  send_middle = 0x01,
  send_last = 0x02,
  send_last_immediate = 0x03,
  send_only = 0x04,
  send_only_immediate = 0x05,
  write_first = 0x06,
  write_middle = 0x07,
  write_last = 0x08,
  write_last_immediate = 0x09,
  write_only = 0x0a,
  write_only_immediate = 0x0b,
  read_request = 0x0c,
  read_response_first = 0x0d,
  read_response_middle = 0x0e,
  read_response_last = 0x0f,
  read_response_only = 0x10,
  acknowledge = 0x11,
  atomic_acknowledge = 0x12,
  send_last_invalidate = 0x16,
  send_only_invalidate = 0x17,
  congestion_notification = 0x81, // RoCEv2 CNP
};

/// The place of a packet in its message, or what else it is.
enum class Position : std::uint8_t {
  none, // a response of the RC service, or a CNP
  first,
  middle,
  last,
  only,
  request, // a request that Weir cannot aggregate: READ, atomic, SEND with Invalidate, other
           // services
};

inline constexpr std::size_t kPositions = 6;

/// What an opcode says about the packet behind it.
struct OpcodeInfo {
  Position position = Position::request;
  std::uint8_t extension_bytes = 0; // headers between the BTH and the payload
  std::uint8_t has_reth = 0;
  std::uint8_t has_immediate = 0;

  bool operator==(const OpcodeInfo&) const = default;

  /// A SEND or RDMA WRITE of the RC service.
  constexpr bool carries_message() const {
    return position != Position::none && position != Position::request;
  }

  constexpr bool starts_message() const {
    return position == Position::first || position == Position::only;
  }

  constexpr bool ends_message() const {
    return position == Position::last || position == Position::only;
  }
};

namespace detail {

constexpr std::array<OpcodeInfo, 256> make_opcode_table() {
  constexpr std::uint8_t reth = 16;
  constexpr std::uint8_t immediate = 4;
  std::array<OpcodeInfo, 256> table{};
  const auto row = [&table](Opcode opcode) -> OpcodeInfo& {
    return table[static_cast<std::size_t>(opcode)];
  };
  for (auto response = static_cast<std::size_t>(Opcode::read_response_first);
       response <= static_cast<std::size_t>(Opcode::atomic_acknowledge); ++response) {
    table[response].position = Position::none;
  }
  row(Opcode::congestion_notification).position = Position::none;
  row(Opcode::send_first) = {Position::first, 0, 0, 0};
  row(Opcode::send_middle) = {Position::middle, 0, 0, 0};
  row(Opcode::send_last) = {Position::last, 0, 0, 0};
  row(Opcode::send_last_immediate) = {Position::last, immediate, 0, 1};
  row(Opcode::send_only) = {Position::only, 0, 0, 0};
  row(Opcode::send_only_immediate) = {Position::only, immediate, 0, 1};
  row(Opcode::write_first) = {Position::first, reth, 1, 0};
  row(Opcode::write_middle) = {Position::middle, 0, 0, 0};
  row(Opcode::write_last) = {Position::last, 0, 0, 0};
  row(Opcode::write_last_immediate) = {Position::last, immediate, 0, 1};
  row(Opcode::write_only) = {Position::only, reth, 1, 0};
  row(Opcode::write_only_immediate) = {Position::only, reth + immediate, 1, 1};
  return table;
}

} // namespace detail

inline constexpr std::array<OpcodeInfo, 256> kOpcodeTable = detail::make_opcode_table();

constexpr const OpcodeInfo& info_of(std::uint8_t opcode) {
  return kOpcodeTable[opcode];
}

} // namespace weir::wire
