// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/opcode.hpp"
#include "wire/packet.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace weir::endpoint {

/// A READ request from the peer.
struct ReadRequest {
  std::uint32_t psn = 0;
  std::uint32_t remote_key = 0;
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
};

/// An answer to a READ of ours.
struct ReadResponse {
  std::uint32_t psn = 0;
  wire::Opcode opcode = wire::Opcode::read_response_only;
  std::span<const std::uint8_t> payload; // in the frame

  /// It says that it is the READ's last packet.
  bool ends() const {
    return opcode == wire::Opcode::read_response_last || opcode == wire::Opcode::read_response_only;
  }
};

bool is_read_request(const wire::ParsedBytes& frame);
bool is_read_response(const wire::ParsedBytes& frame);

/// nullopt: there is not just a RETH behind the BTH (IBTA §9.6: packet length).
std::optional<ReadRequest> read_request_in(const wire::ParsedBytes& frame);

/// nullopt: the frame is too short for its headers and pad, or its AETH is no ACK.
std::optional<ReadResponse> read_response_in(const wire::ParsedBytes& frame);

} // namespace weir::endpoint
