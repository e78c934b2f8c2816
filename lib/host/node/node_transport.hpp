// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/node/node_memory.hpp"
#include "host/transport/transport.hpp"

#include <memory>
#include <utility>

namespace weir::host {

/// The leader's transport, or another rank's that leads nowhere, and beside it the ranks of the
/// node. Who sleeps by its descriptor must watch the memory's bell as well.
class NodeTransport : public Transport {
 public:
  explicit NodeTransport(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}

  /// The memory outlives the use of this object.
  void join(NodeMemory& memory) { memory_ = &memory; }

  std::vector<std::uint8_t> address() const override { return transport_->address(); }

  std::uint32_t queue_pair(std::size_t channel) const override {
    return transport_->queue_pair(channel);
  }

  void connect(const Neighbour& predecessor, const Neighbour& successor) override {
    transport_->connect(predecessor, successor);
  }

  void renew(Delivery delivery) override { transport_->renew(delivery); }

  bool post(std::size_t channel, const OutgoingMessage& message) override {
    return transport_->post(channel, message);
  }

  void close(std::size_t channel) override { transport_->close(channel); }

  void quiesce() override { transport_->quiesce(); }

  bool poll(TransportListener& listener) override;

  int descriptor() const override { return transport_->descriptor(); }

  bool arm() override;

  Deadline due() const override { return transport_->due(); }

  TransportStatistics statistics() const override { return transport_->statistics(); }

  bool has_link() const override { return transport_->has_link(); }

  std::string describe(std::size_t channel) const override { return transport_->describe(channel); }

 private:
  const std::unique_ptr<Transport> transport_;
  NodeMemory* memory_ = nullptr;
  Spins spins_;
};

} // namespace weir::host
