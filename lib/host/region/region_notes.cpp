// SPDX-License-Identifier: BSD-3-Clause
#include "host/region/region_notes.hpp"

#include "host/base/control_note.hpp"
#include "wire/big_endian.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace weir::host {
namespace {

constexpr std::uint32_t kRegionNoteMagic = 0x52474E31;   // "RGN1"
constexpr std::uint32_t kRegionAnswerMagic = 0x52474131; // "RGA1"

enum class PartState : std::uint8_t { is_there = 0, failed = 1 };

/// What is the same on all ranks.
struct RegionTermsBody {
  wire::be64 bytes;
  wire::be32 window;
  wire::be32 entries;
  wire::be32 reads;
  wire::be64 patience;
  wire::be64 forming;
  std::uint8_t loopback;
  std::uint8_t view_count;
  std::array<std::uint8_t, 2 * kMostRegionViews> views; // operation, type
};

struct RegionMemberBody {
  std::array<std::uint8_t, 16> ip;
  wire::be32 queue_pair;
  wire::be32 first_psn;
  wire::be64 base;
  wire::be32 key;
  std::uint8_t ack_timeout;
};

struct RegionNoteHeader {
  wire::be32 magic;
  std::uint8_t state; // PartState
  RegionTermsBody terms;
  RegionMemberBody member;
  wire::be16 error_bytes; // of `failed`, behind this
};

static_assert(sizeof(RegionNoteHeader) < kRegionNoteBytes);

struct SwitchEndBody {
  wire::be32 queue_pair;
  wire::be32 first_psn;
  std::array<std::uint8_t, 16> token;
};

struct RegionAnswerHeader {
  wire::be32 magic;
  std::uint8_t state; // PartState
  wire::be32 id;
  std::array<std::uint8_t, 16> ip;
  wire::MacAddress mac;
  wire::be64 base;
  wire::be32 key;
  wire::be32 window;
  wire::be64 patience;
  std::array<wire::be32, kMostRegionViews> view_keys;
  std::array<SwitchEndBody, kMostRegionMembers> ends;
  wire::be16 error_bytes; // of `failed`, behind this
};

static_assert(alignof(RegionAnswerHeader) == 1 && sizeof(RegionAnswerHeader) < kRegionAnswerBytes);

RegionTermsBody terms_of(const RegionNote& note) {
  RegionTermsBody terms{};
  terms.bytes.set(note.bytes);
  terms.window.set(note.options.window);
  terms.entries.set(note.options.entries);
  terms.reads.set(note.options.reads);
  terms.patience.set(static_cast<std::uint64_t>(note.options.patience.count()));
  terms.forming.set(static_cast<std::uint64_t>(note.options.forming.count()));
  terms.loopback = static_cast<std::uint8_t>(note.options.loopback);
  const std::size_t views = std::min(note.options.views.size(), kMostRegionViews);
  terms.view_count = static_cast<std::uint8_t>(views);
  for (std::size_t view = 0; view < views; ++view) {
    terms.views[2 * view] = static_cast<std::uint8_t>(note.options.views[view].operation);
    terms.views[2 * view + 1] = static_cast<std::uint8_t>(note.options.views[view].type);
  }
  return terms;
}

RegionMemberBody body_of(const RegionMember& member) {
  return {.ip = member.ip.bytes,
          .queue_pair = wire::be32(member.queue_pair),
          .first_psn = wire::be32(member.first_psn),
          .base = wire::be64(member.base),
          .key = wire::be32(member.key),
          .ack_timeout = member.ack_timeout};
}

RegionMember member_of(const RegionMemberBody& body) {
  return {.ip = {body.ip},
          .queue_pair = body.queue_pair.get(),
          .first_psn = body.first_psn.get(),
          .base = body.base.get(),
          .key = body.key.get(),
          .ack_timeout = body.ack_timeout};
}

/// The header in so many bytes, and the error behind it, as much as there is room for.
template <typename Header>
std::vector<std::uint8_t> with_error(Header header, const Error* error, std::size_t bytes) {
  std::vector<std::uint8_t> body = error != nullptr ? encode(*error) : std::vector<std::uint8_t>();
  body.resize(std::min(body.size(), bytes - sizeof(header)));
  header.error_bytes.set(static_cast<std::uint16_t>(body.size()));
  const auto fields = bytes_of(header);
  std::vector<std::uint8_t> all(fields.begin(), fields.end());
  all.insert(all.end(), body.begin(), body.end());
  all.resize(bytes);
  return all;
}

template <typename Header>
Error error_behind(std::span<const std::uint8_t> bytes, const Sender& sender) {
  const auto& header = wire::view_as<Header>(bytes.data());
  const auto body = bytes.subspan(sizeof(Header));
  const std::size_t error_bytes = std::min<std::size_t>(header.error_bytes.get(), body.size());
  return decode_error(body.first(error_bytes), sender, kAllErrorCodes);
}

} // namespace

