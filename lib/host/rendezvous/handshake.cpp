// SPDX-License-Identifier: BSD-3-Clause
#include "host/rendezvous/handshake.hpp"

#include "host/base/control_note.hpp"

#include <algorithm>

namespace weir::host {
namespace {

ByteView bytes_in(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// The purpose keeps a code that was made for one message from being of use in another.
Mac mac_for(std::string_view purpose, const Credentials& own, ByteView first,
            ByteView second = {}) {
  return mac_of(bytes_in(own.secret), {bytes_in(purpose), first, second});
}

Mac proof_of_join(const Credentials& own, ByteView unproven) {
  return mac_for("weir join 1:", own, unproven);
}

Mac proof_of_challenge(const Credentials& own, ByteView join, const Nonce& nonce) {
  return mac_for("weir challenge 1:", own, join, nonce);
}

void append(std::vector<std::uint8_t>& message, ByteView bytes) {
  message.insert(message.end(), bytes.begin(), bytes.end());
}

} // namespace

std::string_view text_of(Refusal refusal) {
  switch (refusal) {
  case Refusal::another_job:
    return "rank 0 is of another job";
  case Refusal::another_secret:
    return "rank 0 has another secret";
  case Refusal::secret_missing:
    return "rank 0 has a secret, this rank has none";
  case Refusal::secret_unexpected:
    return "rank 0 has no secret, this rank has one";
  }
  return "rank 0 does not say why";
}

std::optional<Refusal> read_refusal(ByteView body) {
  constexpr auto last = static_cast<std::uint8_t>(Refusal::secret_unexpected);
  if (body.size() != 1 || body[0] == 0 || body[0] > last) {
    return std::nullopt;
  }
  return static_cast<Refusal>(body[0]);
}

std::vector<std::uint8_t> make_join(const Credentials& own, const Claim& claim,
                                    const Nonce& nonce) {
  const JoinBody body{nonce, wire::be16(claim.rank), wire::be16(claim.world),
                      static_cast<std::uint8_t>(own.job.size()),
                      static_cast<std::uint8_t>(own.secret.empty() ? 0 : sizeof(Mac))};
  std::vector<std::uint8_t> join;
  append(join, bytes_of(body));
  append(join, bytes_in(own.job));
  if (!own.secret.empty()) {
    append(join, proof_of_join(own, join));
  }
  return join;
}

std::optional<Claim> read_join(ByteView join) {
  if (join.size() < sizeof(JoinBody)) {
    return std::nullopt;
  }
  const auto& body = wire::view_as<JoinBody>(join.data());
  if ((body.proof_bytes != 0 && body.proof_bytes != sizeof(Mac)) ||
      body.job_bytes > kMostJobBytes ||
      join.size() != sizeof(JoinBody) + body.job_bytes + body.proof_bytes) {
    return std::nullopt;
  }
  return Claim{body.rank.get(), body.world.get()};
}

std::optional<Refusal> objection_to(ByteView join, const Credentials& own) {
  const auto& body = wire::view_as<JoinBody>(join.data());
  const ByteView job = join.subspan(sizeof(JoinBody), body.job_bytes);
  if (!std::ranges::equal(job, bytes_in(own.job))) {
    return Refusal::another_job;
  }
  const bool has_proof = body.proof_bytes != 0;
  if (has_proof == own.secret.empty()) {
    return has_proof ? Refusal::secret_unexpected : Refusal::secret_missing;
  }
  const ByteView unproven = join.first(join.size() - body.proof_bytes);
  if (has_proof && !is_same_mac(proof_of_join(own, unproven), join.last(sizeof(Mac)))) {
    return Refusal::another_secret;
  }
  return std::nullopt;
}

std::vector<std::uint8_t> make_challenge(const Credentials& own, ByteView join,
                                         const Nonce& nonce) {
  std::vector<std::uint8_t> challenge(nonce.begin(), nonce.end());
  if (!own.secret.empty()) {
    append(challenge, proof_of_challenge(own, join, nonce));
  }
  return challenge;
}

std::optional<Nonce> read_challenge(ByteView challenge, ByteView join, const Credentials& own) {
  const std::size_t due = sizeof(Nonce) + (own.secret.empty() ? 0 : sizeof(Mac));
  if (challenge.size() != due) {
    return std::nullopt;
  }
  Nonce nonce;
  std::ranges::copy(challenge.first(sizeof(Nonce)), nonce.begin());
  if (!own.secret.empty() &&
      !is_same_mac(proof_of_challenge(own, join, nonce), challenge.last(sizeof(Mac)))) {
    return std::nullopt;
  }
  return nonce;
}

SessionKeys session_keys(const Credentials& own, ByteView join, const Nonce& rank_0) {
  return {mac_for("weir from rank 0 1:", own, join, rank_0),
          mac_for("weir to rank 0 1:", own, join, rank_0)};
}

} // namespace weir::host
