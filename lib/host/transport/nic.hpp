// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/transport/mapped_dmabuf.hpp"
#include "host/transport/nic_connection.hpp"
#include "host/transport/transport.hpp"
#include "host/transport/user_memory.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace weir::host {

/// A RoCE NIC that is open. It stays so until nobody refers to it, the transports, the
/// connections and the memory that it made included. Any thread may use it, but not a child made by
/// fork.
class Nic {
 public:
  virtual ~Nic() = default;

  /// A transport over the NIC's queue pairs. `gid_index`: the RoCEv2 entry in the GID table of its
  /// port 1. Throws Error (transport_failure) with the device and the cause.
  virtual std::unique_ptr<Transport> open_transport(const TransportPlan& plan,
                                                    std::uint8_t gid_index) = 0;

  /// A connection over one of the NIC's queue pairs. Throws as above.
  virtual std::unique_ptr<NicConnection> open_connection(const NicConnectionPlan& plan,
                                                         std::uint8_t gid_index) = 0;

  /// Messages of all its transports go to and from this memory without a copy. Throws as above.
  virtual std::unique_ptr<UserMemory> register_memory(std::span<std::uint8_t> bytes) = 0;
  /// The same of a dma-buf, which this process has as `mapped`: the NIC goes to the exporter's
  /// device.
  virtual std::unique_ptr<UserMemory> register_dmabuf(const DmabufRange& range,
                                                      std::span<std::uint8_t> mapped) = 0;
};

/// `device`: such as mlx5_0 or rxe0. Throws Error (transport_failure); always, in a build without
/// libibverbs.
std::shared_ptr<Nic> open_nic(const std::string& device);

} // namespace weir::host
