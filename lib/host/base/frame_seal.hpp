// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Authentication codes: who knows the key has written this, and nobody has changed it.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace weir::host {

using ByteView = std::span<const std::uint8_t>;

/// An HMAC-SHA256 (RFC 2104). It is also a key as good as any (RFC 5869 makes keys so).
using Mac = std::array<std::uint8_t, 32>;

/// Of the parts, one after the other. Throws std::runtime_error when libcrypto has no HMAC-SHA256.
Mac mac_of(ByteView key, std::initializer_list<ByteView> parts);

/// Takes the same time wherever they differ. False for another length.
bool is_same_mac(const Mac& due, ByteView found);

/// The codes of one direction's frames. Each covers the frame's number, so a frame that is
/// repeated, left out or moved has a wrong code.
class FrameSeal {
 public:
  explicit FrameSeal(const Mac& key) : key_(key) {}

  /// Of the next frame.
  Mac next(ByteView header, ByteView body);

 private:
  Mac key_;
  std::uint64_t frames_ = 0;
};

} // namespace weir::host
