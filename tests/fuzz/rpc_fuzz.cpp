// SPDX-License-Identifier: BSD-3-Clause

/// Messages of the control service: what clients send, and the tables that weirctl gets. A message
/// keeps the limits or is a WrongMessage; tables that are accepted can be printed.

#include "frame_script.hpp"
#include "ring/ring_set.hpp"
#include "rpc/messages.hpp"
#include "rpc/ring_messages.hpp"

#include <algorithm>
#include <string_view>

using namespace weir;

namespace {

/// `Message` from the bytes, if they are one.
template <typename Message, typename Use>
void with(std::string_view bytes, Use&& use) {
  Message message;
  if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    try {
      use(message);
    } catch (const rpc::WrongMessage&) {
    }
  }
}

void check_words(const command::Words& words) {
  fuzz::require(!words.empty() && words.size() <= 16, "too few words or too many");
  for (const std::string& word : words) {
    fuzz::require(!word.empty() && word.size() <= 4096, "a word of a wrong length");
    fuzz::require(
        std::ranges::none_of(word, [](char byte) { return byte == '\n' || byte == '\x1b'; }),
        "a word that writes on terminals");
  }
}

void check_tables(const v1::Tables& message) {
  const rpc::ReceivedReport received(message.tables());
  (void)to_text(received.report());
  (void)to_json(received.report());
  v1::Tables again;
  rpc::write(received.report(), *again.mutable_tables());
  fuzz::require(again.tables_size() == message.tables_size(), "a table is lost");
}

/// `Message` has the ring, or is one.
template <typename Message>
void check_ring(const Message& message, const v1::Ring& ring) {
  static const config::Config config =
      config::parse_config("ports: [{name: p0, device: a}, {name: p1, device: b}]", "fuzz");
  try {
    const ring::RingSpec spec = rpc::ring_of(message, config);
    fuzz::require(spec.id == ring.id() && spec.window == ring.window(), "another ring");
    fuzz::require(spec.world() == ring.members_size(), "another number of members");
    const ring::RingSet rings({spec});
  } catch (const config::ConfigError&) {
    return;
  }
}

void check_held_ring(const v1::HoldRingRequest& request) {
  check_ring(request, request.ring());
  const bool is_given = request.id() == v1::HoldRingRequest::GIVEN;
  fuzz::require(is_given || (request.id() == v1::HoldRingRequest::CHOSEN_BY_SWITCH &&
                             request.ring().id() == 0),
                "an id that is neither given nor chosen");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 7) {
  case 0:
    with<v1::ExecuteRequest>(
        bytes, [](const auto& request) { check_words(rpc::words_of(request.words())); });
    break;
  case 1:
    with<v1::CompleteRequest>(bytes, [](const auto& request) {
      fuzz::require(rpc::line_of(request).size() <= 4096, "a long line");
    });
    break;
  case 2:
    with<v1::WatchStatisticsRequest>(bytes, [](const auto& request) {
      check_words(rpc::words_of(request.words()));
      const auto period = rpc::period_of(request).count();
      fuzz::require(period >= 100 && period <= 3'600'000, "a period out of bounds");
    });
    break;
  case 3:
    with<v1::Ring>(bytes, [](const auto& ring) { check_ring(ring, ring); });
    break;
  case 4:
    with<v1::HoldRingRequest>(bytes, check_held_ring);
    break;
  case 5:
    with<v1::DrainRingRequest>(bytes, [](const auto& request) {
      const auto quiet = rpc::quiet_of(request).count();
      fuzz::require(quiet >= 1 && quiet <= 86400, "a quiet time out of bounds");
    });
    break;
  default:
    with<v1::Tables>(bytes, check_tables);
  }
  return 0;
}
