// SPDX-License-Identifier: BSD-3-Clause
#include "events/ring_watch.hpp"

#include "events/name_list.hpp"
#include "program/digest.hpp"
#include "ring/sender_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace weir::events {
namespace {

double seconds(std::uint64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

std::string seconds_text(std::uint64_t ns) {
  return fmt::format("{:.1f}", seconds(ns));
}

/// "rank 3", "ranks 3, 5 and 12 more"; of a switch below "ranks 3-5".
std::string names_of(const std::vector<std::string>& ranks) {
  const bool is_one = ranks.size() == 1 && ranks.front().find('-') == std::string::npos;
  return fmt::format("rank{} {}", is_one ? "" : "s", list_of(ranks));
}

/// Repeats and what a new incarnation leaves behind. They belong to a loss or an end that has a
/// line of its own.
bool is_ordinary(DropReason reason) {
  switch (reason) {
  case DropReason::repeat_held:
  case DropReason::stale_repeat:
  case DropReason::repeat_swallowed:
  case DropReason::nak_mended:
  case DropReason::unknown_message:
  case DropReason::incarnation_flush:
  case DropReason::ring_reset:
  case DropReason::ring_withdrawn:
    return true;
  default:
    return false;
  }
}

} // namespace

std::optional<std::uint64_t> PacedCount::news(std::uint64_t count, std::uint64_t now_ns) {
  if (count < told_) {
    told_ = 0;
  }
  const bool is_time = !told_at_ns_ || now_ns - *told_at_ns_ >= kPause;
  if (count == told_ || !is_time) {
    return std::nullopt;
  }
  told_at_ns_ = now_ns;
  return count - std::exchange(told_, count);
}

struct RingWatch::Look {
  Remembered& before;
  const ring::Ring& ring;
  const stage::RingSnapshot& snapshot;
  std::span<const PortLink> ports;
  std::uint64_t now_ns;
  std::vector<Event>& events;

  std::string name_of(std::uint16_t child) const { return ring::name_of(ring.spec(), child); }

  std::string port_of(std::uint16_t sender) const {
    const auto place = ring.port_of(sender);
    return place ? name_at(ports, *place) : std::string("-");
  }

  Sender sender(std::uint16_t number) const {
    return {.ranks = name_of(number),
            .switch_name = ring::switch_name_of(ring.spec(), number),
            .port = ring.is_rank(number) ? std::string() : port_of(number)};
  }

  Sender parent() const { return sender(ring.children()); }

  bool is_parent(const std::vector<Sender>& senders) const {
    return !ring.is_root() && senders == std::vector{parent()};
  }

  /// In a sentence.
  std::string phrase_for(const std::vector<Sender>& senders) const {
    return is_parent(senders)
               ? fmt::format("the switch above, {} at port {}", parent().switch_name, parent().port)
               : names_of(texts_of(senders));
  }

  static std::vector<std::string> texts_of(const std::vector<Sender>& senders) {
    std::vector<std::string> texts;
    for (const Sender& sender : senders) {
      texts.push_back(sender.switch_name.empty() ? sender.ranks
                                                 : fmt::format("{} ({} at port {})", sender.ranks,
                                                               sender.switch_name, sender.port));
    }
    return texts;
  }

  /// The switches and their ports only if there are any.
  static std::vector<Field> fields_of(const std::vector<Sender>& senders,
                                      const std::string& waited_s) {
    std::vector<Field> fields{{"ranks", joined(senders, &Sender::ranks)}, {"waited_s", waited_s}};
    if (const std::string switches = joined(senders, &Sender::switch_name); !switches.empty()) {
      fields.push_back({"switch", switches});
      fields.push_back({"port", joined(senders, &Sender::port)});
    }
    return fields;
  }

  /// What is empty is left out.
  static std::string joined(const std::vector<Sender>& senders, std::string Sender::*part) {
    std::string text;
    for (const Sender& sender : senders) {
      if (!(sender.*part).empty()) {
        text += (text.empty() ? "" : ",") + sender.*part;
      }
    }
    return text;
  }

