// SPDX-License-Identifier: BSD-3-Clause
#include "ring/digest_difference.hpp"

#include "ring/ring.hpp"
#include "weir/ina.hpp"
#include "weir/limits.hpp"

#include <array>
#include <bit>

namespace weir::ring {
namespace {

using Number = std::uint32_t RingSpec::*;

// Lengths that people choose are multiples of the one, and no more than the other.
constexpr std::uint32_t kUsualStep = 8;
constexpr std::uint32_t kUsualMost = 1U << 24;

/// What a bit of the number changes in the digest, whatever the other bits are.
std::array<std::uint32_t, 32> changes_by_bit(const RingSpec& spec, Number number) {
  const std::uint32_t before = digest_of(spec);
  RingSpec other = spec;
  std::array<std::uint32_t, 32> changes{};
  for (unsigned bit = 0; bit < 32; ++bit) {
    other.*number = spec.*number ^ 1u << bit;
    changes[bit] = before ^ digest_of(other);
  }
  return changes;
}

/// A row of the elimination: the change in the digest, and the bits of the number that make it.
struct Row {
  std::uint32_t change = 0;
  std::uint32_t bits = 0;
};

/// Takes the rows' leading bits out of it, as far as they are there.
Row reduced(Row row, const std::vector<Row>& basis) {
  for (const Row& known : basis) {
    if ((row.change & std::bit_floor(known.change)) != 0) {
      row.change ^= known.change;
      row.bits ^= known.bits;
    }
  }
  return row;
}

/// The one number with which the ring has the digest. A CRC-32 tells all words of 32 bits from one
/// another, so the 32 changes are independent.
std::uint32_t number_with(const RingSpec& spec, Number number, std::uint32_t digest) {
  std::vector<Row> basis;
  const auto changes = changes_by_bit(spec, number);
  for (unsigned bit = 0; bit < 32; ++bit) {
    basis.push_back(reduced({changes[bit], 1u << bit}, basis));
  }
  return spec.*number ^ reduced({digest ^ digest_of(spec), 0}, basis).bits;
}

/// False for most: where members differ, a length comes out too.
bool is_likely_length(std::uint32_t bytes) {
  return bytes >= kInaHeaderBytes && bytes <= kUsualMost && bytes % kUsualStep == 0;
}

} // namespace

std::vector<OtherNumber> numbers_that_differ(const RingSpec& ours, std::uint32_t their_digest) {
  for (const std::uint64_t mtu : kPathMtus) {
    RingSpec theirs = ours;
    theirs.mtu = static_cast<std::uint16_t>(mtu);
    std::vector<OtherNumber> differ;
    if (theirs.mtu != ours.mtu) {
      differ.push_back({"mtu", theirs.mtu, ours.mtu});
    }
    if (digest_of(theirs) == their_digest) {
      return differ;
    }
    theirs.window = number_with(theirs, &RingSpec::window, their_digest);
    if (theirs.window >= 1 && theirs.window <= kMaxWindow) {
      differ.push_back({"window", theirs.window, ours.window});
      return differ;
    }
  }
  const std::uint32_t bytes = number_with(ours, &RingSpec::max_message_bytes, their_digest);
  return is_likely_length(bytes)
             ? std::vector<OtherNumber>{{"max_message_bytes", bytes, ours.max_message_bytes}}
             : std::vector<OtherNumber>();
}

} // namespace weir::ring
