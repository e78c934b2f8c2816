// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/prefetch.hpp"
#include "wire/keyed_hash.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace weir::conn {

using wire::HashKey;
using wire::keyed_hash;

/// A part of a table's places, for callers that visit the table in parts.
struct PlaceRange {
  std::size_t first = 0;
  std::size_t count = 0;
};

/// A map from 64-bit keys to entries with a fixed number of places. Each key has two buckets of
/// eight places and is in one of them. So every call takes the same bounded time, however full the
/// table is. Entries do not move. One lcore owns a table.
template <typename Entry>
class BucketTable {
 public:
  /// Times the number of entries, a capacity with which no key finds both its buckets full.
  static constexpr std::uint32_t kRoomy = 8;

  /// Makes twice as many places as `capacity`. With `capacity` entries, two full buckets for one
  /// key are rare.
  BucketTable(std::uint32_t capacity, const HashKey& hash_key)
      : hash_key_(hash_key), buckets_(bucket_count(capacity)), keys_(buckets_),
        entries_(buckets_ * kWays) {
    for (auto& bucket : keys_) {
      bucket.fill(kNoKey);
    }
  }

  /// nullptr when the key has no entry. No key is UINT64_MAX.
  Entry* find(std::uint64_t key) { return const_cast<Entry*>(std::as_const(*this).find(key)); }

  const Entry* find(std::uint64_t key) const {
    const Home home = home_of(key);
    for (const std::size_t bucket : home) {
      for (std::size_t way = 0; way < kWays; ++way) {
        if (keys_[bucket][way] == key) {
          return &entries_[bucket * kWays + way];
        }
      }
    }
    return nullptr;
  }

  /// Asks for what find() reads before it knows where the entry is.
  void load(std::uint64_t key) const {
    for (const std::size_t bucket : home_of(key)) {
      frame::prefetch(&keys_[bucket]);
    }
  }

  /// Makes an entry for a key that has none: in a free place, or in place of the entry with the
  /// greatest `age_of`. nullptr when all places are taken and `age_of` is nullopt for all.
  template <typename AgeOf>
  Entry* insert(std::uint64_t key, AgeOf&& age_of) {
    assert(key != kNoKey && find(key) == nullptr);
    std::optional<std::uint64_t> greatest;
    std::size_t place = entries_.size();
    for (const std::size_t bucket : home_of(key)) {
      for (std::size_t way = 0; way < kWays; ++way) {
        if (keys_[bucket][way] == kNoKey) {
          return put(bucket * kWays + way, key);
        }
        const std::optional<std::uint64_t> age = age_of(entries_[bucket * kWays + way]);
        if (age && (!greatest || *age > *greatest)) {
          greatest = age;
          place = bucket * kWays + way;
        }
      }
    }
    if (!greatest) {
      return nullptr;
    }
    assert(size_ != 0);
    --size_;
    return put(place, key);
  }

  /// The same, but in a free place only.
  Entry* insert(std::uint64_t key) {
    return insert(key, [](const Entry&) { return std::optional<std::uint64_t>(); });
  }

  void erase(const Entry& entry) {
    assert(owns(entry) && size_ != 0);
    const auto place = static_cast<std::size_t>(&entry - entries_.data());
    keys_[place / kWays][place % kWays] = kNoKey;
    --size_;
  }

  /// Whether the entry is in this table.
  bool owns(const Entry& entry) const {
    return std::less_equal<>()(entries_.data(), &entry) &&
           std::less<>()(&entry, entries_.data() + entries_.size());
  }

  std::uint32_t size() const { return size_; }

  std::size_t places() const { return entries_.size(); }

  template <typename Visitor>
  void for_each(PlaceRange range, Visitor&& visit) const {
    const std::size_t end = std::min(range.first + range.count, places());
    for (std::size_t place = range.first; place < end; ++place) {
      if (keys_[place / kWays][place % kWays] != kNoKey) {
        visit(entries_[place]);
      }
    }
  }

 private:
  static constexpr std::size_t kWays = 8; // keys of 8 bytes: a bucket's keys fill a cache line
  static constexpr std::uint64_t kNoKey = UINT64_MAX;

  struct alignas(64) Bucket : std::array<std::uint64_t, kWays> {};

  using Home = std::array<std::size_t, 2>;

  static std::size_t bucket_count(std::uint32_t capacity) {
    return std::bit_ceil(std::max<std::size_t>(2, 2 * std::size_t{capacity} / kWays));
  }

  Home home_of(std::uint64_t key) const {
    const std::uint64_t hash = keyed_hash(hash_key_, key, key >> 32);
    const std::size_t mask = buckets_ - 1;
    return {hash & mask, (hash >> 32) & mask};
  }

  Entry* put(std::size_t place, std::uint64_t key) {
    keys_[place / kWays][place % kWays] = key;
    ++size_;
    entries_[place] = {};
    return &entries_[place];
  }

  HashKey hash_key_;
  std::size_t buckets_;
  std::vector<Bucket> keys_;
  std::vector<Entry> entries_;
  std::uint32_t size_ = 0;
};

} // namespace weir::conn
