// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/address.hpp"
#include "wire/keyed_hash.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

namespace weir::l2 {

/// The port on which each station was last heard (IEEE 802.1D §7.9): learning, aging and station
/// moves.
///
/// All lcores read and write it without locks. A cell is one 64-bit word of address and port, so a
/// reader sees all of a station or nothing. When two lcores learn one station at once, it may take
/// two cells of a bucket. Readers take the first; the other ages.
///
/// A pinned station keeps its port until it is unpinned: it does not age, is not replaced and does
/// not move. So a frame with a false source address cannot redirect its traffic. A pin may itself
/// be such a lie. So nobody can pin a station that was heard at another port within the aging time.
///
/// A tied station is where the configuration says, whatever frames and pins say.
class MacTable {
 public:
  /// Room for `entries` stations, rounded up to a power of two. A station is forgotten after
  /// `aging` milliseconds of silence.
  MacTable(std::uint32_t entries, std::uint64_t aging, const wire::HashKey& hash_key = {});

  void set_aging(std::uint64_t milliseconds) {
    aging_.store(milliseconds, std::memory_order_relaxed);
  }

  static std::size_t bytes_for(std::uint32_t entries);

  /// `now` in milliseconds. A full bucket gives up the longest silent station of the port that
  /// would otherwise have the most there; the newcomer's own if it is one of these. Pinned stations
  /// count, but are not given up. So no port displaces the stations of one that has fewer, and
  /// eight pins close a bucket: its other stations are not learnt, and frames to them are flooded.
  void learn(const wire::MacAddress& station, std::uint16_t port, std::uint64_t now);
  std::optional<std::uint16_t> port_of(const wire::MacAddress& station, std::uint64_t now) const;
  /// The same; `otherwise` when the station is not known.
  std::uint16_t port_of(const wire::MacAddress& station, std::uint64_t now,
                        std::uint16_t otherwise) const;

  /// False when the station is pinned to another port, when it was heard at another port within the
  /// aging time, also while it was pinned, or when there is no room, as in learn(). It stays pinned
  /// until each pin() that returned true has had its unpin().
  bool pin(const wire::MacAddress& station, std::uint16_t port, std::uint64_t now);
  void unpin(const wire::MacAddress& station, std::uint16_t port, std::uint64_t now);
  /// Takes a pin from one port to another, wherever the station is heard. False when others have
  /// pinned it to its port too; then this pin is gone.
  bool move_pin(const wire::MacAddress& station, std::uint16_t from, std::uint16_t to,
                std::uint64_t now);

  /// The station is at the port from now on, until untie(). False when eight others are tied or
  /// pinned in its bucket.
  bool tie(const wire::MacAddress& station, std::uint16_t port, std::uint64_t now);
  /// It is a station like others again: it ages and may move.
  void untie(const wire::MacAddress& station, std::uint64_t now);
  bool is_tied(const wire::MacAddress& station) const;

  /// Whether any station is.
  bool has_tied() const { return tied_.load(std::memory_order_relaxed) != 0; }

  /// Whether it is tied to another port than this one.
  bool is_tied_elsewhere(const wire::MacAddress& station, std::uint16_t port) const;

  /// Forgets the stations of a port by which no frame comes any more, but for pinned and tied ones.
  void forget_port(std::uint16_t port);

  /// Calls visit(address, port, milliseconds of silence, pins).
  template <typename Visitor>
  void for_each(std::uint64_t now, Visitor&& visit) const;

 private:
  static constexpr std::size_t kWays = 8;
  static constexpr std::uint64_t kMostPins = 511;

  /// A cell's word: address << 16 | pins << 7 | 64 unless it is tied | port; 0: empty. Nobody ties
  /// the address 0.
  struct Station {
    std::uint64_t word = 0;

    static Station at(std::uint64_t address, std::uint16_t port, std::uint64_t pins = 0) {
      return {address << 16 | pins << kPinsShift | kIsLearnt | port};
    }

    bool is_nobody() const { return word == 0; }

    bool is(std::uint64_t address) const { return word >> 16 == address && word != 0; }

    /// Whether the other one is the same station, pinned or not, at the same port.
    bool is_at_port_of(Station other) const {
      return ((word ^ other.word) & ~(kMostPins << kPinsShift | kIsLearnt)) == 0;
    }

    std::uint64_t address() const { return word >> 16; }

    std::uint64_t pins() const { return word >> kPinsShift & kMostPins; }

    std::uint16_t port() const { return static_cast<std::uint16_t>(word & kPortMask); }

    bool is_tied() const { return !is_nobody() && (word & kIsLearnt) == 0; }

