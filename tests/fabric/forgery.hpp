// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/headers.hpp"
#include "wire/packet.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace weir::fabric {

/// A copy of a frame that a test changes, with a new ICRC.
class Forgery {
 public:
  explicit Forgery(std::span<const std::uint8_t> bytes);

  bool starts_message() const { return layout_.opcode.starts_message(); }

  /// For a FIRST or ONLY of a ring.
  wire::InaHeader& ina();
  wire::Bth& bth();

  std::uint8_t& byte(std::size_t at) { return bytes_[at]; }

  const wire::Packet& layout() const { return layout_; }

  wire::IpAddress source();
  wire::IpAddress destination();
  wire::EthernetHeader& ethernet();
  void set_psn(std::uint32_t psn);
  void set_queue_pair(std::uint32_t queue_pair);
  /// Sets "more fragments"; only IPv4.
  void make_fragment();

  /// Makes the ICRC valid, unless the frame is no transport packet any more.
  void sign();

  std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  wire::ParsedBytes frame();

  std::vector<std::uint8_t> bytes_;
  wire::Packet layout_; // of the original
};

} // namespace weir::fabric
