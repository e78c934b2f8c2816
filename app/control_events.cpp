// SPDX-License-Identifier: BSD-3-Clause
#include "control_events.hpp"

#include "control/unfinished_rings.hpp"

#include <fmt/format.h>

namespace weir::app {

using events::Event;
using events::EventKind;

namespace {

Event port_loop_event(const control::LoopNews& news) {
  return {EventKind::port_loop,
          fmt::format("ports {} and {}: a loop leads through both; {} does not bridge for {} s "
                      "from the last probe that came back by it",
                      news.other, news.port, news.port,
                      control::LoopJudge::kClosed / 1'000'000'000),
          {{"port", news.port}, {"other", news.other}}};
}

Event wrong_cable_event(const control::LoopNews& news) {
  const std::string whose =
      news.sender == 0 ? "of this switch" : fmt::format("of switch {:016x}", news.sender);
  return {EventKind::wrong_cable,
          fmt::format("port {}: a loop probe {} has come by it, and it has bridge: no; is the "
                      "cable in the right port, and does the other end have bridge: no too?",
                      news.port, whose),
          {{"port", news.port}, {"switch", fmt::format("{:016x}", news.sender)}}};
}

} // namespace

Event event_of(const control::LoopNews& news) {
  switch (news.kind) {
  case control::LoopFinding::Kind::closed:
    return port_loop_event(news);
  case control::LoopFinding::Kind::reopened:
    return {EventKind::port_loop_over,
            fmt::format("port {}: it bridges again", news.port),
            {{"port", news.port}}};
  case control::LoopFinding::Kind::wrong_cable:
    break;
  }
  return wrong_cable_event(news);
}

Event event_of(const control::Reclaimed& reclaimed) {
  return {EventKind::ring_reclaimed,
          sentence_of(reclaimed),
          {{"ring", fmt::format("{}", reclaimed.ring)},
           {"reason", std::string(name_of(reclaimed.grounds.reason))},
           {"fate", std::string(name_of(reclaimed.fate))},
           {"frames", fmt::format("{}", reclaimed.frames)}}};
}

Event event_of(const control::RegionNews& news) {
  const std::string id = fmt::format("{}", news.id);
  const std::string tenant = news.tenant.empty() ? "-" : news.tenant;
  if (news.kind == control::RegionNews::Kind::began) {
    return {EventKind::region_began,
            fmt::format("region {}: its {} members have said hello", news.id, news.members),
            {{"region", id}, {"members", fmt::format("{}", news.members)}, {"tenant", tenant}}};
  }
  return {
      EventKind::region_ended,
      fmt::format("region {}: has ended: {}", news.id, news.why_in_words),
      {{"region", id}, {"reason", std::string(control::name_of(news.why))}, {"tenant", tenant}}};
}

Event cut_off_event(const control::TendedRing& ring) {
  return {
      EventKind::ring_cut_off, cut_off_sentence(ring), {{"ring", fmt::format("{}", ring.spec.id)}}};
}

Event cut_off_event(const control::RegionSeen& region) {
  return {EventKind::region_cut_off,
          cut_off_sentence(region),
          {{"region", fmt::format("{}", region.spec.id)},
           {"tenant", region.tenant.empty() ? "-" : region.tenant}}};
}

} // namespace weir::app
