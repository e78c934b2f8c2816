// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/transport_options.hpp"

#include "host/base/error.hpp"
#include "host/base/host_addresses.hpp"
#include "wire/address.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace weir::host {
namespace {

constexpr std::chrono::milliseconds kShortAckTimeout{67}; // 4.096 us x 2^14
constexpr std::uint32_t kRingSlotsPerRank = 8;

/// The software queue pair retries without limit; an HCA gives up after eight tries. Whether the
/// switch can keep it alive for longer depends on the HCA (docs/protocol.md §4).
std::chrono::milliseconds ack_timeout_of(const GroupOptions& options) {
  if (options.ack_timeout.count() != 0) {
    return options.ack_timeout;
  }
  constexpr int kTries = kMostRetries + 1;
  const auto patience = std::max(options.timeout, options.lateness);
  const auto share = std::clamp(patience / kTries, kShortAckTimeout, kMaxAckTimeout);
  return options.transport == TransportKind::verbs ? share : kShortAckTimeout;
}

std::string own_ip(const GroupOptions& options) {
  if (options.device.empty()) {
    throw Error(ErrorCode::transport_failure, std::nullopt,
                "ip: not given, and the device is no network interface; allowed: the option ip");
  }
  return own_address(read_host_addresses(), options.device);
}

} // namespace

std::uint32_t slots_of(const GroupOptions& options) {
  const std::uint32_t ring = options.fallback == Fallback::ring ? kRingSlotsPerRank : 0;
  return std::max(2 * options.window, ring * options.world);
}

TransportPlan transport_plan(const GroupOptions& options) {
  return {.rank = options.rank,
          .channels = options.rings.size(),
          .slots = slots_of(options),
          .slot_bytes = options.message_bytes,
          .path_mtu = options.path_mtu,
          .window = options.window,
          .ack_timeout = ack_timeout_of(options),
          .retry_count = options.retry_count,
          .rings = options.rings,
          .has_operators = !options.operators.empty()};
}

SoftwareTransportOptions software_options(const GroupOptions& options, const FrameIo& frames) {
  const std::string ip = options.ip.empty() ? own_ip(options) : options.ip;
  return {.ip = *wire::parse_ip(ip),
          .mac = options.mac.empty() ? frames.mac() : *wire::parse_mac(options.mac),
          .loss = options.loss,
          .seed = options.seed};
}

std::unique_ptr<Transport> open_software_transport(const GroupOptions& options,
                                                   std::unique_ptr<FrameIo> frames) {
  const SoftwareTransportOptions software = software_options(options, *frames);
  return std::make_unique<SoftwareTransport>(transport_plan(options), software, std::move(frames));
}

RegionLinkPlan region_link_plan(const GroupOptions& group, std::span<std::uint8_t> memory,
                                std::uint32_t reads) {
  const TransportPlan plan = transport_plan(group);
  return {.memory = memory,
          .path_mtu = plan.path_mtu,
          .reads = reads,
          .ack_timeout = plan.exact_ack_timeout(),
          .ack_timeout_exponent = plan.ack_timeout_exponent(),
          .retry_count = plan.retry_count};
}

} // namespace weir::host
