// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/tx.hpp"

#include "dataplane/mbuf_frame.hpp"

#include <rte_ethdev.h>

#include <algorithm>

namespace weir::dataplane {

TxPort::TxPort(std::uint16_t device, std::uint16_t queue)
    : device_(device), queue_(queue), mbufs_(kBacklog), leaving_(kBacklog), lengths_(kBacklog) {}

bool TxPort::push(rte_mbuf* mbuf, Leaving leaving) {
  if (waiting() == kBacklog) {
    return false;
  }
  mbufs_[tail_ & kMask] = mbuf;
  leaving_[tail_ & kMask] = leaving;
  lengths_[tail_ & kMask] = mbuf->pkt_len;
  frames_waiting_ += leaving == Leaving::copy ? 0 : 1;
  ++tail_;
  return true;
}

unsigned TxPort::flush(FrameCounters& counters, PortCounters& port) {
  unsigned sent_in_all = 0;
  while (waiting() != 0) {
    const std::uint32_t start = head_ & kMask;
    const auto count =
        static_cast<std::uint16_t>(std::min({waiting(), kBacklog - start, std::uint32_t{kBurst}}));
    for (std::uint16_t i = 0; i < count; ++i) {
      hands_over(mbufs_[start + i]);
    }
    const std::uint16_t sent = rte_eth_tx_burst(device_, queue_, &mbufs_[start], count);
    for (std::uint16_t i = 0; i < sent; ++i) {
      port.tx_bytes += lengths_[start + i];
    }
    port.tx_packets += sent;
    count_departures(sent, counters);
    sent_in_all += sent;
    if (sent < count) {
      break;
    }
  }
  return sent_in_all;
}

void TxPort::count_departures(std::uint16_t sent, FrameCounters& counters) {
  for (; sent > 0; --sent, ++head_) {
    switch (leaving_[head_ & kMask]) {
    case Leaving::forwarded:
      counters.count(wire::Departure::forwarded);
      --frames_waiting_;
      break;
    case Leaving::consumed:
      counters.count(wire::Departure::consumed);
      --frames_waiting_;
      break;
    case Leaving::copy:
      ++counters.copies;
      break;
    }
  }
}

void TxPort::discard(FrameCounters& counters) {
  for (; head_ != tail_; ++head_) {
    if (leaving_[head_ & kMask] == Leaving::copy) {
      ++counters.copies_dropped;
    } else {
      counters.count(DropReason::tx_backlog_full);
      --frames_waiting_;
    }
    free_mbuf(mbufs_[head_ & kMask]);
  }
}

} // namespace weir::dataplane
