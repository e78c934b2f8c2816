// SPDX-License-Identifier: BSD-3-Clause
#include "events/resource_watch.hpp"

#include <fmt/format.h>

#include <utility>

namespace weir::events {
namespace {

constexpr std::uint64_t kLow = 20;  // a twentieth
constexpr std::uint64_t kBack = 10; // a tenth

bool is_up(const std::string& link) {
  return link.starts_with("up");
}

std::string in_words(const PortLink& port) {
  return port.link + (port.remedy.empty() ? "" : "; " + port.remedy);
}

} // namespace

std::vector<Event> PortWatch::look(std::span<const PortLink> ports) {
  std::vector<Event> events;
  std::map<std::string, std::string> now;
  for (const PortLink& port : ports) {
    if (port.port.empty()) {
      continue;
    }
    const std::string state = in_words(port);
    const auto before = told_.find(port.port);
    const bool is_new = before == told_.end();
    const bool is_news = is_new ? !is_up(port.link) : before->second != state;
    if (is_news) {
      events.push_back({is_up(port.link) ? EventKind::port_up : EventKind::port_down,
                        fmt::format("port {}: its link is {}", port.port, state),
                        {{"port", port.port}}});
    }
    now[port.port] = state;
  }
  told_ = std::move(now);
  return events;
}

std::vector<Event> SettingWatch::look(std::span<const RefusedSetting> settings) {
  std::vector<Event> events;
  std::map<std::string, std::string> now;
  for (const auto& [port, cause, why] : settings) {
    const auto before = told_.find(port);
    if (!cause.empty() && (before == told_.end() || before->second != cause)) {
      events.push_back({EventKind::setting_refused, why, {{"port", port}}});
    }
    now[port] = cause;
  }
  told_ = std::move(now);
  return events;
}

std::vector<Event> BufferWatch::look(const Buffers& buffers) {
  const bool are_low = buffers.free * (are_low_ ? kBack : kLow) < buffers.all;
  if (are_low == std::exchange(are_low_, are_low)) {
    return {};
  }
  return {{are_low ? EventKind::buffers_low : EventKind::buffers_back,
           fmt::format("{} of {} packet buffers are free", buffers.free, buffers.all),
           {{"free", fmt::format("{}", buffers.free)}}}};
}

std::vector<Event> NeighbourWatch::look(std::span<const RememberedNeighbours> all) {
  std::vector<Event> events;
  std::set<std::string> now;
  for (const RememberedNeighbours& some : all) {
    if (some.now * 5 < some.most * 4 || some.most == 0) {
      continue;
    }
    now.insert(some.tenant);
    if (!short_.contains(some.tenant)) {
      const std::string who = some.tenant.empty() ? "all rings" : "tenant " + some.tenant;
      events.push_back(
          {EventKind::neighbours_short,
           fmt::format("{}: the switch remembers {} of at most {} neighbours, those of "
                       "withdrawn rings included",
                       who, some.now, some.most),
           {{"tenant", some.tenant.empty() ? "-" : some.tenant},
            {"neighbours", fmt::format("{}", some.now)},
            {"most", fmt::format("{}", some.most)}}});
    }
  }
  short_ = std::move(now);
  return events;
}

} // namespace weir::events
