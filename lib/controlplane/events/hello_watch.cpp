// SPDX-License-Identifier: BSD-3-Clause
#include "events/hello_watch.hpp"

#include "events/name_list.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::events {
namespace {

bool is_wrong_cable(const conn::ToldHello& told) {
  return told.differences.front().field == "port";
}

Event wrong_cable_event(const conn::RefusedHello& hello, const conn::ToldHello& told) {
  const conn::HelloDifference& ports = told.differences.front();
  const std::uint32_t ring = hello.header.ring_id.get();
  return {EventKind::wrong_cable,
          fmt::format("port {}: a hello for ring {} has come by it, from {}, and belongs to port "
                      "{}; is the cable in the right port?",
                      ports.theirs, ring, told.from, ports.ours),
          {{"port", ports.theirs}, {"ring", fmt::format("{}", ring)}, {"right_port", ports.ours}}};
}

/// "rings 2, 5".
std::string rings_of(const ring::RingSet& set) {
  std::vector<std::uint32_t> ids;
  for (const std::uint16_t index : set.present()) {
    ids.push_back(set.rings()[index].spec().id);
  }
  return fmt::format("ring{} {}", ids.size() == 1 ? "" : "s", list_of(ids));
}

/// A field has no blanks.
std::string in_one_word(std::string text) {
  std::ranges::replace(text, ' ', '_');
  return text;
}

Event refused_event(const conn::RefusedHello& hello, const conn::ToldHello& told,
                    const std::string& port, const ring::RingSet& set) {
  const std::uint32_t ring = hello.header.ring_id.get();
  const conn::HelloDifference& first = told.differences.front();
  return {EventKind::hello_refused,
          told.from.empty()
              ? fmt::format("ring {} is not here, but {}: {} at port {} says hello for it; no job "
                            "begins",
                            ring, rings_of(set), told.hop, port)
              : fmt::format("ring {}: {} at port {} has it otherwise: {}; no job begins", ring,
                            told.hop, port, conn::text_of(told.differences)),
          {{"ring", fmt::format("{}", ring)},
           {"port", port},
           {"reason", std::string(name_of(hello.reason))},
           {"field", std::string(first.field)},
           {"theirs", in_one_word(first.theirs)},
           {"ours", in_one_word(first.ours)}}};
}

Event stray_event(const conn::RefusedHello& hello, const conn::ToldHello& told,
                  const std::string& port) {
  const std::uint32_t ring = hello.header.ring_id.get();
  return {EventKind::hello_stray,
          fmt::format("port {}: a hello for ring {}, from {}, is refused: {}", port, ring, told.hop,
                      conn::text_of(told.differences)),
          {{"port", port},
           {"ring", fmt::format("{}", ring)},
           {"reason", std::string(name_of(hello.reason))}}};
}

Event event_of(const conn::RefusedHello& hello, const conn::ToldHello& told,
               const std::string& port, const ring::RingSet& set) {
  if (is_wrong_cable(told)) {
    return wrong_cable_event(hello, told);
  }
  return told.owner == conn::PortOwner::nobody ? stray_event(hello, told, port)
                                               : refused_event(hello, told, port, set);
}

} // namespace

std::vector<Event> HelloWatch::look(const ring::RingSet& set,
                                    std::span<const conn::RefusedHello> refused,
                                    std::span<const PortLink> ports) {
  const auto port_name = [ports](std::uint16_t place) { return name_at(ports, place); };
  std::vector<Event> events;
  for (const conn::RefusedHello& hello : refused) {
    if (hello.at_ns <= seen_until_ns_) {
      continue;
    }
    const conn::ToldHello what = conn::tell(hello, set, port_name);
    Event event = event_of(hello, what, port_name(hello.port), set);
    if (is_news(hello, what.owner, event.text)) {
      events.push_back(std::move(event));
    }
  }
  if (!refused.empty()) {
    seen_until_ns_ = refused.back().at_ns;
  }
  std::erase_if(told_, [this](const auto& entry) {
    return seen_until_ns_ - entry.second.at_ns > kForgotten;
  });
  return events;
}

/// Hosts can say what they like as often as they like.
bool HelloWatch::is_news(const conn::RefusedHello& hello, conn::PortOwner owner,
                         const std::string& text) {
  const bool is_switch = owner == conn::PortOwner::other_switch;
  Told& told = told_[{owner, is_switch ? hello.header.ring_id.get() : 0, hello.port}];
  const std::uint64_t least = told.text == text ? kSaidAgain : is_switch ? 0 : kHostsPause;
  const bool is_new = told.text.empty() || hello.at_ns - told.at_ns > kForgotten;
  told.at_ns = hello.at_ns;
  if (!is_new && hello.at_ns - told.said_ns < least) {
    return false;
  }
  told.text = text;
  told.said_ns = hello.at_ns;
  return true;
}

} // namespace weir::events
