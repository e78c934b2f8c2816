// SPDX-License-Identifier: BSD-3-Clause
#include "answer_watch.hpp"

#include "scenario.hpp"
#include "violation.hpp"
#include "wire/headers.hpp"
#include "wire/icrc.hpp"
#include "wire/parse.hpp"
#include "wire/psn.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::fabric {
namespace {

// IBTA §9.7.5.2: the two upper bits of a syndrome say what it is.
constexpr std::uint8_t kKindMask = 0x60;
constexpr std::uint8_t kAck = 0x00;
constexpr std::uint8_t kRnrNak = 0x20;
constexpr std::uint8_t kSequenceError = 0x60;
constexpr std::uint8_t kInvalidRequest = 0x61;
constexpr std::uint8_t kRemoteAccess = 0x62;
constexpr std::uint8_t kAcknowledge = 0x11; // opcode
constexpr std::uint16_t kMostHosts = 24;
constexpr Time kPause = 15 * kMillisecond; // between two RNR NAKs

bool acknowledges_anything(std::uint8_t syndrome) {
  return (syndrome & kKindMask) == kAck || (syndrome & kKindMask) == kRnrNak ||
         syndrome == kSequenceError;
}

} // namespace

const conn::Incarnations& AnswerWatch::incarnations_for(const Record& record,
                                                        const stage::InlineSwitch& engine) {
  return engine.worker_of(record.requester.ring).incarnations();
}

std::uint64_t AnswerWatch::kept_alive(const conn::Incarnations& incarnations,
                                      const Record& record) {
  const Requester& requester = record.requester;
  return incarnations.has(requester.ring)
             ? incarnations.status_of(requester.ring, requester.sender).recovery.kept_alive
             : 0;
}

std::uint32_t AnswerWatch::Answer::acknowledges() const {
  return (syndrome & kKindMask) == kAck ? wire::psn_add(psn, 1) : psn;
}

bool AnswerWatch::is_answer(const Packet& packet) {
  constexpr std::size_t ethernet_type_at = 12;
  const bool is_ipv4 = packet.data[ethernet_type_at] == 0x08;
  const std::size_t bth_at = sizeof(wire::EthernetHeader) + sizeof(wire::UdpHeader) +
                             (is_ipv4 ? sizeof(wire::Ipv4Header) : sizeof(wire::Ipv6Header));
  return packet.length > bth_at && packet.data[bth_at] == kAcknowledge;
}

/// nullopt also for an answer to a stranger.
std::optional<AnswerWatch::Answer> AnswerWatch::read(const Packet& packet) {
  if (!is_answer(packet)) {
    return std::nullopt;
  }
  const std::size_t bth_at = wire::parse(packet.bytes()).bth_offset;
  const auto& bth = wire::view_as<wire::Bth>(packet.data + bth_at);
  const auto& aeth = wire::view_as<wire::Aeth>(packet.data + bth_at + sizeof(wire::Bth));
  const auto& ethernet = wire::view_as<wire::EthernetHeader>(packet.data);
  const auto host = static_cast<std::uint16_t>(ethernet.destination.bytes[5] - 1);
  if (host >= kMostHosts || ethernet.destination != mac_of_host(host)) {
    return std::nullopt;
  }
  return Answer{host, bth.destination_qp.get(), bth.psn.get(), aeth.syndrome,
                aeth.message_sequence.get()};
}

void AnswerWatch::expect(const Requester& requester) {
  Record& record = records_[{requester.ring, requester.rank}];
  const bool is_reused = record.requester.generation != 0 && record.requester.qp == requester.qp;
  former_.erase({requester.ring, requester.rank});
  if (record.requester.generation != 0 && !is_reused) {
    former_.emplace(Place(requester.ring, requester.rank), record);
  }
  record = {.requester = requester,
            .acknowledged = requester.first_psn,
            .released = requester.first_psn,
            .left = requester.first_psn,
            .passed = requester.first_psn,
            .brought = requester.first_psn,
            .sequences = {{requester.first_psn, 0}},
            .is_reused = is_reused};
}

void AnswerWatch::forget(std::uint16_t ring) {
  for (auto& [place, record] : records_) {
    if (place.first == ring) {
      record.is_known = false;
      record.is_told = false;
      record.left = record.passed = record.requester.first_psn; // the switch remembers none of it
      record.nak.reset();
      record.rnr_nak.reset();
    }
  }
}

