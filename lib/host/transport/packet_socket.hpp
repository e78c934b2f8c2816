// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/stream.hpp"
#include "host/transport/burst_memory.hpp"
#include "host/transport/frame_io.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::host {

/// Frames through a packet socket on one network interface (packet(7)). Needs CAP_NET_RAW, and
/// Linux 4.20 so that it does not receive its own frames.
class PacketSocket : public FrameIo {
 public:
  /// Throws Error (transport_failure) with the interface and the cause.
  explicit PacketSocket(const std::string& interface);

  wire::MacAddress mac() const override { return mac_; }

  bool has_link() const override;

  void keep_only(QueuePairRange queue_pairs) override;
  std::size_t receive(FrameReader& reader) override;
  std::span<std::uint8_t> reserve(std::size_t bytes) override;
  void commit(std::size_t frame_bytes) override;
  void flush() override;

  int descriptor() const override { return socket_.get(); }

 private:
  std::string interface_;
  Socket socket_;
  wire::MacAddress mac_;
  BurstMemory outgoing_;             // while frames wait in it for flush()
  std::vector<std::size_t> lengths_; // of the frames committed
};

} // namespace weir::host
