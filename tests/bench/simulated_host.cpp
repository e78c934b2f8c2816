// SPDX-License-Identifier: BSD-3-Clause
#include "simulated_host.hpp"

#include <fmt/format.h>

#include <cmath>

namespace weir::bench {
namespace {

constexpr std::uint32_t kOutgoingQp = 0x100; // plus the rank
constexpr std::uint32_t kIncomingQp = 0x200;
constexpr std::uint32_t kFirstPsn = 0xfffff0;
constexpr std::uint32_t kInboxKey = 0x77;
constexpr std::uint8_t kPatientTimer = 1; // RNR code: 10 us

/// Several round trips with full queues.
constexpr endpoint::Duration kAckTimeout = std::chrono::microseconds(500);

std::uint16_t successor_of(std::uint16_t rank, std::uint16_t world) {
  return static_cast<std::uint16_t>((rank + 1u) % world);
}

std::uint16_t predecessor_of(std::uint16_t rank, std::uint16_t world) {
  return static_cast<std::uint16_t>((rank + world - 1u) % world);
}

} // namespace

wire::MacAddress mac_of(std::uint16_t rank) {
  return {{0x02, 0, 0, 0, 1, static_cast<std::uint8_t>(rank)}};
}

wire::IpAddress ip_of(std::uint16_t rank) {
  return *wire::parse_ip(fmt::format("10.0.0.{}", rank + 1));
}

std::uint32_t outgoing_qp_of(std::uint16_t rank) {
  return kOutgoingQp + rank;
}

std::uint8_t ack_timeout_exponent() {
  using Units = std::chrono::duration<double, std::ratio<4096, 1'000'000'000>>;
  return static_cast<std::uint8_t>(std::lround(std::log2(Units(kAckTimeout).count())));
}

QueuePairFailed::QueuePairFailed(std::uint16_t rank)
    : std::runtime_error(fmt::format("rank {}: a queue pair failed", rank)) {}

SimulatedHost::SimulatedHost(SimulatedNetwork& network, Exchange& exchange, std::uint16_t rank,
                             std::uint16_t world, const HostTraits& traits)
    : network_(network), exchange_(exchange), rank_(rank), traits_(traits),
      device_(*this, traits.longest_frame()), outgoing_(device_.create(outgoing_config(world))),
      incoming_(device_.create(incoming_config(world))),
      inbox_(std::size_t{traits.inboxes()} * traits.message_bytes) {
  device_.memory().add(kInboxKey, 0, inbox_);
  for (std::uint32_t i = 0; i < traits.inboxes(); ++i) {
    incoming_.post(endpoint::ReceiveRequest{});
  }
  network_.attach(rank, *this);
  network_.introduce(rank, mac_of(rank));
}

endpoint::QueuePairConfig SimulatedHost::config(std::uint16_t peer) const {
  endpoint::QueuePairConfig config;
  config.local_mac = mac_of(rank_);
  config.local_ip = ip_of(rank_);
  config.remote_mac = mac_of(peer);
  config.remote_ip = ip_of(peer);
  config.send_psn = kFirstPsn;
  config.receive_psn = kFirstPsn;
  config.path_mtu = traits_.mtu;
  config.ack_timeout = kAckTimeout;
  config.rnr_timer = kPatientTimer;
  config.window = traits_.packets_in_flight;
  config.send_depth = traits_.inboxes();
  config.receive_depth = traits_.inboxes();
  return config;
}

endpoint::QueuePairConfig SimulatedHost::outgoing_config(std::uint16_t world) const {
  const std::uint16_t successor = successor_of(rank_, world);
  endpoint::QueuePairConfig outgoing = config(successor);
  outgoing.local_qp = outgoing_qp_of(rank_);
  outgoing.remote_qp = kIncomingQp + successor;
  return outgoing;
}

endpoint::QueuePairConfig SimulatedHost::incoming_config(std::uint16_t world) const {
  const std::uint16_t predecessor = predecessor_of(rank_, world);
  endpoint::QueuePairConfig incoming = config(predecessor);
  incoming.local_qp = kIncomingQp + rank_;
  incoming.remote_qp = outgoing_qp_of(predecessor);
  return incoming;
}

void SimulatedHost::receive(std::span<std::uint8_t> frame) {
  device_.receive(frame);
  pump();
}

void SimulatedHost::expire() {
  if (device_.expire()) {
    pump();
  }
}

void SimulatedHost::pump() {
  for (bool moved = true; moved;) {
    moved = take_messages();
    moved |= take_acknowledgements();
    moved |= post_messages();
  }
  device_.transmit();
  if (outgoing_.failure() || incoming_.failure()) {
    throw QueuePairFailed(rank_);
  }
}

bool SimulatedHost::take_messages() {
  bool moved = false;
  while (const auto completion = incoming_.poll()) {
    const std::size_t at = taken_++ % traits_.inboxes() * traits_.message_bytes;
    exchange_.arrived(completion->immediate.value_or(0),
                      std::span<const std::uint8_t>(inbox_).subspan(at, completion->bytes));
    incoming_.post(endpoint::ReceiveRequest{});
    moved = true;
  }
  return moved;
}

bool SimulatedHost::take_acknowledgements() {
  bool moved = false;
  while (outgoing_.poll()) {
    ++acknowledged_;
    exchange_.acknowledged();
    moved = true;
  }
  return moved;
}

bool SimulatedHost::post_messages() {
  bool moved = false;
  while (posted_ - acknowledged_ < traits_.inboxes()) {
    const auto message = exchange_.next();
    if (!message) {
      break;
    }
    endpoint::SendRequest request;
    request.kind = endpoint::SendKind::write_immediate;
    request.header = message->header;
    request.data = message->data;
    request.remote_address = posted_ % traits_.inboxes() * traits_.message_bytes;
    request.remote_key = kInboxKey;
    request.immediate = static_cast<std::uint32_t>(posted_);
    ++posted_;
    outgoing_.post(request);
    moved = true;
  }
  return moved;
}

} // namespace weir::bench