  /// The first field is the ring.
  void tell(EventKind kind, const std::string& what, std::vector<Field> fields = {}) {
    const std::uint32_t id = ring.spec().id;
    fields.insert(fields.begin(), {"ring", fmt::format("{}", id)});
    events.push_back({kind, fmt::format("ring {}: {}", id, what), std::move(fields)});
  }
};

std::vector<Event> RingWatch::look(const ring::RingSet& set,
                                   std::span<const stage::RingSnapshot> rings,
                                   std::span<const PortLink> ports, std::uint64_t now_ns) {
  std::vector<Event> events;
  std::set<std::uint32_t> seen;
  for (const stage::RingSnapshot& snapshot : rings) {
    const ring::Ring& ring = set.rings()[snapshot.ring];
    seen.insert(ring.spec().id);
    Look look{rings_[ring.spec().id], ring, snapshot, ports, now_ns, events};
    look_at_job(look);
    look_for_missing_hellos(look);
    look_for_stragglers(look);
    look_for_losses(look);
    look_for_drops(look);
  }
  std::erase_if(rings_, [&seen](const auto& entry) { return !seen.contains(entry.first); });
  return events;
}

void RingWatch::look_at_job(Look& look) {
  const std::optional<conn::Incarnation> now = look.snapshot.incarnation;
  const std::optional<conn::Incarnation> before = std::exchange(look.before.incarnation, now);
  if (now == before) {
    return;
  }
  if (now) {
    look.tell(EventKind::job_began,
              fmt::format("a job of {} ranks has begun", look.ring.spec().world()),
              {{"ranks", fmt::format("{}", look.ring.spec().world())},
               {"epoch", fmt::format("{}", now->epoch)}});
    look_for_unpinned(look);
    look_for_missing_operators(look);
  } else {
    look.tell(EventKind::job_reset, "its job is given up; new hellos begin the next one",
              {{"epoch", fmt::format("{}", before->epoch)}});
  }
}

void RingWatch::look_for_unpinned(Look& look) {
  std::vector<std::string> ranks;
  for (const std::uint16_t child : look.snapshot.unpinned) {
    ranks.push_back(look.name_of(child));
  }
  if (!ranks.empty()) {
    look.tell(EventKind::mac_not_pinned,
              fmt::format("the MAC address of {} was heard at another port too; it is not pinned",
                          names_of(ranks)),
              {{"ranks", fmt::format("{}", fmt::join(ranks, ","))}});
  }
}

void RingWatch::look_for_missing_operators(Look& look) {
  const std::string& tenant = look.ring.spec().tenant;
  for (const wire::OperatorEntry& entry : look.snapshot.ungranted) {
    const std::string digest = program::to_string(entry.digest);
    look.tell(EventKind::operator_missing,
              fmt::format("its job's operator {} (number {}) has the digest {}, which is not "
                          "loaded here{}; no switch folds by it",
                          entry.number - kFirstOperator, entry.number, digest,
                          tenant.empty() ? "" : " for tenant " + tenant),
              {{"number", fmt::format("{}", entry.number)}, {"digest", digest}});
  }
}

void RingWatch::look_for_missing_hellos(Look& look) {
  std::vector<Sender> missing;
  bool somebody_waits = false;
  for (std::uint16_t child = 0; child < look.snapshot.children.size(); ++child) {
    const conn::ChildStatus& status = look.snapshot.children[child];
    somebody_waits |= status.waiting_hellos != 0;
    if (status.waiting_hellos == 0) {
      missing.push_back(look.sender(child));
    }
  }
  if (missing.empty() && look.snapshot.climbing_ns) {
    missing.push_back(look.parent());
  }
  std::optional<Lateness>& late = look.before.hellos;
  if (!somebody_waits) {
    late.reset();
    return;
  }
  if (!late) {
    late = Lateness{.senders = {}, .since_ns = look.now_ns};
  }
  const std::uint64_t waited = look.now_ns - late->since_ns;
  if (waited >= kHelloLate && late->senders != missing) {
    late->senders = missing;
    const char* what = look.is_parent(missing)
                           ? "no answer to the hellos here of {}, for {} s; `show ring {}` there"
                             " tells more"
                           : "no hello of {}, for which the others have waited {} s";
    look.tell(EventKind::hello_missing,
              fmt::format(fmt::runtime(what), look.phrase_for(missing), seconds_text(waited),
                          look.ring.spec().id),
              look.fields_of(missing, seconds_text(waited)));
  }
}

void RingWatch::look_for_stragglers(Look& look) {
  const std::uint64_t since = look.snapshot.waiting_since_ns;
  std::optional<Lateness>& late = look.before.packets;
  const bool goes_on = late && (look.snapshot.waited_for.empty() || since != late->since_ns);
  if (goes_on && late->is_told) {
    const std::string waited = seconds_text(look.now_ns - late->since_ns);
    look.tell(EventKind::straggler_came,
              fmt::format("goes on; for {} s it had waited for {}", waited,
                          look.phrase_for(late->senders)),
              look.fields_of(late->senders, waited));
  }
  if (goes_on) {
    late.reset();
  }
  if (look.snapshot.waited_for.empty()) {
    return;
  }
  if (!late) {
    late = Lateness{.senders = {}, .since_ns = since};
  }
  late->senders.clear();
  for (const std::uint16_t child : look.snapshot.waited_for) {
    late->senders.push_back(look.sender(child));
  }
  if (look.snapshot.waiting_ns >= kLate && !std::exchange(late->is_told, true)) {
    const std::string waited = seconds_text(look.snapshot.waiting_ns);
    look.tell(EventKind::straggler,
              fmt::format("has waited {} s for {}; `show ring {} stuck` tells more", waited,
                          look.phrase_for(late->senders), look.ring.spec().id),
              look.fields_of(late->senders, waited));
  }
}

void RingWatch::look_for_losses(Look& look) {
  look.before.ranks.resize(look.snapshot.children.size());
  for (std::uint16_t child = 0; child < look.snapshot.children.size(); ++child) {
    const std::string rank = look.name_of(child);
    const stage::LinkLosses lost = stage::losses_of(look.snapshot, child);
    const auto tell = [&](const char* direction, std::string_view why, std::uint64_t packets) {
      look.tell(
          EventKind::loss,
          fmt::format("{} times packets {} {} are repeated: {}", packets, direction,
                      names_of({rank}), why),
          {{"rank", rank}, {"direction", direction}, {"packets", fmt::format("{}", packets)}});
    };
    Rank& before = look.before.ranks[child];
    if (const auto packets = before.lost_from.news(lost.from, look.now_ns)) {
      tell("from", "lost or late", *packets);
    }
    if (const auto packets = before.lost_to.news(lost.to, look.now_ns)) {
      tell("to", "lost, or not acknowledged in time", *packets);
    }
  }
}

void RingWatch::look_for_drops(Look& look) {
  for (std::size_t i = 0; i < kDropReasons; ++i) {
    const auto reason = static_cast<DropReason>(i);
    const auto packets = look.before.drops[i].news(look.snapshot.counters.dropped[i], look.now_ns);
    if (packets && !is_ordinary(reason)) {
      look.tell(
          EventKind::ring_drops, fmt::format("{} packets dropped: {}", *packets, text_of(reason)),
          {{"reason", std::string(name_of(reason))}, {"packets", fmt::format("{}", *packets)}});
    }
  }
}

} // namespace weir::events
