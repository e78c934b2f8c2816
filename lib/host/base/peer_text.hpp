// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::host {

/// Longest text that a rank sends to another, or takes from it, in bytes.
inline constexpr std::size_t kMostPeerText = 2000;

/// Another process's text as it may go to terminals and logs: on one line, printable (what is not
/// becomes \xNN), cut at kMostPeerText between two characters.
std::string peer_text(std::string_view text);

} // namespace weir::host
