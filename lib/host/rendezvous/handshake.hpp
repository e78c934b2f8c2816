// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What a caller and rank 0 say until the caller is admitted, as bytes (docs/host.md, "How the
/// ranks meet"). No sockets here.
///
///     caller                                            rank 0
///       │  join: rank, world, job, nonce C, proof         │
///       ├────────────────────────────────────────────────►│  refused: why  (and it closes)
///       │  challenge: nonce 0, proof                      │
///       │◄────────────────────────────────────────────────┤
///       │  answer: nonce 0                                │  from here on,
///       ├────────────────────────────────────────────────►│  each frame has its code
///       │  welcome                                        │  (FrameSeal)
///       │◄────────────────────────────────────────────────┤
///
/// Without a secret there are no proofs and no codes. The answer then only shows that the caller
/// speaks this protocol and is alive.

#include "host/base/frame_seal.hpp"
#include "wire/big_endian.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::host {

inline constexpr std::size_t kMostJobBytes = 64;
inline constexpr std::size_t kFewestSecretBytes = 16;
inline constexpr std::size_t kMostSecretBytes = 1024;

/// What the ranks of a job have in common, and no stranger has.
struct Credentials {
  std::string job;
  std::string secret; // empty: none
};

/// Random for each connection, so that no earlier connection's bytes are of use in it.
using Nonce = std::array<std::uint8_t, 16>;

struct JoinBody {
  Nonce nonce;
  wire::be16 rank;
  wire::be16 world;
  std::uint8_t job_bytes;
  std::uint8_t proof_bytes; // 0 or 32
  // The job's name and the proof follow.
};

static_assert(sizeof(JoinBody) == 22);

inline constexpr std::size_t kMostJoinBytes = sizeof(JoinBody) + kMostJobBytes + sizeof(Mac);
inline constexpr std::size_t kMostChallengeBytes = sizeof(Nonce) + sizeof(Mac);

/// Who a caller says it is.
struct Claim {
  std::uint16_t rank = 0;
  std::uint16_t world = 0;
};

/// Why rank 0 does not hear a caller any further.
enum class Refusal : std::uint8_t {
  another_job = 1,
  another_secret,
  secret_missing,    // rank 0 has one, the caller none
  secret_unexpected, // the caller has one, rank 0 none
};

/// "rank 0 has another secret".
std::string_view text_of(Refusal refusal);

/// nullopt for a body that is none.
std::optional<Refusal> read_refusal(ByteView body);

std::vector<std::uint8_t> make_join(const Credentials& own, const Claim& claim, const Nonce& nonce);

/// nullopt for a body that is no join.
std::optional<Claim> read_join(ByteView join);

/// What rank 0 has against a join. `join` is one that read_join can read.
std::optional<Refusal> objection_to(ByteView join, const Credentials& own);

std::vector<std::uint8_t> make_challenge(const Credentials& own, ByteView join, const Nonce& nonce);

/// The nonce of rank 0. nullopt when who sent the challenge does not know the secret.
std::optional<Nonce> read_challenge(ByteView challenge, ByteView join, const Credentials& own);

/// One key for each direction, so that no frame can be sent back to its sender.
struct SessionKeys {
  Mac from_rank_0;
  Mac to_rank_0;
};

SessionKeys session_keys(const Credentials& own, ByteView join, const Nonce& rank_0);

} // namespace weir::host
