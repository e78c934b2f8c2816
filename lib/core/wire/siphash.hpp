// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/keyed_hash.hpp"

#include <cstdint>
#include <span>

namespace weir::wire {

/// SipHash-2-4 (Aumasson and Bernstein, INDOCRYPT 2012): without the key nobody can tell its values
/// from random numbers, however many they have seen. For what is shown to others and must not be
/// guessed; keyed_hash() is faster, and for tables whose places nobody sees.
std::uint64_t siphash(const HashKey& key, std::span<const std::uint8_t> message);

} // namespace weir::wire
