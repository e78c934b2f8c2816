// SPDX-License-Identifier: BSD-3-Clause
#include "l2/mac_table.hpp"

#include "l2/port_set.hpp"
#include "wire/big_endian.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>

namespace weir::l2 {
namespace {

std::size_t bucket_count(std::uint32_t entries, std::size_t ways) {
  return std::bit_ceil((entries + ways - 1) / ways);
}

} // namespace

std::uint64_t to_number(const wire::MacAddress& mac) {
  wire::BigEndian<std::uint64_t, 6> number;
  std::memcpy(&number, mac.bytes.data(), sizeof number);
  return number.get();
}

wire::MacAddress from_number(std::uint64_t number) {
  wire::MacAddress mac;
  for (std::size_t i = mac.bytes.size(); i-- > 0; number >>= 8) {
    mac.bytes[i] = static_cast<std::uint8_t>(number);
  }
  return mac;
}

MacTable::MacTable(std::uint32_t entries, std::uint64_t aging, const wire::HashKey& hash_key)
    : hash_key_(hash_key), buckets_(bucket_count(entries, kWays)),
      table_(std::make_unique<Bucket[]>(buckets_)), aging_(aging) {}

std::size_t MacTable::bytes_for(std::uint32_t entries) {
  return bucket_count(entries, kWays) * sizeof(Bucket);
}

void MacTable::learn(const wire::MacAddress& station, std::uint16_t port, std::uint64_t now) {
  const std::uint64_t address = to_number(station);
  const Station here = Station::at(address, port);
  Bucket& bucket = bucket_of(address);
  for (Cell& cell : bucket) {
    const Station known = read(cell);
    if (known.is_at_port_of(here)) [[likely]] {
      return hear_again(cell, now);
    }
    if (known.address() == address) {
      break; // the first cell of a station tells its port
    }
  }
  learn_anew(bucket, here, now);
}

/// The station was not heard yet, or at another port.
void MacTable::learn_anew(Bucket& bucket, Station here, std::uint64_t now) {
  const Sighting known = find(bucket, here.address());
  if (!known) {
    return add(bucket, here, now);
  }
  if (known.station.port() == here.port()) { // another lcore has just learnt it
    return hear_again(*known.cell, now);
  }
  // The station moved, or another host uses its address. Whoever pins it must see the contest no
  // later than the new port.
  if (is_fresh(*known.cell, known.station, now)) {
    contest(*known.cell, now);
  }
  if (!known.station.is_fixed() && replace(known, here)) {
    hear_again(*known.cell, now);
  }
}

/// Does not write the cache line without need, nor over what another lcore has written meanwhile:
/// that may be a contest.
void MacTable::hear_again(Cell& cell, std::uint64_t now) {
  Heard heard = heard_of(cell);
  if (heard.last() != now) {
    cell.heard.compare_exchange_strong(heard.word, heard.again(now).word,
                                       std::memory_order_relaxed);
  }
}

void MacTable::contest(Cell& cell, std::uint64_t now) {
  const Heard contested = Heard::at_second_port(now);
  if (heard_of(cell).word != contested.word) {
    cell.heard.store(contested.word);
  }
}

std::optional<std::uint16_t> MacTable::port_of(const wire::MacAddress& station,
                                               std::uint64_t now) const {
  const std::uint16_t port = port_of(station, now, kMaxPorts);
  return port == kMaxPorts ? std::nullopt : std::optional(port);
}

std::uint16_t MacTable::port_of(const wire::MacAddress& station, std::uint64_t now,
                                std::uint16_t otherwise) const {
  const std::uint64_t address = to_number(station);
  const Sighting known = find(bucket_of(address), address);
  return known && is_fresh(*known.cell, known.station, now) ? known.station.port() : otherwise;
}

bool MacTable::pin(const wire::MacAddress& station, std::uint16_t port, std::uint64_t now) {
  const std::uint64_t address = to_number(station);
  Bucket& bucket = bucket_of(address);
  while (true) {
    const Sighting found = find(bucket, address);
    if (found && !may_be_pinned(found, port, now)) {
      return false;
    }
    const Sighting place = found ? found : cell_to_reuse(bucket, port, now);
    if (!place) {
      return false;
    }
    const std::uint64_t pins = found ? found.station.pins() : 0;
    Station pinned = Station::at(address, port, pins + 1);
    pinned = found.station.is_tied() ? pinned.tied() : pinned;
    if (found ? replace(place, pinned) : settle(place, pinned, now)) {
      forget_others(bucket, *place.cell, address);
      return true;
    }
  }
}

/// Nobody's is a station that was silent for the aging time.
bool MacTable::may_be_pinned(const Sighting& known, std::uint16_t port, std::uint64_t now) const {
  const Station station = known.station;
  if (!is_fresh(*known.cell, station, now)) {
    return true;
  }
  const std::uint64_t aging = aging_.load(std::memory_order_relaxed);
  return station.port() == port && station.pins() != kMostPins &&
         !Heard{known.cell->heard.load()}.is_contested(now, aging);
}

void MacTable::unpin(const wire::MacAddress& station, std::uint16_t port, std::uint64_t now) {
  const std::uint64_t address = to_number(station);
  Bucket& bucket = bucket_of(address);
  while (true) {
    const Sighting known = find(bucket, address);
    if (!known || known.station.port() != port || known.station.pins() == 0) {
      return;
    }
    hear_again(*known.cell, now);
    if (replace(known, known.station.with_pins(known.station.pins() - 1))) {
      return;
    }
  }
}

bool MacTable::move_pin(const wire::MacAddress& station, std::uint16_t from, std::uint16_t to,
                        std::uint64_t now) {
  const std::uint64_t address = to_number(station);
  const Sighting known = find(bucket_of(address), address);
  const bool is_sole = known && known.station.port() == from && known.station.pins() == 1 &&
                       !known.station.is_tied();
  if (is_sole && replace(known, Station::at(address, to, 1))) {
    return true;
  }
  unpin(station, from, now);
  return false;
}

bool MacTable::tie(const wire::MacAddress& station, std::uint16_t port, std::uint64_t now) {
  const std::uint64_t address = to_number(station);
  Bucket& bucket = bucket_of(address);
  while (true) {
    const Sighting found = find(bucket, address);
    const Sighting place = found ? found : cell_to_tie(bucket, port, now);
    if (!place) {
      return false;
    }
    const bool stays = found && found.station.port() == port;
    const Station tied = Station::at(address, port, stays ? found.station.pins() : 0).tied();
    if (found ? replace(place, tied) : settle(place, tied, now)) {
      tied_ += found && found.station.is_tied() ? 0 : 1;
      forget_others(bucket, *place.cell, address);
      return true;
    }
  }
}

void MacTable::untie(const wire::MacAddress& station, std::uint64_t now) {
  const std::uint64_t address = to_number(station);
  Bucket& bucket = bucket_of(address);
  while (true) {
    const Sighting known = find(bucket, address);
    if (!known || !known.station.is_tied()) {
      return;
    }
    hear_again(*known.cell, now);
    if (replace(known, known.station.not_tied())) {
      --tied_;
      return;
    }
  }
}

bool MacTable::is_tied(const wire::MacAddress& station) const {
  const std::uint64_t address = to_number(station);
  const Sighting known = find(bucket_of(address), address);
  return known && known.station.is_tied();
}

bool MacTable::is_tied_elsewhere(const wire::MacAddress& station, std::uint16_t port) const {
  const std::uint64_t address = to_number(station);
  const Sighting known = find(bucket_of(address), address);
  return known && known.station.is_tied() && known.station.port() != port;
}

void MacTable::forget_port(std::uint16_t port) {
  for (std::size_t bucket = 0; bucket < buckets_; ++bucket) {
    for (Cell& cell : table_[bucket]) {
      const Station station = read(cell);
      if (!station.is_nobody() && station.port() == port && !station.is_fixed()) {
        replace(cell, station, {});
      }
    }
  }
}

MacTable::Sighting MacTable::find(Bucket& bucket, std::uint64_t address) {
  for (Cell& cell : bucket) {
    if (const Station station = read(cell); station.is(address)) {
      return {&cell, station};
    }
  }
  return {};
}

/// Another lcore may pin this station at the same moment, or control may tie it. It must not stay
/// in a second cell, so both check after they have written: the later one sees the other's cell.
void MacTable::add(Bucket& bucket, Station station, std::uint64_t now) {
  const Sighting known = cell_to_reuse(bucket, station.port(), now);
  if (!known) {
    return;
  }
  if (settle(known, station, now) && is_fixed_beside(bucket, *known.cell, station.address())) {
    replace(*known.cell, station, {});
  }
}

/// The station first: otherwise a cell that another lcore has taken meanwhile would lose when its
/// station was heard, and its contest. Who reads in between sees a station that is silent, or
/// contested, as the former one was. What others have written since stays.
bool MacTable::settle(const Sighting& place, Station station, std::uint64_t now) {
  Heard before = heard_of(*place.cell);
  if (!replace(place, station)) {
    return false;
  }
  place.cell->heard.compare_exchange_strong(before.word, Heard::at(now).word);
  return true;
}

bool MacTable::is_fixed_beside(Bucket& bucket, const Cell& own, std::uint64_t address) {
  for (Cell& cell : bucket) {
    const Station known{cell.station.load()};
    if (&cell != &own && known.is(address) && known.is_fixed()) {
      return true;
    }
  }
  return false;
}

void MacTable::forget_others(Bucket& bucket, const Cell& fixed, std::uint64_t address) {
  for (Cell& cell : bucket) {
    const Station known{cell.station.load()};
    if (&cell != &fixed && known.is(address) && !known.is_fixed()) {
      replace(cell, known, {});
    }
  }
}

MacTable::Bucket& MacTable::bucket_of(std::uint64_t address) const {
  const std::uint64_t hash = wire::folded_product(address ^ hash_key_.first, hash_key_.second | 1);
  return table_[hash & (buckets_ - 1)];
}

bool MacTable::is_fresh(const Cell& cell, Station station, std::uint64_t now) const {
  // Another lcore's clock may be a little ahead of `now`.
  return static_cast<std::int64_t>(now - heard_of(cell).last()) <=
             static_cast<std::int64_t>(aging_.load(std::memory_order_relaxed)) ||
         station.is_fixed();
}

/// An empty or aged cell, else that of the oldest station of the port with the most, of those that
/// are neither pinned nor tied. None when all are, or the newcomer's port would have more than that
/// one.
MacTable::Sighting MacTable::cell_to_reuse(Bucket& bucket, std::uint16_t port,
                                           std::uint64_t now) const {
  std::array<Sighting, kWays> sightings;
  std::array<unsigned, kMaxPorts> stations{}; // by port; the newcomer counts
  ++stations[port];
  std::size_t count = 0;
  for (Cell& cell : bucket) {
    const Station station = read(cell);
    if (station.is_nobody() || !is_fresh(cell, station, now)) {
      return {&cell, station};
    }
    ++stations[station.port()];
    if (!station.is_fixed()) {
      sightings[count++] = {&cell, station};
    }
  }
  const auto rank = [&](const Sighting& sighting) {
    const std::uint16_t its_port = sighting.station.port();
    const std::uint64_t silence = ~heard_of(*sighting.cell).last();
    return std::tuple(stations[its_port], its_port == port, silence);
  };
  const auto end = sightings.begin() + static_cast<std::ptrdiff_t>(count);
  const auto found =
      std::max_element(sightings.begin(), end, [&](const Sighting& one, const Sighting& other) {
        return rank(one) < rank(other);
      });
  const bool is_taken = found != end && stations[found->station.port()] >= stations[port];
  return is_taken ? *found : Sighting();
}

/// The configuration goes before whatever was only learnt, however few stations its port has.
MacTable::Sighting MacTable::cell_to_tie(Bucket& bucket, std::uint16_t port,
                                         std::uint64_t now) const {
  if (const Sighting usual = cell_to_reuse(bucket, port, now)) {
    return usual;
  }
  for (Cell& cell : bucket) {
    if (const Station station = read(cell); !station.is_fixed()) {
      return {&cell, station};
    }
  }
  return {};
}

} // namespace weir::l2
