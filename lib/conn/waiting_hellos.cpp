// SPDX-License-Identifier: BSD-3-Clause
#include "conn/waiting_hellos.hpp"

#include <algorithm>
#include <utility>

namespace weir::conn {

WaitingHello* WaitingHellos::find(std::uint16_t child, const Incarnation& incarnation) {
  for (WaitingHello& hello : places_[child]) {
    if (hello.frame != nullptr && hello.incarnation == incarnation) {
      return &hello;
    }
  }
  return nullptr;
}

const WaitingHello* WaitingHellos::find(const Incarnation& incarnation) {
  for (std::uint16_t child = 0; child < places_.size(); ++child) {
    if (const WaitingHello* hello = find(child, incarnation); hello != nullptr) {
      return hello;
    }
  }
  return nullptr;
}

WaitingHello& WaitingHellos::place_for(std::uint16_t child) {
  auto& places = places_[child];
  return *std::min_element(
      places.begin(), places.end(), [](const WaitingHello& a, const WaitingHello& b) {
        return std::pair(a.frame != nullptr, a.order) < std::pair(b.frame != nullptr, b.order);
      });
}

void WaitingHellos::put(WaitingHello& place, const WaitingHello& hello) {
  place = hello;
  place.order = arrivals_++;
  ++size_;
}

bool WaitingHellos::is_complete(const Incarnation& incarnation) {
  for (std::uint16_t child = 0; child < places_.size(); ++child) {
    if (find(child, incarnation) == nullptr) {
      return false;
    }
  }
  return true;
}

std::uint32_t WaitingHellos::waiting_of(std::uint16_t child) const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      places_[child], [](const WaitingHello& hello) { return hello.frame != nullptr; }));
}

WaitingHello WaitingHellos::take(WaitingHello& place) {
  --size_;
  return std::exchange(place, {});
}

} // namespace weir::conn
