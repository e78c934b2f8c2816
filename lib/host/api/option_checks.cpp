// SPDX-License-Identifier: BSD-3-Clause

/// The allowed values of GroupOptions.

#include "host/api/group.hpp"
#include "host/api/transport_options.hpp"
#include "host/base/stream.hpp"
#include "host/rendezvous/handshake.hpp"
#include "host/rendezvous/listener.hpp"
#include "weir/limits.hpp"
#include "wire/address.hpp"
#include "wire/operator_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

namespace weir::host {
namespace {

constexpr double kMaxLoss = 0.9;
constexpr std::uint64_t kMaxPackets = std::uint64_t{1} << 22; // 2N x L: half of what has an order

std::string found(std::string_view option, auto value, std::string_view allowed) {
  return fmt::format("{}: found {}; allowed: {}", option, value, allowed);
}

std::string defect_of_job(const GroupOptions& options) {
  if (options.world == 0 || options.world > kMaxWorld) {
    return found("world", options.world, "1 .. 256");
  }
  if (options.rank >= options.world) {
    return found("rank", options.rank, fmt::format("0 .. {}", options.world - 1));
  }
  return {};
}

std::string defect_of_bytes(const std::string& handle) {
  try {
    read_handle(handle);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

std::string defect_of_handle(const GroupOptions& options) {
  const bool has_listener = options.listener != nullptr;
  if (!options.rendezvous.empty() || options.all_gather) {
    return found(has_listener ? "listener" : "handle",
                 options.all_gather ? "an all_gather too"
                                    : fmt::format("rendezvous '{}' too", options.rendezvous),
                 "one way to meet");
  }
  if (has_listener != (options.rank == 0)) {
    return found("listener",
                 fmt::format("{} on rank {}", has_listener ? "one" : "none", options.rank),
                 "one on rank 0 alone, and its handle on the others");
  }
  if (has_listener && !options.handle.empty() &&
      options.handle != options.listener->handle_text()) {
    return found("handle", "another listener's", "none on rank 0, or its own listener's");
  }
  return has_listener ? std::string() : defect_of_bytes(options.handle);
}

std::string defect_of_place(const GroupOptions& options) {
  if (options.listener || !options.handle.empty()) {
    return defect_of_handle(options);
  }
  const bool may_be_empty = static_cast<bool>(options.all_gather);
  if (!(may_be_empty && options.rendezvous.empty()) && !Endpoint::parse(options.rendezvous)) {
    return found("rendezvous", fmt::format("'{}'", options.rendezvous),
                 may_be_empty ? "none, or HOST:PORT" : "HOST:PORT");
  }
  const auto endpoint = Endpoint::parse(options.rendezvous);
  if (endpoint && !may_be_empty && std::stoi(endpoint->port) == 0) {
    return found("rendezvous", fmt::format("'{}'", options.rendezvous),
                 "a port that is not 0, unless an all-gather tells the ranks which it is");
  }
  return {};
}

/// A secret is never printed.
std::string defect_of_credentials(const GroupOptions& options) {
  const auto is_printable = [](char c) { return c >= ' ' && c <= '~'; };
  if (options.job.size() > kMostJobBytes || !std::ranges::all_of(options.job, is_printable)) {
    return found("job", fmt::format("{} bytes", options.job.size()),
                 fmt::format("0 .. {} printable ASCII characters", kMostJobBytes));
  }
  const std::size_t bytes = options.secret.size();
  if (bytes != 0 && (bytes < kFewestSecretBytes || bytes > kMostSecretBytes)) {
    return found("secret", fmt::format("{} bytes", bytes),
                 fmt::format("none, or {} .. {} bytes", kFewestSecretBytes, kMostSecretBytes));
  }
  return {};
}

std::size_t most_rings(RingIds ids) {
  switch (ids) {
  case RingIds::given:
    return SIZE_MAX;
  case RingIds::open:
    return kMostOpenRings;
  case RingIds::offered:
    return kMostOfferedRings;
  }
  return 0;
}

std::string defect_of_rings(const GroupOptions& options) {
  const std::size_t most = most_rings(options.ring_ids);
  const std::set<std::uint32_t> distinct(options.rings.begin(), options.rings.end());
  if (options.rings.size() > most) {
    return found("ring_count", options.rings.size(), fmt::format("1 .. {} without ids", most));
  }
  if (options.rings.empty() || distinct.size() != options.rings.size()) {
    return found("rings", fmt::format("{}", fmt::join(options.rings, ",")), "distinct ids");
  }
  return {};
}

std::uint64_t packets_under_way(const GroupOptions& options) {
  const std::uint32_t mtu = options.path_mtu;
  return std::uint64_t{slots_of(options)} * ((options.message_bytes + mtu - 1) / mtu);
}

std::string defect_of_messages(const GroupOptions& options) {
  if (options.window < 1 || options.window > kMaxWindow) {
    return found("window", options.window, fmt::format("1 .. {}", kMaxWindow));
  }
  const std::uint32_t mtu = options.path_mtu;
  if (std::ranges::find(kPathMtus, mtu) == kPathMtus.end()) {
    return found("path_mtu", mtu, fmt::format("one of {}", fmt::join(kPathMtus, ", ")));
  }
  if (options.message_bytes < kInaHeaderBytes + 8 || options.message_bytes > kMaxMessageBytes) {
    return found("message_bytes", options.message_bytes,
                 fmt::format("{} .. {}", kInaHeaderBytes + 8, kMaxMessageBytes));
  }
  constexpr std::size_t with_operators =
      kInaHeaderBytes + kMostOperators * sizeof(wire::OperatorEntry);
  if (!options.operators.empty() && options.message_bytes < with_operators) {
    return found("message_bytes", options.message_bytes,
                 fmt::format("{} or more for a group with operators", with_operators));
  }
  if (const std::uint64_t packets = packets_under_way(options); packets > kMaxPackets) {
    return found("window", options.window,
                 fmt::format("as many messages as make {} packets in {} slots; these make {}",
                             kMaxPackets, slots_of(options), packets));
  }
  return {};
}

std::string defect_of_timeouts(const GroupOptions& options) {
  if (options.form_timeout.count() <= 0) {
    return found("form_timeout", fmt::format("{} ms", options.form_timeout.count()), "more than 0");
  }
  if (options.timeout.count() <= 0) {
    return found("timeout", fmt::format("{} ms", options.timeout.count()), "more than 0");
  }
  if (options.lateness.count() < 0) {
    return found("lateness", fmt::format("{} ms", options.lateness.count()), "0 or more");
  }
  if (options.farewell.count() < 0) {
    return found("farewell", fmt::format("{} ms", options.farewell.count()), "0 or more");
  }
  if (const auto time = options.keep_alive;
      time.count() != 0 && time < FramedStream::kShortestSilence) {
    return found("keep_alive", fmt::format("{} ms", time.count()), "0, or 3000 and more");
  }
  if (options.ack_timeout.count() < 0 || options.ack_timeout > kMaxAckTimeout) {
    return found("ack_timeout", fmt::format("{} ms", options.ack_timeout.count()),
                 fmt::format("0 .. {}", kMaxAckTimeout.count()));
  }
  if (options.retry_count > kMostRetries) {
    return found("retry_count", options.retry_count, "0 .. 7");
  }
  return {};
}

} // namespace

std::string find_device_defect(const GroupOptions& options) {
  if (!(options.loss >= 0 && options.loss <= kMaxLoss)) {
    return found("loss", options.loss, "0 .. 0.9");
  }
  if (!options.ip.empty() && !wire::parse_ip(options.ip)) {
    return found("ip", fmt::format("'{}'", options.ip), "none, or an IPv4 or IPv6 address");
  }
  if (!options.mac.empty() && !wire::parse_mac(options.mac)) {
    return found("mac", fmt::format("'{}'", options.mac), "six hexadecimal bytes with colons");
  }
  return {};
}

std::string find_defect(const GroupOptions& options) {
  for (const auto defect_of :
       {defect_of_job, defect_of_rings, defect_of_place, defect_of_credentials, defect_of_messages,
        defect_of_timeouts, find_device_defect}) {
    if (std::string defect = defect_of(options); !defect.empty()) {
      return defect;
    }
  }
  return {};
}

} // namespace weir::host
