// SPDX-License-Identifier: BSD-3-Clause
#include "conn/waiting_hellos.hpp"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

namespace weir::conn {

const WaitingHello* WaitingHellos::find(std::uint16_t child, const Incarnation& incarnation) const {
  for (const WaitingHello& hello : places_[child]) {
    if (hello.frame != nullptr && hello.incarnation == incarnation) {
      return &hello;
    }
  }
  return nullptr;
}

const WaitingHello* WaitingHellos::find(const Incarnation& incarnation) const {
  for (std::uint16_t child = 0; child < places_.size(); ++child) {
    if (const WaitingHello* hello = find(child, incarnation); hello != nullptr) {
      return hello;
    }
  }
  return nullptr;
}

WaitingHello& WaitingHellos::place_for(std::uint16_t child, std::uint16_t port) {
  auto& places = places_[child];
  const auto came_by = [&places](std::uint16_t other) {
    return std::ranges::count_if(places, [other](const WaitingHello& hello) {
      return hello.frame != nullptr && hello.frame->ingress == other;
    });
  };
  // The first in this order gives up its place.
  const auto key = [&](const WaitingHello& hello) {
    const bool is_free = hello.frame == nullptr;
    const auto hellos_of_port =
        is_free ? 0 : came_by(hello.frame->ingress) + (hello.frame->ingress == port ? 1 : 0);
    return std::tuple(!is_free, -hellos_of_port, hello.order);
  };
  return *std::ranges::min_element(places, {}, key);
}

void WaitingHellos::put(WaitingHello& place, const WaitingHello& hello) {
  assert(place.frame == nullptr && hello.frame != nullptr);
  place = hello;
  place.order = place.heard = arrivals_++;
  ++size_;
  sets_.reset();
}

WaitingHello& WaitingHellos::newest_of(std::uint16_t child) {
  assert(waiting_of(child) != 0);
  return *std::ranges::max_element(places_[child], {}, [](const WaitingHello& hello) {
    return std::tuple(hello.frame != nullptr, hello.order);
  });
}

bool WaitingHellos::is_complete(const Incarnation& incarnation) const {
  for (std::uint16_t child = 0; child < places_.size(); ++child) {
    if (find(child, incarnation) == nullptr) {
      return false;
    }
  }
  return true;
}

bool WaitingHellos::has_climbed(const Incarnation& incarnation) const {
  const auto last = static_cast<std::uint16_t>(places_.size() - 1u);
  const WaitingHello* hello = find(last, incarnation);
  return hello != nullptr && hello->climbed_ns != 0 && is_complete(incarnation);
}

std::uint64_t WaitingHellos::last_heard_of(const Incarnation& incarnation) const {
  std::uint64_t last = 0;
  for (std::uint16_t child = 0; child < places_.size(); ++child) {
    last = std::max(last, find(child, incarnation)->heard);
  }
  return last;
}

const WaitingHello* WaitingHellos::newest_complete() const {
  const auto newest = complete_sets().newest;
  return newest ? &places_.back()[*newest] : nullptr;
}

bool WaitingHellos::is_older_set(const Incarnation& incarnation) const {
  const WaitingHello* last = find(static_cast<std::uint16_t>(places_.size() - 1u), incarnation);
  return last != nullptr && last != newest_complete() &&
         complete_sets().is_complete[static_cast<std::size_t>(last - places_.back().data())];
}

const CompleteSets& WaitingHellos::complete_sets() const {
  if (sets_) {
    return *sets_;
  }
  CompleteSets& sets = sets_.emplace();
  std::uint64_t newest_heard = 0;
  for (std::size_t place = 0; place < kPerChild; ++place) {
    const WaitingHello& hello = places_.back()[place];
    sets.is_complete[place] = hello.frame != nullptr && is_complete(hello.incarnation);
    if (!sets.is_complete[place]) {
      continue;
    }
    const std::uint64_t heard = last_heard_of(hello.incarnation);
    if (!sets.newest || heard > newest_heard) {
      sets.newest = place;
      newest_heard = heard;
    }
  }
  return sets;
}

std::uint32_t WaitingHellos::waiting_of(std::uint16_t child) const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      places_[child], [](const WaitingHello& hello) { return hello.frame != nullptr; }));
}

WaitingHello WaitingHellos::take(WaitingHello& place) {
  assert(place.frame != nullptr && size_ != 0);
  --size_;
  sets_.reset();
  return std::exchange(place, {});
}

} // namespace weir::conn
