// SPDX-License-Identifier: BSD-3-Clause
#include "host/rendezvous/agreement.hpp"

#include "host/base/control_note.hpp"
#include "program/digest.hpp"
#include "program/operator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace weir::host {
namespace {

constexpr std::uint32_t kBlobVersion = 9; // of this blob, and of how calls are cut (kUncutBytes)

/// The options that all ranks share. The ring ids, the operators' digests and the address follow
/// it.
struct IntroductionBody {
  wire::be32 version;
  wire::be32 epoch_option;
  wire::be32 window;
  wire::be32 message_bytes;
  wire::be32 path_mtu;
  wire::be32 transport;
  wire::be32 fallback;
  wire::be32 missing_rings;
  wire::be32 rings;
  wire::be32 ring_ids;
  wire::be32 ring_source;
  wire::be32 epoch;
  wire::be32 nonce;
  std::array<std::uint8_t, 16> nic;
  wire::be32 user;
  wire::be32 operators;
};

IntroductionBody body_of(const GroupOptions& options, const Introduction& own) {
  return {wire::be32(kBlobVersion),
          wire::be32(options.epoch),
          wire::be32(options.window),
          wire::be32(options.message_bytes),
          wire::be32(options.path_mtu),
          wire::be32(static_cast<std::uint32_t>(options.transport)),
          wire::be32(static_cast<std::uint32_t>(options.fallback)),
          wire::be32(static_cast<std::uint32_t>(options.missing_rings)),
          wire::be32(static_cast<std::uint32_t>(options.rings.size())),
          wire::be32(static_cast<std::uint32_t>(options.ring_ids)),
          wire::be32(static_cast<std::uint32_t>(own.ring_source)),
          wire::be32(own.incarnation.epoch),
          wire::be32(own.incarnation.nonce),
          own.residence.nic,
          wire::be32(own.residence.user),
          wire::be32(static_cast<std::uint32_t>(options.operators.size()))};
}

class Comparison {
 public:
  Comparison(std::uint16_t own, std::uint16_t other) : own_(own), other_(other) {}

  void same(std::string_view option, std::uint64_t have, std::uint64_t due) const {
    if (have != due) {
      throw Error(ErrorCode::mismatch, other_,
                  fmt::format("rendezvous: rank {} says {} {}; rank {} says {}", other_, option,
                              have, own_, due));
    }
  }

  /// No number is used that not all ranks mean the same by, to the bit.
  void same_operator(std::size_t number, const program::Operator& ours,
                     std::span<const std::uint8_t> digest) const {
    program::Digest theirs{};
    std::ranges::copy(digest, theirs.begin());
    if (theirs != ours.digest()) {
      throw Error(
          ErrorCode::mismatch, other_,
          fmt::format("operator {} ({}): rank {} has digest {}, rank {} has {}; allowed: one "
                      "text, and libraries that give it the same results, on all ranks",
                      number, ours.name(), other_, program::to_string(theirs), own_,
                      program::to_string(ours.digest())));
    }
  }

 private:
  std::uint16_t own_;
  std::uint16_t other_;
};

Introduction read(const GroupOptions& options, std::uint16_t rank,
                  std::span<const std::uint8_t> blob) {
  const Comparison compare(options.rank, rank);
  if (blob.size() < sizeof(IntroductionBody)) {
    throw Error(ErrorCode::mismatch, rank,
                fmt::format("rendezvous: rank {} is another version of this library", rank));
  }
  const auto& found = wire::view_as<IntroductionBody>(blob.data());
  const IntroductionBody own = body_of(options, {});
  compare.same("protocol version", found.version.get(), own.version.get());
  compare.same("epoch", found.epoch_option.get(), own.epoch_option.get());
  compare.same("window", found.window.get(), own.window.get());
  compare.same("message_bytes", found.message_bytes.get(), own.message_bytes.get());
  compare.same("path_mtu", found.path_mtu.get(), own.path_mtu.get());
  compare.same("transport", found.transport.get(), own.transport.get());
  compare.same("fallback", found.fallback.get(), own.fallback.get());
  compare.same("missing_rings", found.missing_rings.get(), own.missing_rings.get());
  compare.same("number of rings", found.rings.get(), own.rings.get());
  compare.same("ring ids left open", found.ring_ids.get(), own.ring_ids.get());
  compare.same("number of operators", found.operators.get(), own.operators.get());
  const std::size_t rings_end =
      sizeof(IntroductionBody) + options.rings.size() * sizeof(wire::be32);
  const std::size_t fixed = rings_end + options.operators.size() * sizeof(program::Digest);
  compare.same("at least bytes of introduction", blob.size() < fixed ? blob.size() : fixed, fixed);
  const std::uint8_t* at = blob.data() + sizeof(IntroductionBody);
  for (const std::uint32_t ring : options.rings) {
    compare.same("ring", wire::view_as<wire::be32>(at).get(), ring);
    at += sizeof(wire::be32);
  }
  for (std::size_t number = 0; number < options.operators.size(); ++number) {
    compare.same_operator(number, *options.operators[number], {at, sizeof(program::Digest)});
    at += sizeof(program::Digest);
  }
  return {{found.epoch.get(), found.nonce.get()},
          found.ring_source.get() == 0 ? RingSource::configuration : RingSource::made_now,
          {found.nic, found.user.get()},
          Blob(blob.begin() + static_cast<std::ptrdiff_t>(fixed), blob.end())};
}

} // namespace

Blob introduce(const GroupOptions& options, const Introduction& own) {
  const IntroductionBody body = body_of(options, own);
  const auto fields = bytes_of(body);
  Blob blob(fields.begin(), fields.end());
  for (const std::uint32_t ring : options.rings) {
    const wire::be32 id(ring);
    const auto bytes = bytes_of(id);
    blob.insert(blob.end(), bytes.begin(), bytes.end());
  }
  for (const auto& one : options.operators) {
    blob.insert(blob.end(), one->digest().begin(), one->digest().end());
  }
  blob.insert(blob.end(), own.address.begin(), own.address.end());
  return blob;
}

std::vector<Introduction> agree(const GroupOptions& options, const std::vector<Blob>& blobs) {
  std::vector<Introduction> introductions;
  for (std::uint16_t rank = 0; rank < blobs.size(); ++rank) {
    introductions.push_back(read(options, rank, blobs[rank]));
  }
  return introductions;
}

} // namespace weir::host
