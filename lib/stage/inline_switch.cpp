// SPDX-License-Identifier: BSD-3-Clause
#include "stage/inline_switch.hpp"

#include <numeric>
#include <utility>

namespace weir::stage {
namespace {

std::vector<std::uint16_t> all_rings(const ring::RingDirectory& directory) {
  std::vector<std::uint16_t> rings(directory.rings().size());
  std::iota(rings.begin(), rings.end(), std::uint16_t{0});
  return rings;
}

Worker::Settings sharing(Worker::Settings settings, conn::ForeignSessions& sessions) {
  settings.classifier.foreign_sessions = &sessions;
  return settings;
}

} // namespace

InlineSwitch::InlineSwitch(std::vector<ring::RingSpec> rings,
                           std::vector<std::uint32_t> max_frame_bytes, const Settings& settings,
                           FrameSink& sink)
    : directory_(std::move(rings)), foreign_sessions_(settings.worker.classifier.hash_key),
      stations_(settings.mac_entries, settings.mac_aging_ms),
      bridge_(stations_, static_cast<std::uint16_t>(max_frame_bytes.size())),
      forward_(bridge_, std::move(max_frame_bytes), sink, counters_, trace_),
      worker_(directory_, all_rings(directory_), sharing(settings.worker, foreign_sessions_),
              bridge_, forward_, counters_),
      receive_(directory_, bridge_, counters_),
      dispatch_(directory_,
                magic_rule_settings(sharing(settings.worker, foreign_sessions_).classifier),
                forward_, *this) {}

void InlineSwitch::to_worker(frame::Frame& frame, std::uint16_t /*group*/, frame::Instant now) {
  worker_.accept(frame, now);
}

} // namespace weir::stage
