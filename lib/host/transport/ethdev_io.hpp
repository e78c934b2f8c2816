// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ethdev/memif_reader.hpp"
#include "host/base/fork_watch.hpp"
#include "host/transport/frame_io.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct rte_mbuf;
struct rte_mempool;

namespace weir::host {

/// Sends and receives frames by one DPDK port. Its devargs are for example
/// "net_memif0,role=client,id=0,socket=/tmp/weir.sock,socket-abstract=no".
class EthdevIo : public FrameIo {
 public:
  /// Needs EAL. Waits for the link up to `timeout`. Throws Error (transport_failure)
  /// with the device and the cause.
  EthdevIo(const std::string& devargs, std::chrono::milliseconds timeout);
  ~EthdevIo() override;
  EthdevIo(const EthdevIo&) = delete;
  EthdevIo& operator=(const EthdevIo&) = delete;

  wire::MacAddress mac() const override { return mac_; }

  bool has_link() const override;

  std::size_t receive(FrameReader& reader) override;
  std::span<std::uint8_t> reserve(std::size_t bytes) override;
  void commit(std::size_t frame_bytes) override;
  void flush() override;

  int descriptor() const override { return kNoDescriptor; }

 private:
  explicit EthdevIo(const std::string& devargs);

  static constexpr std::size_t kBurst = 32;

  void probe();
  void close() const;
  void configure();
  void await_link(std::chrono::milliseconds timeout) const;

  const Birthplace birthplace_; // in a child made by fork the port is the parent's
  std::string devargs_;
  ethdev::MemifReader reader_;
  std::uint16_t port_;
  rte_mempool* pool_ = nullptr;
  wire::MacAddress mac_;
  std::vector<rte_mbuf*> outgoing_; // committed, not taken by the port yet
  rte_mbuf* reserved_ = nullptr;
};

} // namespace weir::host
