// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace weir::gate {

inline constexpr std::size_t kMostTextBytes = 1024;

enum class News : std::uint8_t {
  connection = 1, // with a descriptor: a client's calls come by it
  ended = 2,      // a connection's process was killed; the text is the signal's number
  files = 3,      // the certificates are not what they should be; the text says why
};

struct Message {
  News news{};
  std::string text;
  int descriptor = -1; // the receiver's now
};

/// From the gate to the service, by a socket of SOCK_SEQPACKET. Never waits. False: it was not
/// sent.
bool send(int channel, const Message& message);

/// Nothing: there is none now, or none that is well formed.
std::optional<Message> receive(int channel);

} // namespace weir::gate
