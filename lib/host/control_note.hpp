// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What control frames carry: errors, and integers in network order.

#include "weir/communicator.hpp"
#include "wire/big_endian.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::host {

/// An Error as it travels.
struct ErrorBody {
  std::uint8_t code;
  std::uint8_t has_rank;
  wire::be16 rank;
};

static_assert(sizeof(ErrorBody) == 4);

/// The text follows the fields.
inline std::vector<std::uint8_t> encode(const Error& error) {
  const ErrorBody body{static_cast<std::uint8_t>(error.code()),
                       static_cast<std::uint8_t>(error.rank().has_value() ? 1 : 0),
                       wire::be16(error.rank().value_or(0))};
  const auto* fields = reinterpret_cast<const std::uint8_t*>(&body);
  std::vector<std::uint8_t> bytes(fields, fields + sizeof(body));
  const std::string_view text = error.what();
  bytes.insert(bytes.end(), text.begin(), text.end());
  return bytes;
}

inline Error decode_error(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < sizeof(ErrorBody) ||
      bytes[0] > static_cast<std::uint8_t>(ErrorCode::transport_failure)) {
    return {ErrorCode::transport_failure, 0, "rank 0 sent an error that cannot be read"};
  }
  const auto& body = wire::view_as<ErrorBody>(bytes.data());
  const std::string text(bytes.begin() + sizeof(ErrorBody), bytes.end());
  const auto rank =
      body.has_rank != 0 ? std::optional<std::uint16_t>(body.rank.get()) : std::nullopt;
  return {static_cast<ErrorCode>(body.code), rank, text};
}

template <typename Struct>
std::span<const std::uint8_t> bytes_of(const Struct& fields) {
  static_assert(alignof(Struct) == 1);
  return {reinterpret_cast<const std::uint8_t*>(&fields), sizeof(Struct)};
}

} // namespace weir::host
