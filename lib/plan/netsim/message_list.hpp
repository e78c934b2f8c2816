// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace weir::netsim {

/// The messages of a connection, by number. Packets are numbered over all messages.
class MessageList {
 public:
  explicit MessageList(std::uint32_t mtu) : mtu_(mtu) {}

  /// `bytes` is not 0.
  void add(std::uint32_t bytes) {
    first_.push_back(first_.back() + (bytes + mtu_ - 1) / mtu_);
    last_bytes_.push_back(bytes - (bytes - 1) / mtu_ * mtu_);
  }

  std::uint32_t count() const { return static_cast<std::uint32_t>(last_bytes_.size()); }

  std::uint32_t packet_count() const { return first_.back(); }

  std::uint32_t first_of(std::uint32_t message) const { return first_[message]; }

  std::uint32_t end_of(std::uint32_t message) const { return first_[message + 1]; }

  /// The message of a packet, which must exist.
  std::uint32_t message_of(std::uint32_t packet) const {
    // Most lists have messages of one size, except for the last.
    const std::uint32_t guess = std::min(packet / first_[1], count() - 1);
    if (first_[guess] <= packet && packet < first_[guess + 1]) {
      return guess;
    }
    return static_cast<std::uint32_t>(std::upper_bound(first_.begin(), first_.end(), packet) -
                                      first_.begin() - 1);
  }

  /// Bytes of a packet's payload and of the headers that depend on its place in the message: RETH
  /// in the first, immediate data in the last (IBTA §9.4).
  std::uint32_t bytes_of(std::uint32_t packet, std::uint32_t message) const {
    constexpr std::uint32_t kReth = 16;
    constexpr std::uint32_t kImmediate = 4;
    const bool is_last = packet + 1 == end_of(message);
    return (is_last ? last_bytes_[message] + kImmediate : mtu_) +
           (packet == first_of(message) ? kReth : 0);
  }

 private:
  std::uint32_t mtu_;
  std::vector<std::uint32_t> first_{0};
  std::vector<std::uint32_t> last_bytes_;
};

} // namespace weir::netsim