const AnswerWatch::Record* AnswerWatch::record_of(const Answer& answer) const {
  for (const auto& [place, record] : records_) {
    if (record.requester.host == answer.host && record.requester.qp == answer.qp) {
      return &record;
    }
  }
  return nullptr;
}

template <typename Visitor>
void AnswerWatch::for_each_meant(const Answer& answer, std::uint32_t generation, Visitor&& visit) {
  for (auto* const records : {&records_, &former_}) {
    for (auto& [place, record] : *records) {
      const Requester& requester = record.requester;
      if (requester.host == answer.host && requester.qp == answer.qp &&
          requester.generation == generation) {
        visit(record);
      }
    }
  }
}

void AnswerWatch::sends(const Packet& packet) {
  const auto answer = read(packet);
  if (!answer || !acknowledges_anything(answer->syndrome)) {
    return;
  }
  for_each_meant(*answer, packet.origin.generation, [&](Record& record) {
    record.sequences[answer->acknowledges()] = answer->message_sequence;
    if (wire::psn_before(record.acknowledged, answer->acknowledges())) {
      record.acknowledged = answer->acknowledges();
    }
  });
}

void AnswerWatch::has_passed(const Packet& packet) {
  const auto answer = read(packet);
  if (!answer || !acknowledges_anything(answer->syndrome)) {
    return;
  }
  for_each_meant(*answer, packet.origin.generation, [&](Record& record) {
    const bool is_of_former_life = wire::psn_before(record.left, answer->acknowledges());
    if (!is_of_former_life && wire::psn_before(record.passed, answer->acknowledges())) {
      record.passed = answer->acknowledges();
    }
  });
}

void AnswerWatch::brings(const Packet& packet) {
  frame::Frame frame = packet;
  frame.packet = wire::parse(packet.bytes());
  if (frame.packet.parsed != wire::Parsed::message || !wire::icrc_is_valid(frame)) {
    return;
  }
  for (auto* const records : {&records_, &former_}) {
    const auto found = records->find({packet.origin.ring, packet.origin.rank});
    if (found == records->end() || found->second.requester.generation != packet.origin.generation) {
      continue;
    }
    const std::uint32_t end = wire::psn_add(frame.packet.psn, 1);
    if (wire::psn_before(found->second.brought, end)) {
      found->second.brought = end;
    }
  }
}

void AnswerWatch::result_leaves(const Packet& result) {
  const auto found = records_.find({result.origin.ring, result.origin.rank});
  if (found == records_.end() || found->second.requester.generation != result.origin.generation) {
    return;
  }
  Record& record = found->second;
  record.is_known = true;
  if (record.is_told) {
    throw Violation(
        "§2a", fmt::format("ring {} rank {} has a result of a run that is over, as it was told",
                           result.origin.ring, result.origin.rank));
  }
  const std::uint32_t end = wire::psn_add(result.packet.psn, 1);
  for (std::uint32_t* const behind : {&record.released, &record.left}) {
    *behind = wire::psn_before(*behind, end) ? end : *behind;
  }
}

void AnswerWatch::count_kept_alive(const stage::InlineSwitch& engine) {
  for (const auto& [place, record] : records_) {
    kept_alive_[place] = kept_alive(incarnations_for(record, engine), record);
  }
}

std::optional<std::uint32_t> AnswerWatch::queue_pair_beside(std::uint16_t ring,
                                                            std::uint16_t host) const {
  for (const auto& [place, record] : records_) {
    if (place.first != ring && record.requester.host == host && record.is_known) {
      return record.requester.qp;
    }
  }
  return std::nullopt;
}

void AnswerWatch::expect_lie(std::uint16_t host, std::uint32_t queue_pair) {
  for (auto& [place, record] : records_) {
    const bool is_meant = record.requester.host == host && record.requester.qp == queue_pair;
    record.is_lied_about = record.is_lied_about || is_meant;
  }
}

void AnswerWatch::made(const Packet& packet, Time now, const stage::InlineSwitch& engine) {
  const auto answer = read(packet);
  if (answer && (answer->syndrome == kRemoteAccess || answer->syndrome == kInvalidRequest)) {
    return tells(*answer);
  }
  const Record* found = answer ? record_of(*answer) : nullptr;
  if (found == nullptr || found->is_reused) {
    return;
  }
  Record& record = records_.at({found->requester.ring, found->requester.rank});
  const conn::Incarnations& incarnations = incarnations_for(record, engine);
  const bool is_admitted = record.is_known && is_current(record, incarnations);
  if (record.is_lied_about && !is_admitted) {
    return; // the switch has forgotten who told the truth
  }
  const bool is_waiting = waits(record, incarnations);
  record.is_misled = record.is_misled || (!is_admitted && !is_waiting);
  check_truth(record, *answer);
  if (is_admitted || is_waiting) { // a run that is over hears of it all the same
    check_silence(record);
  }
  if (is_admitted) {
    check_patience(record, now);
  }
  check_ask(record, *answer, now);
  note_late_rank(record.requester, *answer, incarnations);
  check_keep_alive(record, incarnations);
}

