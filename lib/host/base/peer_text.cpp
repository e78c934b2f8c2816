// SPDX-License-Identifier: BSD-3-Clause
#include "host/base/peer_text.hpp"

#include "text/printable.hpp"

namespace weir::host {
namespace {

/// Of a character of UTF-8 with several bytes: not the first.
bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U;
}

} // namespace

std::string peer_text(std::string_view text) {
  std::string shown = text::printable(text.substr(0, kMostPeerText));
  if (shown.size() > kMostPeerText) {
    std::size_t end = kMostPeerText;
    while (end != 0 && is_continuation(shown[end])) {
      --end;
    }
    shown.resize(end);
  }
  return shown;
}

} // namespace weir::host
