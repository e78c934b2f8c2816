// SPDX-License-Identifier: BSD-3-Clause
#include "control_events.hpp"

#include "control/unfinished_rings.hpp"

#include <fmt/format.h>

namespace weir::app {

using events::Event;
using events::EventKind;

Event event_of(const control::Reclaimed& reclaimed) {
  return {EventKind::ring_reclaimed,
          sentence_of(reclaimed),
          {{"ring", fmt::format("{}", reclaimed.ring)},
           {"reason", std::string(name_of(reclaimed.grounds.reason))},
           {"fate", std::string(name_of(reclaimed.fate))},
           {"frames", fmt::format("{}", reclaimed.frames)}}};
}

Event cut_off_event(const control::TendedRing& ring) {
  return {
      EventKind::ring_cut_off, cut_off_sentence(ring), {{"ring", fmt::format("{}", ring.spec.id)}}};
}

} // namespace weir::app
