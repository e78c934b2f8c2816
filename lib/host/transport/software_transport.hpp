// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/device.hpp"
#include "host/transport/frame_pump.hpp"
#include "host/transport/transport.hpp"
#include "wire/address.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace weir::host {

struct SoftwareTransportOptions {
  wire::IpAddress ip;
  wire::MacAddress mac;
  double loss = 0; // share of our own frames that is dropped on purpose, 0 .. 1
  std::uint64_t seed = 1;
};

/// The transport over lib/core/endpoint's queue pairs and raw frames.
class SoftwareTransport : public Transport {
 public:
  SoftwareTransport(const TransportPlan& plan, const SoftwareTransportOptions& options,
                    std::unique_ptr<FrameIo> frames);

  std::vector<std::uint8_t> address() const override;

  std::uint32_t queue_pair(std::size_t channel) const override {
    return channels_[channel].outgoing_number;
  }

  void renew(Delivery delivery) override;
  void connect(const Neighbour& predecessor, const Neighbour& successor) override;
  bool post(std::size_t channel, const OutgoingMessage& message) override;
  void close(std::size_t channel) override;
  void quiesce() override;
  bool poll(TransportListener& listener) override;

  int descriptor() const override { return pump_.frames().descriptor(); }

  bool arm() override { return descriptor() != kNoDescriptor || !spins_.spin(); }

  Deadline due() const override { return due_of(*device_); }

  TransportStatistics statistics() const override;

  bool has_link() const override { return pump_.frames().has_link(); }

  std::string describe(std::size_t channel) const override;

 private:
  /// This rank's two ends of one ring.
  struct Channel {
    // QP numbers and first PSNs are random, so that a restarted job takes no old job's frames.
    std::uint32_t outgoing_number = 0;
    std::uint32_t incoming_number = 0;
    std::uint32_t outgoing_psn = 0;
    std::uint32_t incoming_psn = 0;
    std::uint32_t inbox_key = 0;
    std::vector<std::uint8_t> inbox;
    // By SEND: where the message of each number, mod slots, goes.
    std::vector<endpoint::ReceiveRequest> receives;
    std::uint32_t successor_key = 0;
    std::uint64_t successor_base = 0;
    endpoint::QueuePair* outgoing = nullptr; // to the successor; owned by the device
    endpoint::QueuePair* incoming = nullptr;
    bool is_closed = false; // by close()
  };

  void post_receive(Channel& channel, const OutgoingMessage& message) const;
  void post_for_writes(Channel& channel) const;
  IncomingMessage message_of(Channel& channel, const endpoint::Completion& completion) const;
  endpoint::QueuePairConfig common_config() const;
  void connect_channel(std::size_t channel, const Neighbour& predecessor,
                       const Neighbour& successor);
  bool drain_outgoing(std::size_t channel, TransportListener& listener);
  bool drain_incoming(std::size_t channel, TransportListener& listener);
  std::optional<Error> failure_of(std::size_t index) const;
  Error failure_of(const endpoint::QueuePair& queue_pair, std::uint16_t neighbour,
                   std::string_view direction) const;

  const TransportPlan plan_;
  const SoftwareTransportOptions options_;
  FramePump pump_;
  std::unique_ptr<endpoint::Device> device_;
  Delivery delivery_ = Delivery::by_send;
  std::vector<Channel> channels_;
  std::uint16_t predecessor_ = 0; // ranks, once connected
  std::uint16_t successor_ = 0;
  Spins spins_;
};

} // namespace weir::host
