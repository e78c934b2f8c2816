// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/refused_hellos.hpp"
#include "ring/ring_set.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::conn {

/// What the sender of a refused hello and this switch have otherwise. For people.
struct HelloDifference {
  std::string_view field; // as in the configuration, where it is there
  std::string theirs;
  std::string ours;
};

/// Whose the port is that a hello came by.
enum class PortOwner : std::uint8_t {
  other_switch, // the ring's switch above or below; if the ring is not here, any ring's
  rank,         // by the configuration
  nobody,       // of the ring
};

/// A refused hello, told.
struct ToldHello {
  PortOwner owner{};
  // Who is behind the port it came by: "rack7, the switch below", "rank 3"; "rack7" if the ring is
  // not here.
  std::string hop;
  std::string from; // whose hello it says to be; empty: the ring is not here
  std::vector<HelloDifference> differences; // one at least
};

/// By its place.
using PortName = std::function<std::string(std::uint16_t)>;

/// As far as a hello tells it: of what its digest is made of, only numbers.
ToldHello tell(const RefusedHello& hello, const ring::RingSet& rings, const PortName& port_name);

/// "window 8 (here 4), mtu 4096 (here 1024)".
std::string text_of(const std::vector<HelloDifference>& differences);

} // namespace weir::conn
