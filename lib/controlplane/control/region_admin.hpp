// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/principal.hpp"
#include "control/region_admission.hpp"
#include "control/region_seen.hpp"
#include "control/writer_lock.hpp"
#include "stage/worker.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::control {

struct Chassis;

/// Makes regions and takes them back while the switch runs. Any thread may use it.
class RegionAdmin {
 public:
  /// It outlives this.
  explicit RegionAdmin(Chassis& chassis);

  /// Makes a region, and reserves what it can hold. The lcores stop once, for as long as for a
  /// question; for one that is refused they stop only if another one has ended since somebody
  /// looked. A large region's memory takes a while, in which others may order. Throws
  /// RegionRefused, NoRoomForRegion, NotAllowed.
  MadeRegion hold(const WantedRegion& wanted, const Principal& principal = {});

  /// Before the switch stops: makes no region any more. Those that there are go on.
  void drain_all();

  /// Ends a region: its members are told when they ask. Throws NoSuchRegion, for a tenant also
  /// when the region is another's.
  void withdraw(std::uint32_t id, const Principal& principal);

  /// The same for one whose owner has gone, if it is there.
  void withdraw_orphan(std::uint32_t id);

  /// What has become of regions since the last time. Frees those that are forgotten, so call it now
  /// and then. The lcores stop if one has ended, or is forgotten. One that is open and ends between
  /// two looks was never seen open.
  std::deque<RegionNews> take_news();

  /// Why this region has ended, as has been found.
  std::optional<std::string> end_of(std::uint32_t id) const;

  /// All that are not forgotten, those that have ended too. A tenant sees its own.
  std::vector<RegionSeen> regions(const Principal& principal) const;

  /// What tenants may have of the rooms, and what they have. A tenant sees its own share.
  std::vector<RegionShare> shares(const Principal& principal) const;

  /// How many have ended since the switch was started, as far as it is known. A tenant sees its
  /// own.
  RegionEnds ends(const Principal& principal) const;

  /// After the lcores have ended: gives back what regions hold.
  void discard_all();

 private:
  /// A region that is not freed. The pointer is good under the writer's lock, what is behind it
  /// while the lcores stand still; its spec, birth and state always.
  struct Record {
    std::string tenant;
    std::size_t place = 0;
    region::Region* region = nullptr;
    bool has_begun = false; // as far as it is known
    // When its members ask no more; empty: it has not ended, as far as it is known.
    std::optional<std::uint64_t> forgotten_ns;
  };

  struct Ended {
    std::uint32_t id;
    std::string reason;
  };

  /// For who has released the writer's lock to free: it takes a while for large regions.
  struct Remains {
    std::vector<std::unique_ptr<region::Region>> forgotten;
    std::vector<region::Region::Storage> storage;
  };

  using Records = std::map<std::uint32_t, Record>;

  static constexpr std::size_t kEndsKept = 1024;

  static bool has_news(const Records::value_type& record);
  static bool is_due(const Records::value_type& record);
  std::vector<RegionHeld> held() const;
  std::size_t free_place() const;
  std::size_t most_ended(const std::string& tenant) const;
  region::RegionBirth draw(const region::RegionSpec& spec) const;
  MadeRegion plan(const WantedRegion& wanted, const Principal& principal);
  void check_stays() const;
  void check_ports(const region::RegionSpec& spec, const Principal& principal,
                   const WriterLock& lock) const;
  std::unique_ptr<region::Region> make(const MadeRegion& plan) const;
  void enter(const MadeRegion& plan, std::unique_ptr<region::Region> made);
  void share_rates(const WriterLock& lock, const lcore::Quiesce& quiesced);
  Records::iterator record_of(std::uint32_t id, const Principal& principal);
  [[nodiscard]] Remains note_ends(const WriterLock& lock);
  std::map<std::uint32_t, RegionSeen> outlines_of_news() const;
  void forget_surplus(const std::map<std::uint32_t, RegionSeen>& ended,
                      const lcore::Quiesce& quiesced);
  void note_end(const RegionSeen& region);
  void tell(RegionNews news);

  Chassis& chassis_;
  const RegionAdmission admission_;
  // All below under the writer's lock.
  Records records_;                             // by id
  std::map<std::uint32_t, MadeRegion> planned_; // likewise; their memory is under way
  std::deque<Ended> ends_;                      // the last ones
  std::deque<RegionNews> news_;
  std::map<std::string, RegionEnds> ends_of_; // by tenant
  std::uint32_t last_id_ = 0;
  bool is_draining_ = false;
};

} // namespace weir::control