std::vector<std::uint8_t> encode(const RegionNote& note) {
  const auto* const member = std::get_if<RegionMember>(&note.member);
  RegionNoteHeader header{};
  header.magic.set(kRegionNoteMagic);
  header.state =
      static_cast<std::uint8_t>(member != nullptr ? PartState::is_there : PartState::failed);
  header.terms = terms_of(note);
  header.member = body_of(member != nullptr ? *member : RegionMember{});
  return with_error(header, std::get_if<Error>(&note.member), kRegionNoteBytes);
}

std::vector<RegionMember> agreed_members(std::span<const std::uint8_t> notes) {
  const auto world = static_cast<std::uint16_t>(notes.size() / kRegionNoteBytes);
  const auto& first = wire::view_as<RegionNoteHeader>(notes.data());
  std::vector<RegionMember> members;
  for (std::uint16_t rank = 0; rank < world; ++rank) {
    const auto note = notes.subspan(rank * kRegionNoteBytes, kRegionNoteBytes);
    const auto& header = wire::view_as<RegionNoteHeader>(note.data());
    if (header.magic.get() != kRegionNoteMagic) {
      throw Error(ErrorCode::mismatch, rank,
                  fmt::format("rank {} does not make a region, but calls something else", rank));
    }
    if (header.state != static_cast<std::uint8_t>(PartState::is_there)) {
      throw error_behind<RegionNoteHeader>(note, {rank, world});
    }
    if (!std::ranges::equal(bytes_of(header.terms), bytes_of(first.terms))) {
      throw Error(ErrorCode::mismatch, rank,
                  fmt::format("rank {} makes a region of {} bytes and rank 0 one of {}; allowed: "
                              "the same bytes and options on all ranks",
                              rank, header.terms.bytes.get(), first.terms.bytes.get()));
    }
    members.push_back(member_of(header.member));
  }
  return members;
}

std::vector<std::uint8_t> encode(const RegionAnswer& answer) {
  RegionAnswerHeader header{};
  header.magic.set(kRegionAnswerMagic);
  const auto* const error = std::get_if<Error>(&answer);
  header.state =
      static_cast<std::uint8_t>(error != nullptr ? PartState::failed : PartState::is_there);
  if (const auto* const made = std::get_if<MadeRegion>(&answer)) {
    header.id.set(made->id);
    header.ip = made->ip.bytes;
    header.mac = made->mac;
    header.base.set(made->base);
    header.key.set(made->key);
    header.window.set(made->window);
    header.patience.set(static_cast<std::uint64_t>(made->patience.count()));
    for (std::size_t view = 0; view < made->view_keys.size(); ++view) {
      header.view_keys[view].set(made->view_keys[view]);
    }
    for (std::size_t rank = 0; rank < made->ends.size(); ++rank) {
      const RegionEnd& end = made->ends[rank];
      header.ends[rank] = {wire::be32(end.queue_pair), wire::be32(end.first_psn), end.token};
    }
  }
  return with_error(header, error, kRegionAnswerBytes);
}

MadeRegion decode_region_answer(std::span<const std::uint8_t> bytes, std::size_t members,
                                std::size_t views) {
  const auto& header = wire::view_as<RegionAnswerHeader>(bytes.data());
  if (header.magic.get() != kRegionAnswerMagic) {
    throw Error(ErrorCode::transport_failure, 0, "rank 0 sent a region that cannot be read");
  }
  if (header.state != static_cast<std::uint8_t>(PartState::is_there)) {
    throw error_behind<RegionAnswerHeader>(bytes, {0, static_cast<std::uint16_t>(members)});
  }
  MadeRegion made{.id = header.id.get(),
                  .ip = {header.ip},
                  .mac = header.mac,
                  .base = header.base.get(),
                  .key = header.key.get(),
                  .window = header.window.get(),
                  .patience = std::chrono::seconds(header.patience.get()),
                  .view_keys = {},
                  .ends = {}};
  for (std::size_t view = 0; view < views; ++view) {
    made.view_keys.push_back(header.view_keys[view].get());
  }
  for (std::size_t rank = 0; rank < members; ++rank) {
    const SwitchEndBody& end = header.ends[rank];
    made.ends.push_back(
        {.queue_pair = end.queue_pair.get(), .first_psn = end.first_psn.get(), .token = end.token});
  }
  return made;
}

} // namespace weir::host
