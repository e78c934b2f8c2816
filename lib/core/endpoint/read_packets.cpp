// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/read_packets.hpp"

#include "wire/headers.hpp"
#include "wire/syndrome.hpp"

#include <cstddef>

namespace weir::endpoint {
namespace {

wire::Opcode opcode_of(const wire::ParsedBytes& frame) {
  return static_cast<wire::Opcode>(frame.bth().opcode);
}

std::size_t extension_offset(const wire::ParsedBytes& frame) {
  return frame.packet.bth_offset + sizeof(wire::Bth);
}

} // namespace

bool is_read_request(const wire::ParsedBytes& frame) {
  return opcode_of(frame) == wire::Opcode::read_request;
}

bool is_read_response(const wire::ParsedBytes& frame) {
  return opcode_of(frame) >= wire::Opcode::read_response_first &&
         opcode_of(frame) <= wire::Opcode::read_response_only;
}

std::optional<ReadRequest> read_request_in(const wire::ParsedBytes& frame) {
  const std::size_t at = extension_offset(frame);
  if (frame.packet.icrc_offset != at + sizeof(wire::Reth)) {
    return std::nullopt;
  }
  const auto& reth = wire::view_as<wire::Reth>(frame.data + at);
  return ReadRequest{.psn = frame.packet.psn,
                     .remote_key = reth.remote_key.get(),
                     .address = reth.virtual_address.get(),
                     .bytes = reth.dma_length.get()};
}

std::optional<ReadResponse> read_response_in(const wire::ParsedBytes& frame) {
  const wire::Opcode opcode = opcode_of(frame);
  const bool has_aeth = opcode != wire::Opcode::read_response_middle; // IBTA table 38
  const std::size_t aeth = extension_offset(frame);
  const std::size_t payload = aeth + (has_aeth ? sizeof(wire::Aeth) : 0);
  const std::size_t end = frame.packet.icrc_offset;
  const std::size_t pad = frame.bth().pad();
  if (end < payload + pad || (end - payload) % 4 != 0) { // IBTA §9.2.3: PadCnt
    return std::nullopt;
  }
  if (has_aeth && wire::kind_of(wire::view_as<wire::Aeth>(frame.data + aeth).syndrome) !=
                      wire::SyndromeKind::acknowledge) {
    return std::nullopt;
  }
  return ReadResponse{
      .psn = frame.packet.psn,
      .opcode = opcode,
      .payload = frame.bytes().subspan(payload, end - pad - payload),
  };
}

} // namespace weir::endpoint
