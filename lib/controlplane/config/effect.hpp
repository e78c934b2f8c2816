// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::config {

/// What comes of a change; of a ring's, the later the graver.
enum class Effect : std::uint8_t {
  in_place,       // no job notices
  port_opened,    // a port more
  port_closed,    // one that no job uses
  ring_kept,      // one that was made while the switch ran, and is the file's from now on
  ring_made,      // a ring more
  ring_withdrawn, // its job ends
  ring_made_anew, // withdrawn, and made with the same id: its job ends
  restart,        // nothing, until the switch is started again
};

/// The effect's name in JSON.
std::string_view name_of(Effect effect);

/// The effect as a sentence.
std::string_view text_of(Effect effect);

} // namespace weir::config
