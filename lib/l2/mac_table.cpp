// SPDX-License-Identifier: BSD-3-Clause
#include "l2/mac_table.hpp"

#include "wire/big_endian.hpp"

#include <bit>
#include <cstring>

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

MacTable::MacTable(std::uint32_t entries, std::uint64_t aging)
    : buckets_(bucket_count(entries, kWays)), table_(std::make_unique<Bucket[]>(buckets_)),
      aging_(aging) {}

std::size_t MacTable::bytes_for(std::uint32_t entries) {
  return bucket_count(entries, kWays) * sizeof(Bucket);
}

void MacTable::learn(const wire::MacAddress& station, std::uint16_t port, std::uint64_t now) {
  const std::uint64_t address = to_number(station);
  const std::uint64_t word = address << 16 | (port + 1u);
  Bucket& bucket = bucket_of(address);
  for (Cell& cell : bucket) {
    const std::uint64_t known = cell.station.load(std::memory_order_relaxed);
    if (known >> 16 != address || known == 0) {
      continue;
    }
    if (known != word) { // the station moved
      cell.station.store(word, std::memory_order_relaxed);
    }
    if (cell.heard.load(std::memory_order_relaxed) !=
        now) { // keep the cache line clean while it is fresh
      cell.heard.store(now, std::memory_order_relaxed);
    }
    return;
  }
  Cell& cell = cell_to_reuse(bucket, now);
  cell.heard.store(now, std::memory_order_relaxed);
  cell.station.store(word, std::memory_order_relaxed);
}

std::optional<std::uint16_t> MacTable::port_of(const wire::MacAddress& station,
                                               std::uint64_t now) const {
  const std::uint64_t address = to_number(station);
  for (const Cell& cell : bucket_of(address)) {
    const std::uint64_t known = cell.station.load(std::memory_order_relaxed);
    if (known != 0 && known >> 16 == address && is_fresh(cell, now)) {
      return static_cast<std::uint16_t>((known & 0xffff) - 1);
    }
  }
  return std::nullopt;
}

MacTable::Bucket& MacTable::bucket_of(std::uint64_t address) const {
  const std::uint64_t hash = address * 0x9e3779b97f4a7c15;
  return table_[(hash ^ hash >> 32) & (buckets_ - 1)];
}

bool MacTable::is_fresh(const Cell& cell, std::uint64_t now) const {
  // Another lcore's clock reading may be a little ahead of `now`.
  return static_cast<std::int64_t>(now - cell.heard.load(std::memory_order_relaxed)) <=
         static_cast<std::int64_t>(aging_);
}

MacTable::Cell& MacTable::cell_to_reuse(Bucket& bucket, std::uint64_t now) const {
  Cell* oldest = bucket.data();
  for (Cell& cell : bucket) {
    if (cell.station.load(std::memory_order_relaxed) == 0 || !is_fresh(cell, now)) {
      return cell;
    }
    if (cell.heard.load(std::memory_order_relaxed) <
        oldest->heard.load(std::memory_order_relaxed)) {
      oldest = &cell;
    }
  }
  return *oldest;
}

} // namespace weir::l2
