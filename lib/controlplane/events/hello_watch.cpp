// SPDX-License-Identifier: BSD-3-Clause
#include "events/hello_watch.hpp"

#include <fmt/format.h>

namespace weir::events {
namespace {

std::string name_at(std::span<const PortLink> ports, std::uint16_t place) {
  return place < ports.size() ? ports[place].port : std::string("-");
}

bool is_wrong_cable(const conn::ToldHello& told) {
  return told.differences.front().field == "port";
}

Event wrong_cable_event(const conn::RefusedHello& hello, const conn::ToldHello& told) {
  const conn::HelloDifference& ports = told.differences.front();
  const std::uint32_t ring = hello.header.ring_id.get();
  return {EventKind::wrong_cable,
          fmt::format("port {}: a hello of rank {} of ring {} has come by it, and belongs to port "
                      "{}; is the cable in the right port?",
                      ports.theirs, hello.header.rank.get(), ring, ports.ours),
          {{"port", ports.theirs}, {"ring", fmt::format("{}", ring)}, {"right_port", ports.ours}}};
}

Event refused_event(const conn::RefusedHello& hello, const conn::ToldHello& told,
                    const std::string& port) {
  const std::uint32_t ring = hello.header.ring_id.get();
  const conn::HelloDifference& first = told.differences.front();
  return {EventKind::hello_refused,
          fmt::format("ring {}: {} at port {} has it otherwise: {}; no job begins", ring, told.hop,
                      port, conn::text_of(told.differences)),
          {{"ring", fmt::format("{}", ring)},
           {"port", port},
           {"reason", std::string(name_of(hello.reason))},
           {"field", std::string(first.field)},
           {"theirs", first.theirs},
           {"ours", first.ours}}};
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
    Told& told = told_[{hello.header.ring_id.get(), hello.port}];
    if (hello.at_ns - told.at_ns > kForgotten) {
      told.text.clear();
    }
    told.at_ns = hello.at_ns;
    const conn::ToldHello what = conn::tell(hello, set, port_name);
    Event event = is_wrong_cable(what) ? wrong_cable_event(hello, what)
                                       : refused_event(hello, what, port_name(hello.port));
    if (told.text != event.text) {
      told.text = event.text;
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

} // namespace weir::events
