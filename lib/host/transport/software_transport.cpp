// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/software_transport.hpp"

#include "host/base/control_note.hpp"
#include "host/base/error.hpp"
#include "host/transport/channel_numbers.hpp"
#include "random/random_bytes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>

namespace weir::host {
namespace {

/// The blob of a channel: where to write, and which queue pairs to connect to.
struct SoftwareChannelAddress {
  std::array<std::uint8_t, 16> ip;
  wire::MacAddress mac;
  ChannelNumbers numbers;
};

constexpr std::uint32_t kMaxPacketsInFlight = 128; // one loss makes go-back-N repeat as many

std::uint32_t packets_in_flight(const TransportPlan& plan) {
  const std::uint64_t per_message = (plan.slot_bytes + plan.path_mtu - 1) / plan.path_mtu;
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(per_message * plan.window, 16, kMaxPacketsInFlight));
}

} // namespace

SoftwareTransport::SoftwareTransport(const TransportPlan& plan,
                                     const SoftwareTransportOptions& options,
                                     std::unique_ptr<FrameIo> frames)
    : plan_(plan), options_(options),
      pump_(std::move(frames), {.share = options.loss, .seed = options.seed}),
      channels_(plan.channels) {
  for (Channel& channel : channels_) {
    channel.inbox.resize(plan.slots_bytes());
    channel.receives.resize(plan.slots);
  }
  renew(Delivery::by_send);
}

void SoftwareTransport::renew(Delivery delivery) {
  delivery_ = delivery;
  const auto numbers = static_cast<std::uint32_t>(2 * channels_.size());
  const std::uint32_t first = draw_queue_pairs(numbers);
  pump_.frames().keep_only({.first = first, .count = numbers});
  device_ = std::make_unique<endpoint::Device>();
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    Channel& channel = channels_[i];
    channel.outgoing_number = first + static_cast<std::uint32_t>(2 * i);
    channel.incoming_number = channel.outgoing_number + 1;
    channel.outgoing_psn = draw_psn();
    channel.incoming_psn = draw_psn();
    channel.inbox_key = (random_number(0, 0xffffff) << 8) | static_cast<std::uint32_t>(i);
    channel.outgoing = channel.incoming = nullptr;
    channel.is_closed = false;
    if (delivery == Delivery::by_write) {
      device_->memory().add(channel.inbox_key, channel.inbox);
    }
  }
}

std::vector<std::uint8_t> SoftwareTransport::address() const {
  std::vector<std::uint8_t> blob;
  for (const Channel& channel : channels_) {
    SoftwareChannelAddress address{};
    address.ip = options_.ip.bytes;
    address.mac = options_.mac;
    address.numbers.outgoing_number.set(channel.outgoing_number);
    address.numbers.outgoing_psn.set(channel.outgoing_psn);
    address.numbers.incoming_number.set(channel.incoming_number);
    address.numbers.incoming_psn.set(channel.incoming_psn);
    address.numbers.inbox_key.set(channel.inbox_key);
    address.numbers.inbox_base.set(reinterpret_cast<std::uint64_t>(channel.inbox.data()));
    const auto bytes = bytes_of(address);
    blob.insert(blob.end(), bytes.begin(), bytes.end());
  }
  return blob;
}

endpoint::QueuePairConfig SoftwareTransport::common_config() const {
  endpoint::QueuePairConfig config;
  config.local_mac = options_.mac;
  config.local_ip = options_.ip;
  config.path_mtu = plan_.path_mtu;
  config.ack_timeout = plan_.exact_ack_timeout();
  // A rank may be late for as long as the job waits; then the engine's deadline ends the job.
  config.retry_count =
      plan_.retry_count == kMostRetries ? endpoint::kRetryForever : plan_.retry_count;
  config.window = packets_in_flight(plan_);
  config.send_depth = plan_.slots;
  config.receive_depth = plan_.slots;
  return config;
}

void SoftwareTransport::connect(const Neighbour& predecessor, const Neighbour& successor) {
  predecessor_ = predecessor.rank;
  successor_ = successor.rank;
  for (std::size_t channel = 0; channel < channels_.size(); ++channel) {
    connect_channel(channel, predecessor, successor);
  }
}

