// SPDX-License-Identifier: BSD-3-Clause
#include "host/base/error.hpp"
#include "host/transport/host_eal.hpp"

namespace weir::host {

HostEal::HostEal() = default;
HostEal::~HostEal() = default;

std::unique_ptr<FrameIo> open_ethdev(const std::string& devargs,
                                     std::chrono::milliseconds /*timeout*/) {
  throw Error(ErrorCode::transport_failure, std::nullopt,
              "device " + devargs +
                  ": this build has no DPDK; it can use a network interface (iface=NAME) or an "
                  "RDMA device (--transport verbs)");
}

} // namespace weir::host