    /// Pinned or tied; of somebody.
    bool is_fixed() const { return (word & (kMostPins << kPinsShift | kIsLearnt)) != kIsLearnt; }

    Station with_pins(std::uint64_t pins) const {
      return {(word & ~(kMostPins << kPinsShift)) | pins << kPinsShift};
    }

    Station tied() const { return {word & ~kIsLearnt}; }

    Station not_tied() const { return {word | kIsLearnt}; }

   private:
    static constexpr unsigned kPinsShift = 7;
    static constexpr std::uint64_t kIsLearnt = 0x40;
    static constexpr std::uint64_t kPortMask = 0x3f;
  };

  /// A cell's other word: when its station was last heard, in milliseconds << 16, and when it was
  /// last heard at a second port, in seconds; 0: never. The seconds begin anew after 18 hours. An
  /// old contest may then count as a new one, for one aging time.
  struct Heard {
    std::uint64_t word = 0;

    static Heard at(std::uint64_t now) { return {now << kSecondsBits}; }

    std::uint64_t last() const { return word >> kSecondsBits; }

    Heard again(std::uint64_t now) const { return {now << kSecondsBits | (word & kSeconds)}; }

    static Heard at_second_port(std::uint64_t now) {
      return {now << kSecondsBits | seconds_of(now)};
    }

    bool is_contested(std::uint64_t now, std::uint64_t aging) const {
      const std::uint64_t since = word & kSeconds;
      return since != 0 && (seconds_of(now) + kSeconds - since) % kSeconds * 1000 <= aging;
    }

   private:
    static constexpr unsigned kSecondsBits = 16;
    static constexpr std::uint64_t kSeconds = (1u << kSecondsBits) - 1;

    static std::uint64_t seconds_of(std::uint64_t now) { return now / 1000 % kSeconds + 1; }
  };

  struct Cell {
    std::atomic<std::uint64_t> station{0}; // a Station's word
    std::atomic<std::uint64_t> heard{0};   // a Heard's word
  };

  using Bucket = std::array<Cell, kWays>;

  /// A cell and the word that was read from it. Another lcore may write the cell at any time, so
  /// each decision reads it once.
  struct Sighting {
    Cell* cell = nullptr;
    Station station;

    explicit operator bool() const { return cell != nullptr; }
  };

  Bucket& bucket_of(std::uint64_t address) const;

  static Station read(const Cell& cell) { return {cell.station.load(std::memory_order_relaxed)}; }

  static Heard heard_of(const Cell& cell) { return {cell.heard.load(std::memory_order_relaxed)}; }

  static void hear_again(Cell& cell, std::uint64_t now);
  static void contest(Cell& cell, std::uint64_t now);

  /// False when the cell holds another word by now.
  static bool replace(Cell& cell, Station known, Station by) {
    return cell.station.compare_exchange_strong(known.word, by.word);
  }

  static bool replace(const Sighting& sighting, Station by) {
    return replace(*sighting.cell, sighting.station, by);
  }

  static bool settle(const Sighting& place, Station station, std::uint64_t now);
  static Sighting find(Bucket& bucket, std::uint64_t address);
  static bool is_fixed_beside(Bucket& bucket, const Cell& own, std::uint64_t address);
  static void forget_others(Bucket& bucket, const Cell& fixed, std::uint64_t address);
  bool is_fresh(const Cell& cell, Station station, std::uint64_t now) const;
  bool may_be_pinned(const Sighting& known, std::uint16_t port, std::uint64_t now) const;
  Sighting cell_to_reuse(Bucket& bucket, std::uint16_t port, std::uint64_t now) const;
  Sighting cell_to_tie(Bucket& bucket, std::uint16_t port, std::uint64_t now) const;
  void add(Bucket& bucket, Station station, std::uint64_t now);
  void learn_anew(Bucket& bucket, Station here, std::uint64_t now);

  wire::HashKey hash_key_;
  std::size_t buckets_;
  std::unique_ptr<Bucket[]> table_;
  std::atomic<std::uint64_t> aging_;
  std::atomic<std::uint32_t> tied_{0}; // stations
};

/// The 48 bits of an address as a number.
std::uint64_t to_number(const wire::MacAddress& mac);
wire::MacAddress from_number(std::uint64_t number);

template <typename Visitor>
void MacTable::for_each(std::uint64_t now, Visitor&& visit) const {
  for (std::size_t bucket = 0; bucket < buckets_; ++bucket) {
    for (const Cell& cell : table_[bucket]) {
      const Station station = read(cell);
      if (!station.is_nobody() && is_fresh(cell, station, now)) {
        visit(from_number(station.address()), station.port(), now - heard_of(cell).last(),
              station.pins());
      }
    }
  }
}

} // namespace weir::l2