/// That its run is over.
void AnswerWatch::tells(const Answer& answer) {
  for (auto* const records : {&records_, &former_}) {
    for (auto& [place, record] : *records) {
      if (record.requester.host == answer.host && record.requester.qp == answer.qp &&
          !record.is_reused && !record.is_lied_about) {
        check_truth(record, answer);
        check_obeyed(record, answer);
        record.is_told = true;
      }
    }
  }
}

/// IBTA §9.7.6.1: a requester ignores a NAK below or above what it has outstanding.
void AnswerWatch::check_obeyed(const Record& record, const Answer& answer) {
  if (wire::psn_before(answer.psn, record.passed) ||
      !wire::psn_before(answer.psn, record.brought)) {
    throw Violation("§2a",
                    fmt::format("ring {} rank {} is told by NAK({:#x}), which it ignores: what has "
                                "passed acknowledges all before {:#x}, and it has brought what is "
                                "before {:#x}",
                                record.requester.ring, record.requester.rank, answer.psn,
                                record.passed, record.brought));
  }
}

/// Whether the switch's incarnation of the ring is the rank's, and no dead run's that began again.
bool AnswerWatch::is_current(const Record& record, const conn::Incarnations& incarnations) {
  if (!incarnations.has(record.requester.ring)) {
    return false;
  }
  const auto& incarnation = incarnations.incarnation_of(record.requester.ring);
  return incarnation && incarnation->nonce == record.requester.nonce;
}

/// Whether the rank's hello waits in the switch.
bool AnswerWatch::waits(const Record& record, const conn::Incarnations& incarnations) {
  const Requester& requester = record.requester;
  return incarnations.has(requester.ring) && !requester.is_parent &&
         std::ranges::any_of(incarnations.waiting_hellos_of(requester.ring).of(requester.sender),
                             [&](const conn::WaitingHello& hello) {
                               return hello.frame != nullptr &&
                                      hello.incarnation.nonce == requester.nonce;
                             });
}

bool AnswerWatch::was_misled(std::uint16_t ring) const {
  return std::ranges::any_of(records_, [ring](const auto& entry) {
    return entry.first.first == ring && entry.second.is_misled;
  });
}

bool AnswerWatch::is_lied_about(std::uint16_t ring, std::uint16_t rank) const {
  return std::ranges::any_of(records_, [&](const auto& entry) {
    const Requester& requester = entry.second.requester;
    return entry.second.is_lied_about && requester.ring == ring && requester.rank == rank;
  });
}

/// The receiver has acknowledged the same, and with the same MSN.
void AnswerWatch::check_truth(const Record& record, const Answer& answer) {
  const Requester& requester = record.requester;
  if (wire::psn_before(record.acknowledged, answer.acknowledges())) {
    throw Violation("I9", fmt::format("the switch acknowledges all before {:#x} to ring {} rank "
                                      "{}, whose receiver has acknowledged all before {:#x}",
                                      answer.acknowledges(), requester.ring, requester.rank,
                                      record.acknowledged));
  }
  const auto said = record.sequences.find(answer.acknowledges());
  if (said == record.sequences.end() || said->second != answer.message_sequence) {
    throw Violation("I9", fmt::format("the switch says MSN {} with PSN {:#x} to ring {} rank {}, "
                                      "as its receiver never did",
                                      answer.message_sequence, answer.psn, requester.ring,
                                      requester.rank));
  }
}

void AnswerWatch::check_silence(const Record& record) const {
  const Requester& requester = record.requester;
  if (silent_.contains(requester.ring)) {
    throw Violation("§11", fmt::format("the switch speaks to ring {} rank {} though a link of the "
                                       "ring's tree is down",
                                       requester.ring, requester.rank));
  }
}

void AnswerWatch::check_patience(const Record& record, Time now) const {
  const Requester& requester = record.requester;
  const auto news = news_at_.find(requester.ring);
  if (now - news->second > requester.patience_ms * kMillisecond) {
    throw Violation("§9", fmt::format("the switch speaks to ring {} rank {} though its patience "
                                      "of {} ms ended {} us ago",
                                      requester.ring, requester.rank, requester.patience_ms,
                                      (now - news->second) / 1000 - requester.patience_ms * 1000));
  }
}

