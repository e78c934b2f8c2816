// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/software_transport.hpp"

#include "host/base/control_note.hpp"
#include "host/base/error.hpp"
#include "host/base/random_bytes.hpp"
#include "host/transport/lane_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>

namespace weir::host {
namespace {

/// The blob of a lane: where to write, and which queue pairs to connect to.
struct SoftwareLaneAddress {
  std::array<std::uint8_t, 16> ip;
  wire::MacAddress mac;
  LaneNumbers numbers;
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
    : plan_(plan), options_(options), frames_(std::move(frames)), lanes_(plan.lanes),
      dice_(options.seed) {
  for (Lane& lane : lanes_) {
    lane.inbox.resize(plan.slots_bytes());
    lane.receives.resize(plan.slots);
  }
  renew(Delivery::by_send);
}

void SoftwareTransport::renew(Delivery delivery) {
  delivery_ = delivery;
  constexpr std::uint32_t k24Bits = 0xffffff;
  constexpr std::uint32_t kFirstNumber = 2; // 0 and 1 are for management, 0xffffff for multicast
  const auto numbers = static_cast<std::uint32_t>(2 * lanes_.size());
  // Other groups of this host draw theirs too. Equal ones would take one another's packets.
  const std::uint32_t first = random_number(kFirstNumber, k24Bits - numbers);
  device_ = std::make_unique<endpoint::Device>();
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    lane.outgoing_number = first + static_cast<std::uint32_t>(2 * i);
    lane.incoming_number = lane.outgoing_number + 1;
    lane.outgoing_psn = random_number(0, k24Bits);
    lane.incoming_psn = random_number(0, k24Bits);
    lane.inbox_key = (random_number(0, k24Bits) << 8) | static_cast<std::uint32_t>(i);
    lane.outgoing = lane.incoming = nullptr;
    if (delivery == Delivery::by_write) {
      device_->memory().add(lane.inbox_key, lane.inbox);
    }
  }
}

std::vector<std::uint8_t> SoftwareTransport::address() const {
  std::vector<std::uint8_t> blob;
  for (const Lane& lane : lanes_) {
    SoftwareLaneAddress address{};
    address.ip = options_.ip.bytes;
    address.mac = options_.mac;
    address.numbers.outgoing_number.set(lane.outgoing_number);
    address.numbers.outgoing_psn.set(lane.outgoing_psn);
    address.numbers.incoming_number.set(lane.incoming_number);
    address.numbers.incoming_psn.set(lane.incoming_psn);
    address.numbers.inbox_key.set(lane.inbox_key);
    address.numbers.inbox_base.set(reinterpret_cast<std::uint64_t>(lane.inbox.data()));
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

void SoftwareTransport::connect(std::span<const std::uint8_t> predecessor,
                                std::span<const std::uint8_t> successor) {
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    connect_lane(lane, predecessor, successor);
  }
}

void SoftwareTransport::connect_lane(std::size_t index, std::span<const std::uint8_t> predecessor,
                                     std::span<const std::uint8_t> successor) {
  Lane& lane = lanes_[index];
  const SoftwareLaneAddress& behind =
      lane_address<SoftwareLaneAddress>(predecessor, index, plan_.lanes, plan_.predecessor());
  const SoftwareLaneAddress& ahead =
      lane_address<SoftwareLaneAddress>(successor, index, plan_.lanes, plan_.successor());
  const auto entropy_port = [](std::uint32_t number) {
    return static_cast<std::uint16_t>(0xc000 | (number & 0x3fff)); // IBTA annex A17.4.2
  };

  endpoint::QueuePairConfig outgoing = common_config();
  outgoing.local_qp = lane.outgoing_number;
  outgoing.send_psn = lane.outgoing_psn;
  outgoing.remote_mac = ahead.mac;
  outgoing.remote_ip.bytes = ahead.ip;
  outgoing.remote_qp = ahead.numbers.incoming_number.get();
  outgoing.receive_psn = ahead.numbers.incoming_psn.get();
  outgoing.udp_source_port = entropy_port(lane.outgoing_number);
  lane.outgoing = &device_->create(outgoing);
  lane.successor_key = ahead.numbers.inbox_key.get();
  lane.successor_base = ahead.numbers.inbox_base.get();

  endpoint::QueuePairConfig incoming = common_config();
  incoming.local_qp = lane.incoming_number;
  incoming.send_psn = lane.incoming_psn;
  incoming.remote_mac = behind.mac;
  incoming.remote_ip.bytes = behind.ip;
  incoming.remote_qp = behind.numbers.outgoing_number.get();
  incoming.receive_psn = behind.numbers.outgoing_psn.get();
  incoming.udp_source_port = entropy_port(lane.incoming_number);
  lane.incoming = &device_->create(incoming);
  if (delivery_ == Delivery::by_write) {
    post_for_writes(lane);
  }
}

void SoftwareTransport::post_for_writes(Lane& lane) const {
  for (std::uint32_t i = 0; i < plan_.slots; ++i) {
    lane.incoming->post(endpoint::ReceiveRequest{});
  }
}

/// For the message with the same number of the predecessor.
void SoftwareTransport::post_receive(Lane& lane, const OutgoingMessage& message) const {
  const std::span<std::uint8_t> slot = plan_.slot_of(lane.inbox, message.number);
  endpoint::ReceiveRequest& receive = lane.receives[message.number % plan_.slots];
  receive.id = message.number;
  receive.header = slot.first(kInaHeaderBytes);
  receive.buffer = message.result.empty() ? slot.subspan(kInaHeaderBytes) : message.result;
  lane.incoming->post(receive);
}

bool SoftwareTransport::post(std::size_t index, const OutgoingMessage& message) {
  Lane& lane = lanes_[index];
  endpoint::SendRequest request;
  request.id = message.number;
  request.kind = endpoint::SendKind::send_immediate;
  request.header = message.header;
  request.data = message.data;
  request.immediate = static_cast<std::uint32_t>(message.number);
  if (delivery_ == Delivery::by_send) {
    post_receive(lane, message);
  } else {
    request.kind = endpoint::SendKind::write_immediate;
    request.remote_address = lane.successor_base + plan_.slot_offset(message.number);
    request.remote_key = lane.successor_key;
  }
  return lane.outgoing->post(request) == endpoint::PostResult::posted;
}

/// A closed queue pair drops what comes. Nobody but poll() would store it.
void SoftwareTransport::quiesce() {
  for (std::size_t i = 0; i < device_->size(); ++i) {
    (*device_)[i].close();
  }
}

endpoint::TimePoint SoftwareTransport::now() const {
  return endpoint::TimePoint(std::chrono::steady_clock::now().time_since_epoch());
}

void SoftwareTransport::accept(std::span<std::uint8_t> frame) {
  device_->receive(frame, now_);
}

bool SoftwareTransport::poll(TransportListener& listener) {
  now_ = now();
  bool moved = frames_->receive(*this) != 0;
  device_->expire(now_);
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    moved |= drain_incoming(lane, listener);
    moved |= drain_outgoing(lane, listener);
  }
  moved |= transmit();
  for (const Lane& lane : lanes_) {
    throw_if_failed(lane);
  }
  if (moved) {
    spins_.restart();
  }
  return moved;
}

bool SoftwareTransport::drain_incoming(std::size_t index, TransportListener& listener) {
  Lane& lane = lanes_[index];
  bool moved = false;
  while (const std::optional<endpoint::Completion> completion = lane.incoming->poll()) {
    if (completion->status != endpoint::Status::success) {
      continue; // throw_if_failed has the cause
    }
    const Arrival arrival = listener.arrived(index, message_of(lane, *completion));
    if (delivery_ == Delivery::by_write) {
      lane.incoming->post(endpoint::ReceiveRequest{});
    } else if (arrival == Arrival::ignored) {
      lane.incoming->post(lane.receives[completion->id % plan_.slots]);
    }
    moved = true;
  }
  return moved;
}

IncomingMessage SoftwareTransport::message_of(Lane& lane,
                                              const endpoint::Completion& completion) const {
  const std::uint32_t immediate = completion.immediate.value_or(0);
  if (delivery_ == Delivery::by_write) {
    return message_in_one_piece(
        immediate, plan_.slot_of(lane.inbox, immediate)
                       .first(std::min(completion.bytes, std::size_t{plan_.slot_bytes})));
  }
  const endpoint::ReceiveRequest& receive = lane.receives[completion.id % plan_.slots];
  const std::size_t header_bytes = std::min(completion.bytes, receive.header.size());
  return {immediate, receive.header.first(header_bytes),
          receive.buffer.first(completion.bytes - header_bytes)};
}

bool SoftwareTransport::drain_outgoing(std::size_t index, TransportListener& listener) {
  bool moved = false;
  while (const std::optional<endpoint::Completion> completion = lanes_[index].outgoing->poll()) {
    if (completion->status == endpoint::Status::success) {
      listener.completed(index);
      moved = true;
    }
  }
  return moved;
}

bool SoftwareTransport::is_lost() {
  return options_.loss > 0 && static_cast<double>(dice_() >> 11) * 0x1p-53 < options_.loss;
}

bool SoftwareTransport::transmit() {
  constexpr std::size_t kBurst = 64; // then look for incoming frames
  bool moved = false;
  for (std::size_t sent = 0; sent < kBurst; ++sent) {
    const std::span<std::uint8_t> room = frames_->reserve(device_->max_frame_bytes());
    if (room.empty()) {
      break;
    }
    const std::size_t frame_bytes = device_->transmit(room, now_);
    if (frame_bytes == 0) {
      break;
    }
    moved = true;
    if (is_lost()) {
      ++frames_lost_;
    } else {
      frames_->commit(frame_bytes);
    }
  }
  frames_->flush();
  return moved;
}

void SoftwareTransport::throw_if_failed(const Lane& lane) const {
  const auto tell = [&](const endpoint::QueuePair& queue_pair, std::uint16_t neighbour,
                        std::string_view direction) {
    if (!queue_pair.failure()) {
      return;
    }
    const endpoint::Status status = *queue_pair.failure();
    if (status == endpoint::Status::retry_exceeded) {
      throw Error(
          ErrorCode::retry_exceeded, neighbour,
          fmt::format(
              "rank {}: packets to rank {} ({}) stayed unacknowledged after {} "
              "retries of {} ms: the switch or the link is gone, or the switch "
              "was restarted and refuses them (its `show drops` says so)",
              plan_.rank, neighbour, wire::to_string(queue_pair.config().remote_ip),
              plan_.retry_count,
              std::chrono::round<std::chrono::milliseconds>(plan_.exact_ack_timeout()).count()));
    }
    throw Error(ErrorCode::transport_failure, neighbour,
                fmt::format("rank {}: the connection {} rank {} ({}) failed: {}", plan_.rank,
                            direction, neighbour, wire::to_string(queue_pair.config().remote_ip),
                            endpoint::name_of(status)));
  };
  tell(*lane.incoming, plan_.predecessor(), "from");
  tell(*lane.outgoing, plan_.successor(), "to");
}

Deadline SoftwareTransport::due() const {
  const std::optional<endpoint::TimePoint> deadline = device_->next_deadline();
  return deadline ? Deadline(deadline->time_since_epoch()) : Deadline::max();
}

TransportStatistics SoftwareTransport::statistics() const {
  std::uint64_t received = 0;
  std::uint64_t retransmitted = 0;
  std::uint64_t timeouts = 0;
  for (const Lane& lane : lanes_) {
    for (const endpoint::QueuePair* queue_pair : {lane.outgoing, lane.incoming}) {
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
          .frames_lost_on_purpose = frames_lost_};
}

std::string SoftwareTransport::describe(std::size_t index) const {
  const Lane& lane = lanes_[index];
  if (lane.outgoing == nullptr || lane.incoming == nullptr) {
    return {};
  }
  return fmt::format("rank {} has acknowledged up to PSN {} of {} sent, PSN {} is due from rank {}",
                     plan_.successor(), lane.outgoing->acknowledged_psn(),
                     lane.outgoing->sent_psn(), lane.incoming->expected_psn(), plan_.predecessor());
}

} // namespace weir::host
