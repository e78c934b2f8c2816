// SPDX-License-Identifier: BSD-3-Clause
#include "host/node/node_transport.hpp"

namespace weir::host {

bool NodeTransport::poll(TransportListener& listener) {
  if (memory_ == nullptr) {
    return transport_->poll(listener);
  }
  memory_->end_sleep();
  bool moved = transport_->poll(listener);
  if (memory_->has_news()) {
    listener.moved();
    spins_.restart();
    moved = true;
  }
  return moved;
}

bool NodeTransport::arm() {
  if (memory_ == nullptr) {
    return transport_->arm();
  }
  if (memory_->is_waiting() && spins_.spin()) {
    return false;
  }
  return memory_->may_sleep() && transport_->arm();
}

} // namespace weir::host