/// One NAK while a stays where it is; then RNR NAKs, with pauses. A switch is asked by NAKs alone.
void AnswerWatch::check_ask(Record& record, const Answer& answer, Time now) {
  const Requester& requester = record.requester;
  if (!requester.is_rank) {
    const bool is_kept_alive = requester.keep_alive == ring::KeepAlive::rnr;
    if ((answer.syndrome & kKindMask) == kRnrNak && !is_kept_alive) {
      throw Violation("§11", fmt::format("the switch asks another by RNR NAK({:#x}) to ring {} "
                                         "rank {}",
                                         answer.psn, requester.ring, requester.rank));
    }
    return;
  }
  if (answer.syndrome == kSequenceError) {
    if (record.nak == answer.psn) {
      throw Violation("§9", fmt::format("a second NAK for {:#x} to ring {} rank {}", answer.psn,
                                        requester.ring, requester.rank));
    }
    record.nak = answer.psn;
  }
  const bool is_ask =
      (answer.syndrome & kKindMask) == kRnrNak && requester.keep_alive != ring::KeepAlive::rnr;
  if (is_ask) {
    if (record.rnr_nak == answer.psn && now < record.rnr_nak_at + kPause) {
      throw Violation("§9", fmt::format("two RNR NAKs for {:#x} within {} us to ring {} rank {}",
                                        answer.psn, (now - record.rnr_nak_at) / 1000,
                                        requester.ring, requester.rank));
    }
    record.rnr_nak = answer.psn;
    record.rnr_nak_at = now;
  }
}

void AnswerWatch::note_late_rank(const Requester& requester, const Answer& answer,
                                 const conn::Incarnations& incarnations) {
  const bool is_asked = requester.is_rank && answer.syndrome == kSequenceError;
  if (is_asked && incarnations.has(requester.ring) &&
      !incarnations.flow_of({requester.ring, requester.sender}).lacks_packets()) {
    asked_late_.insert(requester.ring);
  }
}

/// A sender is kept alive only when its receiver has all that has left.
void AnswerWatch::check_keep_alive(const Record& record, const conn::Incarnations& incarnations) {
  const Requester& requester = record.requester;
  const Place place{requester.ring, requester.rank};
  const std::uint64_t now = kept_alive(incarnations, record);
  const std::uint64_t before = std::exchange(kept_alive_[place], now);
  if (now > before && requester.is_parent) {
    throw Violation("§11", fmt::format("the switch keeps its parent alive on the connection of "
                                       "ring {} rank {}",
                                       requester.ring, requester.rank));
  }
  if (now > before && wire::psn_before(record.acknowledged, record.released)) {
    throw Violation("§10", fmt::format("the switch keeps ring {} rank {} alive, whose receiver "
                                       "lacks {:#x}",
                                       requester.ring, requester.rank, record.acknowledged));
  }
}

void AnswerWatch::passes(const Packet& packet, const stage::InlineSwitch& engine) const {
  const auto answer = read(packet);
  if (!answer || answer->syndrome != kSequenceError || packet.is_damaged) {
    return;
  }
  const Record* record = record_of(*answer);
  if (record == nullptr) {
    return;
  }
  const conn::Incarnations& incarnations = incarnations_for(*record, engine);
  const Requester& requester = record->requester;
  const ring::RingChild sender{requester.ring, requester.sender};
  const bool is_of_this_run = incarnations.has(requester.ring) &&
                              requester.generation == packet.origin.generation &&
                              incarnations.flow_of(sender).own_qp == requester.qp &&
                              requester.patience_ms >= kEndlessPatience;
  // What a lie makes a switch ask for goes through where the lied-about ring was withdrawn, to who
  // is behind the liar's port (docs/protocol.md §9).
  const bool is_checked =
      record->is_known && !record->is_reused && !record->is_lied_about && is_of_this_run;
  const auto is_mended_here = [&] {
    return incarnations.may_answer(sender) && !silent_.contains(requester.ring) &&
           wire::psn_before(answer->psn, record->released);
  };
  if (is_checked && (requester.is_outgoing || is_mended_here())) {
    throw Violation("I10", fmt::format("a NAK for {:#x} reaches ring {} rank {}, though results "
                                       "up to {:#x} have left",
                                       answer->psn, record->requester.ring, record->requester.rank,
                                       record->released));
  }
}

} // namespace weir::fabric
