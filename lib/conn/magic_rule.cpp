// SPDX-License-Identifier: BSD-3-Clause
#include "conn/magic_rule.hpp"

#include "frame/frame.hpp"
#include "wire/icrc.hpp"
#include "wire/parse.hpp"

namespace weir::conn {

using frame::Frame;
using wire::Position;

std::optional<DropReason> MagicRule::why_not_forwarded(Frame& frame, std::uint64_t now) {
  const wire::OpcodeInfo& opcode = frame.packet.opcode;
  if (frame.packet.parsed == wire::Parsed::malformed || opcode.position == Position::none) {
    return std::nullopt;
  }
  const wire::InaHeader* ina = wire::find_ina_header(frame);
  if (ina == nullptr && table_.size() == 0) [[likely]] {
    return std::nullopt;
  }
  const std::uint64_t key = key_of(frame);
  QueuePair* known = find(key, now);
  if (opcode.starts_message() && wire::icrc_is_valid(frame)) {
    if (ina == nullptr) {
      forget(known);
      return std::nullopt;
    }
    const State state = state_after_header(known, frame, *ina);
    set(key, state, now);
    return state == State::barred ? std::optional(DropReason::unannounced) : std::nullopt;
  }
  if (known == nullptr || known->state == State::open) {
    return std::nullopt;
  }
  known->last_seen = now;
  return DropReason::unannounced;
}

MagicRule::State MagicRule::state_after_header(const QueuePair* known, const Frame& frame,
                                               const wire::InaHeader& ina) {
  const bool is_result = (ina.flags & kInaFlagResult) != 0;
  if (wire::is_hello(frame, ina)) {
    if (is_result) {
      settings_.sessions->note(frame, ina);
    }
    return State::announced;
  }
  const bool was_greeted = known != nullptr && known->state != State::barred;
  const bool is_answered = is_result || settings_.sessions->has(frame, ina);
  return was_greeted && is_answered ? State::open : State::barred;
}

void MagicRule::forget(const QueuePair* known) {
  if (known != nullptr) {
    table_.erase(*known);
  }
}

/// A keyed hash of the queue pair and the port, because addresses are too long to store. Without
/// the key nobody can make two queue pairs collide.
std::uint64_t MagicRule::key_of(const Frame& frame) const {
  const auto [source_high, source_low] = frame.source().words();
  const auto [destination_high, destination_low] = frame.destination().words();
  const HashKey& key = settings_.hash_key;
  const std::uint64_t source = keyed_hash(key, source_high, source_low);
  const std::uint64_t destination = keyed_hash(key, destination_high, destination_low);
  const std::uint64_t queue_pair = std::uint64_t{frame.ingress} << 24 | frame.packet.destination_qp;
  return keyed_hash(key, source, destination + queue_pair) >> 1;
}

/// An announced queue pair may make room for another: if it is forgotten, its host must only say
/// hello again. Barred and open ones stay until they have aged.
std::optional<std::uint64_t> MagicRule::age_of(const QueuePair& old, std::uint64_t now) const {
  const std::uint64_t age = now - old.last_seen;
  const bool may_go = old.state == State::announced || age > settings_.aging;
  return may_go ? std::optional(age) : std::nullopt;
}

MagicRule::QueuePair* MagicRule::find(std::uint64_t key, std::uint64_t now) {
  QueuePair* known = table_.find(key);
  if (known != nullptr && now - known->last_seen > settings_.aging) {
    table_.erase(*known);
    return nullptr;
  }
  return known;
}

void MagicRule::set(std::uint64_t key, State state, std::uint64_t now) {
  QueuePair* known = find(key, now);
  if (known == nullptr) {
    known = table_.insert(key, [&](const QueuePair& old) { return age_of(old, now); });
  }
  if (known != nullptr) {
    *known = {state, now};
  }
}

} // namespace weir::conn
