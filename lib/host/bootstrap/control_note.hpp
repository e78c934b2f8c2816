// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The content of control frames: kinds, calls, errors, and integers in network order.

#include "host/bootstrap/call.hpp"
#include "host/bootstrap/error.hpp"
#include "wire/big_endian.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::host {

/// First byte of every control frame.
enum class ControlKind : std::uint8_t {
  // Until a caller is admitted; bodies: handshake.hpp
  join = 1,  // a caller asks to be admitted
  challenge, // from rank 0: who are you?
  answer,    // the challenge's nonce back
  welcome,   // from rank 0: the caller is admitted
  refused,   // from rank 0 instead of a challenge

  blob,      // to rank 0: one rank's part of a gather
  blobs,     // from rank 0: all parts in rank order
  calls,     // to rank 0: what a rank has called since the last; bodies: NumberedCall
  failed,    // body: an error's code, rank and text; from rank 0: the job's error
  leave,     // a rank makes no more calls; body: LeaveBody
  all_left,  // from rank 0
  suspect,   // to rank 0: a rank sees no progress; body: its error
  question,  // from rank 0: how far are you?
  progress,  // to rank 0: ProgressBody
  patience,  // from rank 0: no rank is to blame yet; body: whom they wait for, as text
  withdrawn, // from a caller that needs nobody here; instead of a join
  roster,    // from the rank that leads a shrink: who goes on; body: encode(Roster)
};

constexpr std::uint8_t code(ControlKind kind) {
  return static_cast<std::uint8_t>(kind);
}

struct NumberedCall {
  wire::be64 sequence;
  CallBody call;
};

static_assert(sizeof(NumberedCall) == 22);

struct LeaveBody {
  wire::be64 calls_made;
};

static_assert(sizeof(LeaveBody) == 8);

/// How far a rank is.
struct ProgressBody {
  wire::be64 calls_made;
  wire::be64 calls_done;
  wire::be64 bytes_done;
  std::uint8_t stands_still; // 0 or 1
};

static_assert(sizeof(ProgressBody) == 25);

/// An Error on the wire.
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
  if (bytes.size() < sizeof(ErrorBody) || bytes[0] >= kErrorCodes) {
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
