// SPDX-License-Identifier: BSD-3-Clause
#include "host/rendezvous/hello_outcomes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <string_view>

namespace weir::host {
namespace {

// Of one rank's texts together: with 256 ranks, all fit into a frame.
constexpr std::size_t kMostOutcomeBytes = 32768;

std::size_t most_error_bytes(std::size_t rings) {
  return sizeof(ErrorBody) +
         std::min(kMostPeerText, kMostOutcomeBytes / std::max<std::size_t>(rings, 1));
}

/// How little the hosts can do about it. Who got no answer knows more than whose neighbour, for the
/// same reason, acknowledges nothing.
int gravity_of(const Error& error) {
  constexpr std::array<ErrorCode, 3> rising{ErrorCode::not_aggregated, ErrorCode::retry_exceeded,
                                            ErrorCode::timeout};
  return static_cast<int>(std::ranges::find(rising, error.code()) - rising.begin());
}

/// The gravest; of equal ones the first. None if there is none.
std::optional<Error> gravest(const std::vector<std::optional<Error>>& errors) {
  std::optional<Error> found;
  for (const std::optional<Error>& error : errors) {
    if (error && (!found || gravity_of(*error) > gravity_of(*found))) {
      found = error;
    }
  }
  return found;
}

/// "ring 2", "rings 1, 3".
std::string named_rings(const std::vector<std::size_t>& places,
                        std::span<const std::uint32_t> rings) {
  std::vector<std::uint32_t> ids;
  for (const std::size_t place : places) {
    ids.push_back(rings[place]);
  }
  return fmt::format("{} {}", ids.size() == 1 ? "ring" : "rings", fmt::join(ids, ", "));
}

/// "ring 2 …: why; ring 3 …: why".
std::string reasons(const RingChoice& choice, std::span<const std::uint32_t> rings,
                    std::string_view what) {
  std::vector<std::string> parts;
  for (const MissingRing& ring : choice.missing) {
    parts.push_back(fmt::format("ring {}{}: {}", rings[ring.place], what, ring.why.what()));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

} // namespace

Blob encode(const HelloOutcomes& outcomes) {
  const std::size_t most = most_error_bytes(outcomes.size());
  Blob blob;
  for (const std::optional<Error>& outcome : outcomes) {
    Blob error = outcome ? encode(*outcome) : Blob();
    error.resize(std::min(error.size(), most));
    const wire::be16 bytes(static_cast<std::uint16_t>(error.size()));
    const auto prefix = bytes_of(bytes);
    blob.insert(blob.end(), prefix.begin(), prefix.end());
    blob.insert(blob.end(), error.begin(), error.end());
  }
  return blob;
}

HelloOutcomes decode_hello_outcomes(std::span<const std::uint8_t> blob, std::size_t rings,
                                    const Sender& sender) {
  HelloOutcomes outcomes;
  while (outcomes.size() < rings && blob.size() >= sizeof(wire::be16)) {
    const std::size_t bytes = wire::view_as<wire::be16>(blob.data()).get();
    blob = blob.subspan(sizeof(wire::be16));
    if (bytes > blob.size()) {
      break;
    }
    outcomes.push_back(bytes == 0 ? std::optional<Error>()
                                  : decode_error(blob.first(bytes), sender));
    blob = blob.subspan(bytes);
  }
  if (outcomes.size() != rings || !blob.empty()) {
    return HelloOutcomes(rings, decode_error({}, sender));
  }
  return outcomes;
}

RingChoice choose_rings(const std::vector<HelloOutcomes>& outcomes) {
  assert(!outcomes.empty());
  RingChoice choice;
  for (std::size_t place = 0; place < outcomes.front().size(); ++place) {
    std::vector<std::optional<Error>> of_ring;
    for (const HelloOutcomes& rank : outcomes) {
      of_ring.push_back(rank[place]);
    }
    if (const std::optional<Error> why = gravest(of_ring)) {
      choice.missing.push_back({place, *why});
    } else {
      choice.kept.push_back(place);
    }
  }
  return choice;
}

bool hosts_may_reduce(ErrorCode code) {
  return code == ErrorCode::not_aggregated || code == ErrorCode::timeout ||
         code == ErrorCode::retry_exceeded;
}

std::string describe_missing(const RingChoice& choice, std::span<const std::uint32_t> rings) {
  if (choice.missing.empty()) {
    return {};
  }
  return fmt::format("{}; the group goes on with {}", reasons(choice, rings, " is left out"),
                     named_rings(choice.kept, rings));
}

Error shortage(const RingChoice& choice, std::span<const std::uint32_t> rings) {
  std::vector<std::optional<Error>> errors;
  for (const MissingRing& ring : choice.missing) {
    errors.emplace_back(ring.why);
  }
  Error first = *gravest(errors);
  if (rings.size() == 1) {
    return first;
  }
  return {first.code(), first.rank(),
          choice.kept.empty()
              ? fmt::format("no ring is left: {}", reasons(choice, rings, ""))
              : fmt::format("{}; the group may not go on with {} alone (missing_rings)",
                            reasons(choice, rings, " is missing"),
                            named_rings(choice.kept, rings))};
}

} // namespace weir::host
