// SPDX-License-Identifier: BSD-3-Clause
#include "host/rendezvous/rendezvous_point.hpp"

#include "host/base/control_note.hpp"
#include "host/base/error.hpp"
#include "wire/big_endian.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace weir::host {
namespace {

constexpr std::uint32_t kNoteVersion = 1;
constexpr std::size_t kSecretBytes = 32;

struct NoteHeader {
  wire::be32 version;
  wire::be16 rank;
  wire::be16 world;
  std::uint8_t has_failed; // the text says why; otherwise it is rank 0's endpoints, with commas
  std::array<char, kSecretBytes> secret;
  wire::be16 text_bytes;
};

constexpr std::size_t kMostTextBytes = kMeetingNoteBytes - sizeof(NoteHeader);

/// One rank's part of the all-gather.
struct Note {
  NoteHeader header;
  std::array<char, kMostTextBytes> text;
};

static_assert(sizeof(Note) == kMeetingNoteBytes);

void write_text(Note& note, std::string_view text) {
  const std::size_t bytes = std::min(text.size(), kMostTextBytes);
  note.header.text_bytes.set(static_cast<std::uint16_t>(bytes));
  std::copy_n(text.begin(), bytes, note.text.begin());
}

std::string_view text_of(const Note& note) {
  const std::size_t bytes = note.header.text_bytes.get();
  return {note.text.data(), std::min(bytes, kMostTextBytes)};
}

Note note_of(const Claim& claim) {
  Note note{};
  note.header.version.set(kNoteVersion);
  note.header.rank.set(claim.rank);
  note.header.world.set(claim.world);
  return note;
}

/// As many endpoints as there is room for.
std::string joined(const std::vector<Endpoint>& endpoints) {
  std::string text;
  for (const Endpoint& endpoint : endpoints) {
    const std::string next = fmt::format("{}{}", text.empty() ? "" : ",", endpoint.text());
    if (text.size() + next.size() <= kMostTextBytes) {
      text += next;
    }
  }
  return text;
}

std::vector<Note> gathered(const AllGather& all_gather, const Claim& claim, const Note& own) {
  std::vector<Note> notes(claim.world);
  const int status = all_gather(&own, sizeof(own), notes.data());
  if (status != 0) {
    throw Error(ErrorCode::transport_failure, claim.rank,
                fmt::format("all_gather: the caller's function returned {} on rank {}; 0 is due",
                            status, claim.rank));
  }
  return notes;
}

void check_note(const Note& note, std::uint16_t place, const Claim& own) {
  const NoteHeader& header = note.header;
  if (header.version.get() != kNoteVersion) {
    throw Error(ErrorCode::mismatch, place,
                fmt::format("all_gather: place {} has version {}; rank {} has {}", place,
                            header.version.get(), own.rank, kNoteVersion));
  }
  if (header.rank.get() != place || header.world.get() != own.world) {
    throw Error(ErrorCode::mismatch, place,
                fmt::format("all_gather: place {} holds rank {} of {}; due is rank {} of {}", place,
                            header.rank.get(), header.world.get(), place, own.world));
  }
  if (header.has_failed != 0) {
    throw Error(ErrorCode::transport_failure, place,
                fmt::format("rank {} cannot come: {}", place, peer_text(text_of(note))));
  }
}

} // namespace

RendezvousPoint share_rendezvous_point(const AllGather& all_gather, const Claim& claim,
                                       const RendezvousPoint& own) {
  Note note = note_of(claim);
  write_text(note, joined(own.endpoints));
  std::copy_n(own.secret.begin(), std::min(own.secret.size(), kSecretBytes),
              note.header.secret.begin());
  const std::vector<Note> notes = gathered(all_gather, claim, note);
  for (std::uint16_t place = 0; place < claim.world; ++place) {
    check_note(notes[place], place, claim);
  }
  const std::array<char, kSecretBytes>& secret = notes[0].header.secret;
  return {Endpoint::parse_list(text_of(notes[0])), std::string(secret.begin(), secret.end())};
}

void share_failure(const AllGather& all_gather, const Claim& claim, std::string_view why) {
  Note note = note_of(claim);
  note.header.has_failed = 1;
  write_text(note, why);
  std::vector<Note> others(claim.world);
  all_gather(&note, sizeof(note), others.data());
}

} // namespace weir::host
