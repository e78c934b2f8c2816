// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The content of control frames: kinds, calls, errors, and integers in network order.

#include "host/base/call.hpp"
#include "host/base/error.hpp"
#include "host/base/peer_text.hpp"
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

  blob,       // to rank 0: one rank's part of a gather
  blobs,      // from rank 0: all parts in rank order
  calls,      // to rank 0: what a rank has called since the last; bodies: NumberedCall
  failed,     // body: an error's code, rank and text; from rank 0: the job's error
  leave,      // a rank makes no more calls; body: LeaveBody
  all_left,   // from rank 0
  suspect,    // to rank 0: a rank sees no progress; body: its error
  question,   // from rank 0: how far are you?
  progress,   // to rank 0: ProgressBody
  patience,   // from rank 0: no rank is to blame yet; body: whom they wait for, as text
  withdrawn,  // from a caller that needs nobody here; instead of a join
  membership, // from the rank that leads a shrink: who goes on; body: encode(ShrinkMembership)
  region_end, // from rank 0: the switch has ended a region; body: RegionEndBody, and why as text
};

constexpr std::uint8_t code(ControlKind kind) {
  return static_cast<std::uint8_t>(kind);
}

/// Whether a rank may send such a frame between the rendezvous and its end.
constexpr bool may_send(ControlKind kind, std::uint16_t rank) {
  switch (kind) {
  case ControlKind::failed:
  case ControlKind::leave:
    return true;
  case ControlKind::calls:
  case ControlKind::suspect:
  case ControlKind::progress:
    return rank != 0;
  case ControlKind::all_left:
  case ControlKind::question:
  case ControlKind::patience:
  case ControlKind::region_end:
    return rank == 0;
  default:
    return false;
  }
}

struct NumberedCall {
  wire::be64 sequence;
  CallBody call;
};

static_assert(sizeof(NumberedCall) == 22);

/// Of calls in one frame. No frame between the rendezvous and the job's end has a longer body.
inline constexpr std::size_t kMostCallBytes = 1'000 * sizeof(NumberedCall);

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

/// A region of a group that has ended.
struct EndedRegion {
  std::uint32_t number = 0; // of the group's regions: 1, 2, 3, …
  std::string why;
};

struct RegionEndBody {
  wire::be32 number; // of the group's regions
};

static_assert(sizeof(RegionEndBody) == 4);

/// An Error on the wire.
struct ErrorBody {
  std::uint8_t code;
  std::uint8_t has_rank;
  wire::be16 rank;
};

static_assert(sizeof(ErrorBody) == 4);

/// Whether a frame that may_send() allows may have so many bytes after its header.
constexpr bool may_have(ControlKind kind, std::size_t bytes) {
  switch (kind) {
  case ControlKind::calls:
    return bytes != 0 && bytes % sizeof(NumberedCall) == 0 && bytes <= kMostCallBytes;
  case ControlKind::failed:
    return bytes >= sizeof(ErrorBody) && bytes <= sizeof(ErrorBody) + kMostPeerText;
  case ControlKind::suspect: // the suspicion's kind comes first
    return bytes > sizeof(ErrorBody) && bytes <= 1 + sizeof(ErrorBody) + kMostPeerText;
  case ControlKind::patience:
    return bytes <= kMostPeerText;
  case ControlKind::region_end:
    return bytes >= sizeof(RegionEndBody) && bytes <= sizeof(RegionEndBody) + kMostPeerText;
  case ControlKind::leave:
    return bytes == sizeof(LeaveBody);
  case ControlKind::progress:
    return bytes == sizeof(ProgressBody);
  default:
    return bytes == 0;
  }
}

/// The text follows the fields.
inline std::vector<std::uint8_t> encode(const Error& error) {
  const ErrorBody body{static_cast<std::uint8_t>(error.code()),
                       static_cast<std::uint8_t>(error.rank().has_value() ? 1 : 0),
                       wire::be16(error.rank().value_or(0))};
  const auto* fields = reinterpret_cast<const std::uint8_t*>(&body);
  std::vector<std::uint8_t> bytes(fields, fields + sizeof(body));
  const std::string text = peer_text(error.what());
  bytes.insert(bytes.end(), text.begin(), text.end());
  return bytes;
}

/// Who sent an error, and of how many ranks.
struct Sender {
  std::uint16_t rank = 0;
  std::uint16_t world = 0;
};

/// An error about no rank if it names one that the group does not have. The sender's if it cannot
/// be read, or has none of so many codes.
inline Error decode_error(std::span<const std::uint8_t> bytes, const Sender& sender,
                          std::uint8_t codes = kErrorCodes) {
  if (bytes.size() < sizeof(ErrorBody) || bytes[0] >= codes) {
    return {ErrorCode::transport_failure, sender.rank,
            "rank " + std::to_string(sender.rank) + " sent an error that cannot be read"};
  }
  const auto& body = wire::view_as<ErrorBody>(bytes.data());
  const std::string text = peer_text(std::string(bytes.begin() + sizeof(ErrorBody), bytes.end()));
  const bool has_rank = body.has_rank != 0 && body.rank.get() < sender.world;
  const auto rank = has_rank ? std::optional<std::uint16_t>(body.rank.get()) : std::nullopt;
  return {static_cast<ErrorCode>(body.code), rank, text};
}

template <typename Struct>
std::span<const std::uint8_t> bytes_of(const Struct& fields) {
  static_assert(alignof(Struct) == 1);
  return {reinterpret_cast<const std::uint8_t*>(&fields), sizeof(Struct)};
}

} // namespace weir::host
