// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "control/leases.hpp"
#include "control/principal.hpp"
#include "control/ring_admission.hpp"
#include "control/ring_budget.hpp"
#include "control/ring_exists.hpp"
#include "control/ring_journal.hpp"
#include "control/writer_lock.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace weir::control {

struct Chassis;
class Captures;

/// Makes rings, changes them and takes them back while the switch runs. Any thread may use it.
///
/// An order to a ring is carried out if its `principal` may order this very ring: nobody makes,
/// changes or withdraws a ring between the question whose it is and the order's end. Throws
/// NotAllowed then, and NoSuchRing, as all that takes a ring's id.
class RingAdmin {
 public:
  /// Both outlive it. Without a journal no ring comes while the switch runs.
  RingAdmin(Chassis& chassis, Captures& captures, std::optional<RingJournal> journal);
  ~RingAdmin();
  RingAdmin(const RingAdmin&) = delete;
  RingAdmin& operator=(const RingAdmin&) = delete;

  /// Adds a ring, and takes its memory, at once. The lcores stop once, for as long as for a
  /// question. Throws RingExists, RingRefused and JournalError; nothing has changed then.
  ring::RingBirth add(const ring::RingSpec& spec, const Principal& principal = {});
  /// The same, but silence does not end the ring: its owner does.
  ring::RingBirth hold(const ring::RingSpec& spec, const Principal& principal = {});
  /// False: it was withdrawn.
  bool has(ring::RingBirth birth);

  /// Among which rings are dealt out.
  std::size_t workers() const;

  /// What all rings together may take.
  RingRoom room() const { return budget_.all(); }

  void reset(std::uint32_t id, const Principal& principal);
  /// Gives back the ring's id, its memory and its places. Nobody adds up for its hosts any more,
  /// and none of their raw data passes (docs/protocol.md §2a). The lcores stop several times, each
  /// time for as long as for a question.
  void withdraw(std::uint32_t id, const Principal& principal);
  /// Refuses hellos that would begin a new incarnation, and gives up those that wait. The running
  /// incarnation goes on. The ring is to be withdrawn when all members have been silent for `quiet`
  /// since then. A second time, only `quiet` is new.
  void drain(std::uint32_t id, std::chrono::seconds quiet, const Principal& principal);
  /// The same for all rings, before the switch stops. They are not withdrawn, and no ring can be
  /// added any more.
  void drain_all();
  /// Reclaims the ring, in the very stop in which `judge` is asked, if it gives grounds. So no ring
  /// goes that woke up.
  std::optional<Reclaimed> reclaim_if(std::uint32_t id, const ReclaimJudge& judge);
  /// Reclaims a ring whose owner has gone, unless it was withdrawn already.
  void reclaim_orphan(ring::RingBirth birth);

  const ReclaimLog& reclaim_log() const { return reclaim_log_; }

  /// Before the switch starts: who hears of reclaimed rings, on the thread that has reclaimed them.
  void tell_reclaims_to(std::function<void(const Reclaimed&)> tell) {
    reclaim_log_.tell_to(std::move(tell));
  }

  /// After the lcores have ended: gives back what the rings hold.
  void discard_all();

  // For the switch's other parts.

  /// What decides whether a ring is reclaimed; without its specification, which takes time to copy.
  TendedRing tended(std::uint16_t ring, frame::Instant now, const lcore::Quiesce& quiesced) const;
  /// Frames of a withdrawn ring that are not yet dropped.
  std::uint64_t held_by_withdrawn(const lcore::Quiesce& quiesced) const;
  /// The configuration as it is in force, without what waits for a restart and without rings that
  /// were made while the switch runs.
  config::Config config_in_force(const WriterLock& lock) const;

  // For a reload. `lcore` is where the admission has put the ring.

  /// What other rings would come to.
  RingAdmission admission(const WriterLock& lock) const;
  /// Throws RingRefused where no ring may come.
  void check_may_add(const ring::RingSpec& spec, const WriterLock& lock) const;
  /// nullptr when there is no memory for the ring now.
  std::unique_ptr<stage::WorkerRing> room_if_any(const ring::RingSpec& spec,
                                                 std::size_t lcore) const;
  /// The next start's file may lack the ring. Throws JournalError.
  void remember(const ring::RingSpec& spec, const WriterLock& lock);
  /// `room`: nullptr: it is made now. Throws NoRoomForRing.
  void enter_configured(const ring::RingSpec& spec, std::size_t lcore,
                        std::unique_ptr<stage::WorkerRing> room, const WriterLock& lock);
  void withdraw(std::uint32_t id, const WriterLock& lock);
  /// The set in force has changed the ring, and it is the file's, whoever has made it.
  void note_change(std::uint16_t ring, const WriterLock& lock, const lcore::Quiesce& quiesced);

 private:
  /// The state of a ring that its worker has given away.
  struct Withdrawn;

  std::uint16_t ordered_ring(std::uint32_t id, const Principal& principal,
                             const WriterLock& lock) const;
  ring::RingBirth add(const ring::RingSpec& spec, Keeper keeper, const Principal& principal);
  void check_id(const ring::RingSpec& spec, const WriterLock& lock) const;
  void enter(const ring::RingSpec& spec, std::size_t lcore, stage::WorkerRing room,
             const RingCare& care, const WriterLock& lock);
  std::unique_ptr<stage::WorkerRing> room_for(const ring::RingSpec& spec, std::size_t lcore,
                                              const WriterLock& lock) const;
  void withdraw_index(std::uint16_t ring, const WriterLock& lock);
  std::shared_ptr<const ring::RingSet> take_out(std::uint16_t ring,
                                                std::shared_ptr<const ring::RingSet> set_without,
                                                frame::Instant now, const WriterLock& lock,
                                                const lcore::Quiesce& quiesced);
  std::optional<std::uint16_t> ring_born(ring::RingBirth birth, const WriterLock& lock) const;
  std::optional<Reclaimed> reclaim(std::uint16_t ring, const ReclaimJudge& judge,
                                   const WriterLock& lock);
  void tell(const std::optional<Reclaimed>& reclaimed);
  void drop_withdrawn(const WriterLock& lock);

  Chassis& chassis_;
  Captures& captures_;
  std::optional<RingJournal> journal_; // with a state directory
  RingBudget budget_;
  Guarded<std::vector<RingCare>> care_;           // by index
  Guarded<std::unique_ptr<Withdrawn>> withdrawn_; // whose frames are not yet dropped
  ReclaimLog reclaim_log_;
  ring::RingBirth last_birth_ = 0; // under the writer's lock, as the next one
  bool is_draining_ = false;       // all rings
};

} // namespace weir::control