void SoftwareTransport::connect_channel(std::size_t index, const Neighbour& predecessor,
                                        const Neighbour& successor) {
  Channel& channel = channels_[index];
  const auto& behind = channel_address<SoftwareChannelAddress>(predecessor, index, plan_.channels);
  const auto& ahead = channel_address<SoftwareChannelAddress>(successor, index, plan_.channels);

  endpoint::QueuePairConfig outgoing = common_config();
  outgoing.local_qp = channel.outgoing_number;
  outgoing.send_psn = channel.outgoing_psn;
  outgoing.remote_mac = ahead.mac;
  outgoing.remote_ip.bytes = ahead.ip;
  outgoing.remote_qp = ahead.numbers.incoming_number.get();
  outgoing.receive_psn = ahead.numbers.incoming_psn.get();
  outgoing.udp_source_port = entropy_port(channel.outgoing_number);
  channel.outgoing = &device_->create(outgoing);
  channel.successor_key = ahead.numbers.inbox_key.get();
  channel.successor_base = ahead.numbers.inbox_base.get();

  endpoint::QueuePairConfig incoming = common_config();
  incoming.local_qp = channel.incoming_number;
  incoming.send_psn = channel.incoming_psn;
  incoming.remote_mac = behind.mac;
  incoming.remote_ip.bytes = behind.ip;
  incoming.remote_qp = behind.numbers.outgoing_number.get();
  incoming.receive_psn = behind.numbers.outgoing_psn.get();
  incoming.udp_source_port = entropy_port(channel.incoming_number);
  channel.incoming = &device_->create(incoming);
  if (delivery_ == Delivery::by_write) {
    post_for_writes(channel);
  }
}

void SoftwareTransport::post_for_writes(Channel& channel) const {
  for (std::uint32_t i = 0; i < plan_.slots; ++i) {
    channel.incoming->post(endpoint::ReceiveRequest{});
  }
}

/// For the message with the same number of the predecessor.
void SoftwareTransport::post_receive(Channel& channel, const OutgoingMessage& message) const {
  const std::span<std::uint8_t> slot = plan_.slot_of(channel.inbox, message.number);
  endpoint::ReceiveRequest& receive = channel.receives[message.number % plan_.slots];
  receive.id = message.number;
  receive.header = slot.first(kInaHeaderBytes);
  receive.buffer = message.result.empty() ? slot.subspan(kInaHeaderBytes) : message.result;
  channel.incoming->post(receive);
}

bool SoftwareTransport::post(std::size_t index, const OutgoingMessage& message) {
  Channel& channel = channels_[index];
  assert(channel.outgoing != nullptr && channel.incoming != nullptr);
  endpoint::SendRequest request;
  request.id = message.number;
  request.kind = endpoint::SendKind::send_immediate;
  request.header = message.header;
  request.data = message.data;
  request.immediate = static_cast<std::uint32_t>(message.number);
  if (delivery_ == Delivery::by_send) {
    post_receive(channel, message);
  } else {
    request.kind = endpoint::SendKind::write_immediate;
    request.remote_address = channel.successor_base + plan_.slot_offset(message.number);
    request.remote_key = channel.successor_key;
  }
  return channel.outgoing->post(request) == endpoint::PostResult::posted;
}

void SoftwareTransport::close(std::size_t index) {
  Channel& channel = channels_[index];
  channel.is_closed = true;
  channel.outgoing->close();
  channel.incoming->close();
}

/// A closed queue pair drops what comes. Nobody but poll() would store it.
void SoftwareTransport::quiesce() {
  for (std::size_t i = 0; i < device_->size(); ++i) {
    (*device_)[i].close();
  }
}

bool SoftwareTransport::poll(TransportListener& listener) {
  bool moved = pump_.receive(*device_);
  for (std::size_t channel = 0; channel < channels_.size(); ++channel) {
    moved |= drain_incoming(channel, listener);
    moved |= drain_outgoing(channel, listener);
  }
  moved |= pump_.transmit(*device_);
  for (std::size_t channel = 0; channel < channels_.size(); ++channel) {
    if (const std::optional<Error> failure = failure_of(channel)) {
      listener.failed(channel, *failure);
    }
  }
  if (moved) {
    spins_.restart();
  }
  return moved;
}

bool SoftwareTransport::drain_incoming(std::size_t index, TransportListener& listener) {
  Channel& channel = channels_[index];
  bool moved = false;
  while (const std::optional<endpoint::Completion> completion = channel.incoming->poll()) {
    if (completion->status != endpoint::Status::success) {
      continue; // failure_of() has the cause
    }
    const Arrival arrival = listener.arrived(index, message_of(channel, *completion));
    if (delivery_ == Delivery::by_write) {
      channel.incoming->post(endpoint::ReceiveRequest{});
    } else if (arrival == Arrival::ignored) {
      channel.incoming->post(channel.receives[completion->id % plan_.slots]);
    }
    moved = true;
  }
  return moved;
}

