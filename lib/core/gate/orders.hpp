// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gate/profile.hpp"
#include "gate/tls_files.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::gate {

/// What a client has to show.
enum class Certificates : std::uint8_t {
  required,
  asked_for, // the call may have another proof
};

/// What a service tells weir-gate when it starts it.
struct Orders {
  const Profile* profile; // outlives it
  Certificates certificates;
  TlsFiles files;
};

/// As many words of weir-gate's command line are its orders.
inline constexpr std::size_t kOrderWords = 5;

std::vector<std::string> words_of(const Orders& orders);

/// Nothing: the words are none of words_of().
std::optional<Orders> orders_in(std::span<const std::string> words);

} // namespace weir::gate
