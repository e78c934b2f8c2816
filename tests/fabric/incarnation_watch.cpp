// SPDX-License-Identifier: BSD-3-Clause
#include "incarnation_watch.hpp"

#include "frame/frame.hpp"
#include "violation.hpp"
#include "wire/icrc.hpp"
#include "wire/parse.hpp"

#include <fmt/format.h>

namespace weir::fabric {

IncarnationWatch::Sight IncarnationWatch::look_at(const stage::InlineSwitch& engine) const {
  if (!engine.has_ring(ring_)) {
    return {};
  }
  const stage::Worker& worker = engine.worker_of(ring_);
  const conn::Incarnations& incarnations = worker.incarnations();
  const auto& incarnation = incarnations.incarnation_of(ring_);
  Sight sight{.flushes = worker.counters_of(ring_).flushes,
              .session = incarnations.session_of(ring_)};
  if (part_.parent) {
    const auto parent = static_cast<std::uint16_t>(part_.children.size());
    sight.parent_session = incarnations.session_from({ring_, parent});
  }
  if (incarnation) {
    sight.incarnation = {incarnation->epoch, incarnation->nonce};
  }
  return sight;
}

void IncarnationWatch::before(const Packet& packet, const stage::InlineSwitch& engine) {
  before_ = look_at(engine);
  frame::Frame frame = packet;
  frame.packet = wire::parse(packet.bytes());
  const wire::InaHeader* ina = wire::find_ina_header(frame);
  if (ina == nullptr || ina->collective != static_cast<std::uint8_t>(Collective::hello) ||
      ina->ring_id.get() != spec_.id || ina->rank.get() >= spec_.world() ||
      !wire::icrc_is_valid(frame)) {
    return;
  }
  note(*ina);
}

/// A child's hello, or its result from the parent, which has the nonce elsewhere.
void IncarnationWatch::note(const wire::InaHeader& hello) {
  const auto sender = part_.sender_for(hello.rank.get(), spec_.world());
  if (!sender) {
    return;
  }
  const bool is_parents = part_.is_parent(*sender);
  const bool is_switchs = !is_parents && part_.children[*sender].node.has_value();
  const std::uint8_t flags = is_parents ? kInaFlagResult : is_switchs ? kInaFlagPartial : 0;
  const std::uint32_t nonce = is_parents ? hello.message_id.get() : hello.session.get();
  if (hello.flags == flags) {
    hellos_[{hello.epoch.get(), nonce}] |= std::uint64_t{1} << *sender;
  }
}

void IncarnationWatch::after(const stage::InlineSwitch& engine) {
  const Sight now = look_at(engine);
  if (now == before_) {
    return;
  }
  if (now.incarnation && now.incarnation == before_.incarnation && now.flushes == before_.flushes) {
    throw Violation("§11",
                    fmt::format("ring {}: a session changed while an incarnation ran", spec_.id));
  }
  coverage_.hit(Happening::incarnations);
  const bool has_begun = now.incarnation && now.incarnation != before_.incarnation;
  if (!has_begun || !has_all_hellos(*now.incarnation)) {
    throw Violation("I11", fmt::format("ring {}: an incarnation ended or was emptied although not "
                                       "all ranks had greeted the next",
                                       spec_.id));
  }
  if (is_last_) {
    throw Violation("I11",
                    fmt::format("ring {}: an incarnation began although it drains", spec_.id));
  }
  // The living nonce with a larger epoch is another incarnation.
  const bool keeps_nonce =
      before_.incarnation && before_.incarnation->second == now.incarnation->second;
  if (!begun_.insert(now.incarnation->second).second && !keeps_nonce) {
    throw Violation("I11",
                    fmt::format("ring {}: an incarnation that was over began again", spec_.id));
  }
}

void IncarnationWatch::operator_acted(const stage::InlineSwitch& engine) {
  hellos_.clear();
  begun_.clear();
  before_ = look_at(engine);
}

bool IncarnationWatch::has_all_hellos(const Name& name) const {
  const auto found = hellos_.find(name);
  const std::size_t senders = part_.children.size() + (part_.parent ? 1 : 0);
  const std::uint64_t all = (std::uint64_t{1} << senders) - 1;
  return found != hellos_.end() && found->second == all;
}

} // namespace weir::fabric
