// SPDX-License-Identifier: BSD-3-Clause
#include "host/shrink/shrink_membership.hpp"

#include "wire/big_endian.hpp"

#include <algorithm>
#include <cstddef>

namespace weir::host {
namespace {

void append(std::vector<std::uint8_t>& bytes, std::uint16_t number) {
  bytes.push_back(static_cast<std::uint8_t>(number >> 8));
  bytes.push_back(static_cast<std::uint8_t>(number));
}

std::uint16_t number_at(ByteView bytes, std::size_t place) {
  return wire::view_as<wire::be16>(bytes.data() + place * sizeof(wire::be16)).get();
}

} // namespace

std::vector<std::uint8_t> encode(const ShrinkMembership& membership) {
  std::vector<std::uint8_t> bytes;
  append(bytes, static_cast<std::uint16_t>(membership.members.size()));
  for (const std::uint16_t member : membership.members) {
    append(bytes, member);
  }
  for (const std::uint16_t rank : membership.left_out) {
    append(bytes, rank);
  }
  return bytes;
}

std::optional<ShrinkMembership> decode_membership(ByteView bytes) {
  const std::size_t numbers = bytes.size() / sizeof(wire::be16);
  if (numbers == 0 || bytes.size() % sizeof(wire::be16) != 0 || number_at(bytes, 0) >= numbers) {
    return std::nullopt;
  }
  ShrinkMembership membership;
  const std::size_t end = std::size_t{1} + number_at(bytes, 0);
  for (std::size_t place = 1; place < numbers; ++place) {
    if (place < end) {
      membership.members.push_back(number_at(bytes, place));
    } else {
      membership.left_out.insert(number_at(bytes, place));
    }
  }
  const bool is_ascending =
      std::ranges::adjacent_find(membership.members, std::greater_equal<>()) ==
      membership.members.end();
  return is_ascending ? std::optional(membership) : std::nullopt;
}

bool may_go_on(const ShrinkMembership& membership, std::uint16_t original_world) {
  if (membership.left_out.empty()) {
    return true;
  }
  const std::size_t twice = 2 * membership.members.size();
  const bool has_rank_0 = membership.members.front() == 0;
  return twice > original_world || (twice == original_world && has_rank_0);
}

} // namespace weir::host
