// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Regions as values: what is wanted, what was made, what there is. No EAL.

#include "region/region.hpp"
#include "stage/snapshot.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weir::control {

/// A region cannot be made. what() says why and what would be allowed.
class RegionRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// There is no room for the region now; there is when others have ended.
class NoRoomForRegion : public RegionRefused {
 public:
  using RegionRefused::RegionRefused;
};

/// No region has this id. what() has the id and those that there are.
class NoSuchRegion : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A region that somebody wants. Its id is the switch's to choose.
struct WantedRegion {
  region::RegionSpec spec;
  std::string tenant; // empty: nobody's
};

/// What its members must be told.
struct MadeRegion {
  region::RegionSpec spec; // with its id
  region::RegionBirth birth;
  std::string tenant;
};

/// A region at one moment.
struct RegionSeen {
  struct Member {
    bool has_said_hello = false;
    std::uint64_t held = 0;           // frames of its own
    std::uint64_t unacknowledged = 0; // copies, and READs of the switch
    std::uint64_t reads = 0;          // of its own that are not answered
    std::uint64_t waited_for_ns = 0;  // without a sign of life while it owes these
  };

  region::RegionSpec spec;
  std::string tenant;
  std::size_t place = 0; // no other region that has not ended has it
  region::State state{};
  std::optional<region::End> why_ended;
  std::optional<std::uint16_t> culprit; // a member
  region::Counters counters;
  stage::LineSnapshot line;
  std::uint64_t held = 0;
  std::uint32_t entries_used = 0;
  std::vector<Member> members;

  /// "sum of f32, min of i32"; "none".
  std::string views() const;

  std::size_t heard() const; // members that have said hello
};

/// What has become of a region.
struct RegionNews {
  enum class Kind : std::uint8_t { began, ended };

  Kind kind{};
  std::uint32_t id = 0;
  std::size_t members = 0;
  std::string tenant;       // empty: nobody's
  region::End why{};        // of one that has ended
  std::string why_in_words; // likewise
};

/// "withdrawn", "silent" and so on.
std::string_view name_of(region::End why);

/// The same in words, of regions in general.
std::string_view text_of(region::End why);

/// How many regions have ended, by reason.
using RegionEnds = std::array<std::uint64_t, region::kEnds>;

/// Its number and its address.
std::string member_in_words(const region::RegionSpec& spec, std::size_t member);

/// Those that have not said hello, by number and address.
std::string absent_members(const RegionSeen& region);

/// "region 3: cut off: …": how many packets it held, and for whom.
std::string cut_off_sentence(const RegionSeen& region);

/// Why a region has ended, with its members' addresses.
std::string reason_in_words(const RegionSeen& ended);

} // namespace weir::control
