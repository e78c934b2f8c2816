// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/group_split.hpp"

#include "host/api/group_formation.hpp"
#include "host/base/error.hpp"
#include "host/base/frame_seal.hpp"
#include "host/base/host_addresses.hpp"
#include "host/base/peer_text.hpp"
#include "host/base/stream.hpp"
#include "host/switch_rings/switch_access.hpp"
#include "random/random_bytes.hpp"
#include "wire/big_endian.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace weir::host {
namespace {

constexpr std::uint32_t kSplitMagic = 0x53504C31; // "SPL1"
constexpr std::size_t kSplitNoteBytes = 512;

enum class SplitState : std::uint8_t {
  goes_nowhere = 0,
  comes = 1,
  cannot_come = 2, // the text says why
};

enum class SplitBy : std::uint8_t { colour = 0, list = 1 };

struct SplitHeader {
  wire::be32 magic;
  std::uint8_t state; // SplitState
  std::uint8_t by;    // SplitBy
  wire::be32 colour;
  wire::be32 key;
  Mac list;                            // its HMAC; without a list 0
  wire::be16 port;                     // where the rank listens
  std::array<std::uint8_t, 32> secret; // drawn for that
  wire::be16 text_bytes;
};

/// What each rank tells all others.
struct SplitNote {
  SplitHeader header;
  // Why the rank cannot come; else, of the whole group's rank 0, the switch that makes rings.
  std::array<char, kSplitNoteBytes - sizeof(SplitHeader)> text;
};

static_assert(sizeof(SplitNote) == kSplitNoteBytes);

std::string_view text_in(const SplitNote& note) {
  const std::size_t bytes = note.header.text_bytes.get();
  return {note.text.data(), std::min(bytes, note.text.size())};
}

void put_text(SplitNote& note, std::string_view text) {
  const std::size_t bytes = std::min(text.size(), note.text.size());
  note.header.text_bytes.set(static_cast<std::uint16_t>(bytes));
  std::copy_n(text.begin(), bytes, note.text.begin());
}

SplitState state_of(const SplitNote& note) {
  return static_cast<SplitState>(note.header.state);
}

std::int32_t signed_number(const wire::be32& number) {
  return static_cast<std::int32_t>(number.get());
}

/// Of equal lists, the same.
Mac digest_of(const std::vector<std::uint16_t>& list) {
  static constexpr std::string_view kPurpose =
      "weir split 1"; // no secret: nobody is kept out by it
  const auto bytes_in = [](const auto& range) {
    return ByteView(reinterpret_cast<const std::uint8_t*>(range.data()),
                    range.size() * sizeof(*range.data()));
  };
  return mac_of(bytes_in(kPurpose), {bytes_in(list)});
}

/// Where this rank's listener of the whole group is: there all others reach it.
Socket open_listener(const GroupDriver& whole) {
  const std::string host = local_host_of(whole.history()->listener);
  return is_wildcard(host) ? listen_everywhere() : listen_at({host, "0"});
}

/// Of the part, on this rank.
class Split {
 public:
  Split(GroupDriver& whole, GroupOptions options, const SplitPlace& place)
      : whole_(whole), options_(std::move(options)), place_(place), defect_(find_defect(options_)) {
  }

  Succession run(const NoteExchange& exchange, const TransportOpening& open);

 private:
  SplitNote own_note();
  void tell_place(SplitNote& note) const;
  void listen(SplitNote& note);
  void check(std::uint16_t rank) const;
  void check_lists() const;
  std::vector<std::uint16_t> ranks_of_part() const;
  void refuse_absent(const std::vector<std::uint16_t>& ranks) const;
  void settle_options(const std::vector<std::uint16_t>& ranks);
  MeetingPlace place_at(std::uint16_t leader);
  Membership form(const std::vector<std::uint16_t>& ranks, const TransportOpening& open);

  bool is_by_list() const { return !place_.list.empty(); }

