// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/lone_transport.hpp"

#include "host/base/error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <sys/eventfd.h>

namespace weir::host {
namespace {

class LoneTransport : public Transport {
 public:
  LoneTransport() {
    if (!silence_) {
      throw Error(ErrorCode::transport_failure, std::nullopt,
                  fmt::format("no descriptor to wait with: {}", std::strerror(errno)));
    }
  }

  std::vector<std::uint8_t> address() const override { return {}; }

  std::uint32_t queue_pair(std::size_t /*channel*/) const override { return 0; }

  void connect(const Neighbour& /*predecessor*/, const Neighbour& /*successor*/) override {}

  void renew(Delivery /*delivery*/) override {}

  bool post(std::size_t /*channel*/, const OutgoingMessage& /*message*/) override { return false; }

  void close(std::size_t /*channel*/) override {}

  void quiesce() override {}

  bool poll(TransportListener& /*listener*/) override { return false; }

  int descriptor() const override { return silence_.get(); }

  bool arm() override { return true; }

  Deadline due() const override { return Deadline::max(); }

  TransportStatistics statistics() const override {
    return {.received_packets = 0, .retransmitted_packets = 0, .ack_timeouts = 0};
  }

  std::string describe(std::size_t /*channel*/) const override { return {}; }

 private:
  Socket silence_{[] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }}; // never readable
};

} // namespace

std::unique_ptr<Transport> make_lone_transport() {
  return std::make_unique<LoneTransport>();
}

} // namespace weir::host
