// SPDX-License-Identifier: BSD-3-Clause
#include "conn/magic_rule.hpp"

#include "frame/frame.hpp"
#include "wire/icrc.hpp"
#include "wire/parse.hpp"
#include "wire/sum_stamp.hpp"

namespace weir::conn {

using frame::Frame;
using wire::Position;

std::optional<DropReason> MagicRule::why_not_forwarded(Frame& frame, std::uint64_t now) {
  const wire::OpcodeInfo& opcode = frame.packet.opcode;
  if (frame.packet.parsed == wire::Parsed::malformed || opcode.position == Position::none) {
    return std::nullopt;
  }
  const wire::InaHeader* ina = wire::find_ina_header(frame);
  if (ina == nullptr && remembers_nobody(frame.ingress)) [[likely]] {
    return std::nullopt;
  }
  const std::optional<DropReason> reason = judge(frame, ina, now);
  note_what_is_left(frame.ingress);
  return reason;
}

std::optional<DropReason> MagicRule::judge(Frame& frame, const wire::InaHeader* ina,
                                           std::uint64_t now) {
  Table& table = tables_.of(frame.ingress);
  const std::uint64_t key = key_of(frame);
  QueuePair* known = find(table, key, now);
  if (frame.packet.opcode.starts_message() && wire::icrc_is_valid(frame)) {
    if (ina == nullptr) {
      if (known != nullptr) {
        table.erase(*known);
      }
      return std::nullopt;
    }
    const bool is_partial = wire::is_partial(*ina);
    const State state = is_partial ? State::barred : state_after_header(known, frame, *ina, now);
    set(table, key, state, frame, now);
    if (is_partial) {
      return DropReason::partial_of_unknown_ring;
    }
    return state == State::barred ? std::optional(DropReason::unannounced) : std::nullopt;
  }
  if (known == nullptr) {
    return may_be_barred(frame.ingress, now) ? std::optional(DropReason::unannounced)
                                             : std::nullopt;
  }
  if (known->state == State::open) {
    return std::nullopt;
  }
  known->last_seen = now;
  return DropReason::unannounced;
}

void MagicRule::note_what_is_left(std::uint16_t port) {
  const bool is_something = tables_.of(port).size() != 0 || overfull_until_[port % kMostPorts] != 0;
  remembering_ = is_something ? remembering_ | bit_of(port) : remembering_ & ~bit_of(port);
}

MagicRule::State MagicRule::state_after_header(const QueuePair* known, const Frame& frame,
                                               const wire::InaHeader& ina, std::uint64_t now) {
  if (wire::is_hello(frame, ina)) {
    settings_.sessions->note(frame, ina, now);
    return State::announced;
  }
  const bool was_greeted = known != nullptr && known->state != State::barred;
  const bool is_answered = wire::is_result(ina) || settings_.sessions->has(frame, ina);
  return was_greeted && is_answered ? State::open : State::barred;
}

/// A keyed hash of the queue pair and its port, because addresses are too long to store. Without
/// the key nobody can make two queue pairs collide.
std::uint64_t MagicRule::key_of(const Frame& frame) const {
  const auto [source_high, source_low] = frame.source().words();
  const auto [destination_high, destination_low] = frame.destination().words();
  const HashKey& key = settings_.hash_key;
  const std::uint64_t source = keyed_hash(key, source_high, source_low);
  const std::uint64_t destination = keyed_hash(key, destination_high, destination_low);
  const std::uint64_t way = std::uint64_t{frame.ingress} << 24 | frame.packet.destination_qp;
  return keyed_hash(key, source, destination + way) >> 1;
}

/// An announced queue pair may make room for another: if it is forgotten, its host must only say
/// hello again. Barred and open ones stay until they have aged.
std::optional<std::uint64_t> MagicRule::age_of(const QueuePair& old, std::uint64_t now) const {
  const std::uint64_t age = now - old.last_seen;
  const bool may_go = old.state == State::announced || age > settings_.aging;
  return may_go ? std::optional(age) : std::nullopt;
}

MagicRule::QueuePair* MagicRule::find(Table& table, std::uint64_t key, std::uint64_t now) const {
  QueuePair* known = table.find(key);
  if (known != nullptr && now - known->last_seen > settings_.aging) {
    table.erase(*known);
    return nullptr;
  }
  return known;
}

/// Whether some queue pair of the port is barred that found no place.
bool MagicRule::may_be_barred(std::uint16_t port, std::uint64_t now) {
  std::uint64_t& until = overfull_until_[port % kMostPorts];
  until = now < until ? until : 0;
  return until != 0;
}

void MagicRule::set(Table& table, std::uint64_t key, State state, const Frame& frame,
                    std::uint64_t now) {
  QueuePair* known = find(table, key, now);
  if (known == nullptr) {
    known = table.insert(key, [&](const QueuePair& old) { return age_of(old, now); });
  }
  if (known != nullptr) {
    *known = {state, now};
  } else if (state == State::barred) {
    overfull_until_[frame.ingress % kMostPorts] = now + settings_.aging;
  }
}

} // namespace weir::conn