IncomingMessage SoftwareTransport::message_of(Channel& channel,
                                              const endpoint::Completion& completion) const {
  const std::uint32_t immediate = completion.immediate.value_or(0);
  if (delivery_ == Delivery::by_write) {
    return message_in_one_piece(
        immediate, plan_.slot_of(channel.inbox, immediate)
                       .first(std::min(completion.bytes, std::size_t{plan_.slot_bytes})));
  }
  const endpoint::ReceiveRequest& receive = channel.receives[completion.id % plan_.slots];
  assert(receive.id == completion.id);
  const std::size_t header_bytes = std::min(completion.bytes, receive.header.size());
  return {immediate, receive.header.first(header_bytes),
          receive.buffer.first(completion.bytes - header_bytes)};
}

bool SoftwareTransport::drain_outgoing(std::size_t index, TransportListener& listener) {
  bool moved = false;
  while (const std::optional<endpoint::Completion> completion = channels_[index].outgoing->poll()) {
    if (completion->status == endpoint::Status::success) {
      listener.completed(index);
      moved = true;
    }
  }
  return moved;
}

std::optional<Error> SoftwareTransport::failure_of(std::size_t index) const {
  const Channel& channel = channels_[index];
  if (channel.is_closed) {
    return std::nullopt;
  }
  if (channel.incoming->failure()) {
    return failure_of(*channel.incoming, predecessor_, "from");
  }
  const bool is_by_send = delivery_ == Delivery::by_send; // no receiver says then what follows
  if (is_by_send && channel.outgoing->failure() == endpoint::Status::remote_access) {
    return plan_.ring_taken(index);
  }
  if (is_by_send && channel.outgoing->failure() == endpoint::Status::remote_invalid_request) {
    return plan_.ring_given_up();
  }
  if (channel.outgoing->failure()) {
    return failure_of(*channel.outgoing, successor_, "to");
  }
  return std::nullopt;
}

/// Of a queue pair that has failed.
Error SoftwareTransport::failure_of(const endpoint::QueuePair& queue_pair, std::uint16_t neighbour,
                                    std::string_view direction) const {
  const endpoint::Status status = *queue_pair.failure();
  const std::string ip = wire::to_string(queue_pair.config().remote_ip);
  if (status == endpoint::Status::remote_operational) {
    return plan_.remote_failure(neighbour);
  }
  if (status != endpoint::Status::retry_exceeded) {
    return {ErrorCode::transport_failure, neighbour,
            fmt::format("rank {}: the connection {} rank {} ({}) failed: {}", plan_.rank, direction,
                        neighbour, ip, endpoint::name_of(status))};
  }
  return {ErrorCode::retry_exceeded, neighbour,
          fmt::format(
              "rank {}: packets to rank {} ({}) stayed unacknowledged after {} "
              "retries of {} ms: the switch or the link is gone, or the switch "
              "was restarted and refuses them (its `show drops` says so)",
              plan_.rank, neighbour, ip, plan_.retry_count,
              std::chrono::round<std::chrono::milliseconds>(plan_.exact_ack_timeout()).count())};
}

TransportStatistics SoftwareTransport::statistics() const {
  std::uint64_t received = 0;
  std::uint64_t retransmitted = 0;
  std::uint64_t timeouts = 0;
  for (const Channel& channel : channels_) {
    for (const endpoint::QueuePair* queue_pair : {channel.outgoing, channel.incoming}) {
      if (queue_pair != nullptr) {
        received += queue_pair->statistics().packets_received;
        retransmitted += queue_pair->statistics().packets_retransmitted;
        timeouts += queue_pair->statistics().timeouts;
      }
    }
  }
  return {.received_packets = received,
          .retransmitted_packets = retransmitted,
          .ack_timeouts = timeouts,
          .frames_lost_on_purpose = pump_.frames_lost()};
}

std::string SoftwareTransport::describe(std::size_t index) const {
  const Channel& channel = channels_[index];
  if (channel.outgoing == nullptr || channel.incoming == nullptr) {
    return {};
  }
  return fmt::format("rank {} has acknowledged up to PSN {} of {} sent, PSN {} is due from rank {}",
                     successor_, channel.outgoing->acknowledged_psn(), channel.outgoing->sent_psn(),
                     channel.incoming->expected_psn(), predecessor_);
}

} // namespace weir::host
