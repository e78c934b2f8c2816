// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "weir/ina.hpp"

#include <algorithm>
#include <cstddef>

namespace weir::program {

/// How a tensor's bytes are cut into packets: messages of `message_bytes`, whose first packet has a
/// header of 40 bytes, in packets of `mtu`. Operators fold packets (docs/operators.md).
struct MessageLayout {
  std::size_t mtu = 1024;
  std::size_t message_bytes = 65536; // the header included

  /// Bytes of data in a whole message.
  std::size_t message_data() const { return (message_bytes - kInaHeaderBytes) / 8 * 8; }

  /// Bytes of the packet that begins at this byte of the tensor, if the tensor goes on so long.
  std::size_t packet_at(std::size_t offset) const {
    const std::size_t in_message = offset % message_data();
    const std::size_t most = in_message == 0 ? mtu - kInaHeaderBytes : mtu;
    return std::min(most, message_data() - in_message);
  }
};

} // namespace weir::program
