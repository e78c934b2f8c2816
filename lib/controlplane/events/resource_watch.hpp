// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "events/event.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace weir::events {

/// A port's link in words, as `show port info` has it: "up 100000 Mbit/s", "down".
struct PortLink {
  std::string port; // empty: there is none at this place
  std::string link;
  std::string remedy; // what ends this state, if that is known
};

/// The port's name; "-" where there is no such place.
inline std::string name_at(std::span<const PortLink> ports, std::uint16_t place) {
  return place < ports.size() ? ports[place].port : std::string("-");
}

/// Finds links that have changed between two looks. The first look at a port tells of a link that
/// is down.
class PortWatch {
 public:
  std::vector<Event> look(std::span<const PortLink> ports);

 private:
  std::map<std::string, std::string> told_; // by port
};

/// What keeps a driver from a port's setting, in words; empty: nothing.
struct RefusedSetting {
  std::string port;
  std::string cause; // news when it changes
  std::string why;   // with numbers, which may change
};

/// Tells of refused settings when their cause changes.
class SettingWatch {
 public:
  std::vector<Event> look(std::span<const RefusedSetting> settings);

 private:
  std::map<std::string, std::string> told_; // by port
};

/// Packet buffers of the mempool.
struct Buffers {
  std::uint64_t free = 0;
  std::uint64_t all = 0;
};

/// Tells when less than a twentieth of the buffers is free, and when it is a tenth again.
class BufferWatch {
 public:
  std::vector<Event> look(const Buffers& buffers);

 private:
  bool are_low_ = false;
};

/// Neighbours that the switch remembers of rings, withdrawn ones included.
struct RememberedNeighbours {
  std::string tenant; // whose rings they were; empty: of all rings
  std::uint64_t now = 0;
  std::uint64_t most = 0;
};

/// Tells when someone has left four fifths of the neighbours that he may: they do not come back by
/// themselves, and without them no ring with new hosts can be made.
class NeighbourWatch {
 public:
  std::vector<Event> look(std::span<const RememberedNeighbours> all);

 private:
  std::set<std::string> short_; // tenants that it has told of
};

} // namespace weir::events