  GroupDriver& whole_;
  GroupOptions options_;
  const SplitPlace& place_;
  const std::string defect_; // of the options
  Socket listener_;
  std::vector<SplitNote> notes_; // by rank of the whole
};

/// A rank that cannot come tells the others why, who would wait for it.
SplitNote Split::own_note() {
  SplitNote note{};
  note.header.magic.set(kSplitMagic);
  tell_place(note);
  if (!place_.colour) {
    return note;
  }
  std::string why = defect_;
  try {
    listen(note);
  } catch (const std::runtime_error& error) {
    why = error.what();
  }
  if (!why.empty()) {
    note.header.state = static_cast<std::uint8_t>(SplitState::cannot_come);
    put_text(note, why);
  }
  return note;
}

void Split::tell_place(SplitNote& note) const {
  const SplitState state = place_.colour ? SplitState::comes : SplitState::goes_nowhere;
  note.header.state = static_cast<std::uint8_t>(state);
  note.header.by = static_cast<std::uint8_t>(is_by_list() ? SplitBy::list : SplitBy::colour);
  note.header.colour.set(static_cast<std::uint32_t>(place_.colour.value_or(0)));
  note.header.key.set(static_cast<std::uint32_t>(place_.key));
  if (is_by_list()) {
    note.header.list = digest_of(place_.list);
  }
  if (whole_.options().rank == 0) {
    put_text(note, *switch_access_of(options_).address);
  }
}

/// Any rank of a part may be its first, as the keys will tell.
void Split::listen(SplitNote& note) {
  if (whole_.options().world == 1) {
    return;
  }
  listener_ = open_listener(whole_);
  note.header.port.set(port_of(listener_));
  note.header.secret = random_bytes<sizeof(note.header.secret)>();
}

void Split::check(std::uint16_t rank) const {
  if (notes_[rank].header.magic.get() != kSplitMagic) {
    throw Error(ErrorCode::mismatch, rank,
                fmt::format("split: rank {} makes another call; due is a split of this version's "
                            "library, on all ranks",
                            rank));
  }
}

/// All ranks find the same.
void Split::check_lists() const {
  for (std::uint16_t rank = 0; rank < notes_.size(); ++rank) {
    const SplitHeader& own = notes_[rank].header;
    for (std::uint16_t other = 0; other < rank; ++other) {
      const SplitHeader& before = notes_[other].header;
      const bool are_both_in = state_of(notes_[rank]) != SplitState::goes_nowhere &&
                               state_of(notes_[other]) != SplitState::goes_nowhere;
      const bool is_same_part = own.by == before.by && own.colour.get() == before.colour.get();
      if (are_both_in && (own.by != before.by || (is_same_part && own.list != before.list))) {
        throw Error(ErrorCode::mismatch, rank,
                    fmt::format("split: ranks {} and {} name different parts; due are the same "
                                "ranks in the same order on all ranks of a part, and all lists or "
                                "all colours",
                                other, rank));
      }
    }
  }
}

/// In their order there.
std::vector<std::uint16_t> Split::ranks_of_part() const {
  std::vector<std::uint16_t> ranks;
  for (std::uint16_t rank = 0; rank < notes_.size(); ++rank) {
    if (state_of(notes_[rank]) != SplitState::goes_nowhere &&
        signed_number(notes_[rank].header.colour) == *place_.colour) {
      ranks.push_back(rank);
    }
  }
  std::ranges::stable_sort(
      ranks, {}, [this](std::uint16_t rank) { return signed_number(notes_[rank].header.key); });
  return ranks;
}

void Split::refuse_absent(const std::vector<std::uint16_t>& ranks) const {
  for (const std::uint16_t rank : ranks) {
    if (state_of(notes_[rank]) != SplitState::cannot_come) {
      continue;
    }
    if (rank == whole_.options().rank && !defect_.empty()) {
      throw std::invalid_argument(defect_);
    }
    const std::string why = peer_text(text_in(notes_[rank]));
    throw Error(ErrorCode::transport_failure, rank,
                fmt::format("split: rank {} cannot come: {}", rank, why));
  }
  const auto missing = std::ranges::find_if(place_.list, [&](std::uint16_t rank) {
    return std::ranges::find(ranks, rank) == ranks.end();
  });
  if (missing != place_.list.end()) {
    throw Error(ErrorCode::mismatch, *missing,
                fmt::format("split: rank {} names no part; it is in the list of rank {}", *missing,
                            whole_.options().rank));
  }
}

/// What follows from the whole and from who is in the part.
void Split::settle_options(const std::vector<std::uint16_t>& ranks) {
  options_.world = static_cast<std::uint16_t>(ranks.size());
  const auto place = std::ranges::find(ranks, whole_.options().rank);
  options_.rank = static_cast<std::uint16_t>(place - ranks.begin());
  if (!options_.switch_access.address && switch_access_of(options_).address->empty()) {
    options_.switch_access.address = std::string(text_in(notes_[0]));
  }
}

/// Where the part's first rank listens.
MeetingPlace Split::place_at(std::uint16_t leader) {
  const SplitHeader& note = notes_[leader].header;
  MeetingPlace place;
  place.secret.assign(note.secret.begin(), note.secret.end());
  for (Endpoint endpoint : whole_.history()->endpoints[whole_.members()[leader]]) {
    endpoint.port = std::to_string(note.port.get());
    place.endpoints.push_back(std::move(endpoint));
  }
  options_.rendezvous = place.endpoints.front().text();
  if (options_.rank == 0) {
    place.listener = std::move(listener_);
    place.endpoints.clear();
  }
  return place;
}

Membership Split::form(const std::vector<std::uint16_t>& ranks, const TransportOpening& open) {
  if (options_.world == 1) {
    Rendezvous nobody(rendezvous_plan(options_), std::vector<std::unique_ptr<FramedStream>>(1));
    return form_group(options_, open_or_abandon(options_, open, nobody), MeetingPlace());
  }
  MeetingPlace place = place_at(ranks.front());
  listener_ = Socket();
  Rendezvous rendezvous(rendezvous_plan(options_), std::move(place));
  std::unique_ptr<Transport> transport = open_or_abandon(options_, open, rendezvous);
  std::vector<std::uint16_t> members(options_.world);
  std::iota(members.begin(), members.end(), 0);
  return form_group(options_, std::move(transport),
                    Successors{nullptr, std::move(members), std::move(rendezvous)});
}

Succession Split::run(const NoteExchange& exchange, const TransportOpening& open) {
  const SplitNote own = own_note();
  notes_.resize(whole_.options().world);
  exchange(&own, sizeof(own), notes_.data());
  for (std::uint16_t rank = 0; rank < notes_.size(); ++rank) {
    check(rank);
  }
  check_lists();
  Succession part;
  if (!place_.colour) {
    return part;
  }
  part.parent_ranks = ranks_of_part();
  refuse_absent(part.parent_ranks);
  settle_options(part.parent_ranks);
  part.driver = std::make_shared<GroupDriver>(
      options_,
      with_parent_ranks("split", part.parent_ranks, [&] { return form(part.parent_ranks, open); }));
  return part;
}

/// How the whole has met is of no use to the part, and is nobody's to change. The rendezvous is
/// for errors.
GroupOptions options_of_part(GroupOptions options, const GroupDriver& whole) {
  const auto& endpoints = whole.history()->endpoints;
  options.rank = whole.options().rank;
  options.world = whole.options().world;
  options.rendezvous = endpoints.empty() ? "localhost:1" : endpoints.front().front().text();
  options.job = whole.options().job;
  options.secret = whole.options().secret;
  options.all_gather = nullptr;
  options.listener.reset();
  options.handle.clear();
  return options;
}

} // namespace

SplitPlace place_in(std::span<const std::uint16_t> ranks, std::uint16_t own, std::uint16_t world) {
  SplitPlace place;
  for (const std::uint16_t& rank : ranks) {
    if (rank >= world || std::ranges::count(ranks, rank) != 1) {
      throw std::invalid_argument(
          fmt::format("ranks: found {}{}; allowed: each of 0 .. {} once at most", rank,
                      rank >= world ? "" : " twice", world - 1));
    }
    if (rank == own) {
      place.colour = ranks.front();
      place.key = static_cast<std::int32_t>(&rank - ranks.data());
      place.list.assign(ranks.begin(), ranks.end());
    }
  }
  return place;
}

Succession split(GroupDriver& whole, GroupOptions options, const SplitPlace& place,
                 const NoteExchange& exchange, const TransportOpening& open) {
  return Split(whole, options_of_part(std::move(options), whole), place).run(exchange, open);
}

} // namespace weir::host
