// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/device.hpp"

#include "wire/packet.hpp"
#include "wire/parse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace weir::endpoint {

QueuePair& Device::create(const QueuePairConfig& config) {
  if (find(config.local_qp, config.local_ip) != nullptr) {
    throw std::invalid_argument(fmt::format("device: queue pair {} at {} exists already",
                                            config.local_qp, to_string(config.local_ip)));
  }
  queue_pairs_.push_back(std::make_unique<QueuePair>(config, memory_));
  max_frame_bytes_ = std::max(max_frame_bytes_, queue_pairs_.back()->max_frame_bytes());
  return *queue_pairs_.back();
}

QueuePair* Device::find(std::uint32_t queue_pair, const wire::IpAddress& address) const {
  for (const auto& candidate : queue_pairs_) {
    if (candidate->config().local_qp == queue_pair && candidate->config().local_ip == address) {
      return candidate.get();
    }
  }
  return nullptr;
}

void Device::receive(std::span<std::uint8_t> bytes, TimePoint now) {
  wire::ParsedBytes frame;
  frame.data = bytes.data();
  frame.length = static_cast<std::uint32_t>(bytes.size());
  wire::parse(bytes, frame.packet);
  if (frame.packet.parsed == wire::Parsed::other) {
    ++statistics_.not_roce;
    return;
  }
  if (frame.packet.parsed == wire::Parsed::malformed) {
    ++statistics_.malformed;
    return;
  }
  QueuePair* const queue_pair = find(frame.packet.destination_qp, frame.destination());
  if (queue_pair == nullptr) {
    ++statistics_.unknown_queue_pair;
    return;
  }
  queue_pair->receive(frame, now);
}

std::size_t Device::transmit(std::span<std::uint8_t> buffer, TimePoint now) {
  for (std::size_t tried = 0; tried < queue_pairs_.size(); ++tried) {
    const std::size_t index = turn_;
    turn_ = turn_ + 1 == queue_pairs_.size() ? 0 : turn_ + 1;
    const std::size_t frame_bytes = queue_pairs_[index]->transmit(buffer, now);
    if (frame_bytes != 0) {
      return frame_bytes;
    }
  }
  return 0;
}

std::optional<TimePoint> Device::next_deadline() const {
  std::optional<TimePoint> earliest;
  for (const auto& queue_pair : queue_pairs_) {
    const std::optional<TimePoint> deadline = queue_pair->next_deadline();
    if (deadline && (!earliest || *deadline < *earliest)) {
      earliest = deadline;
    }
  }
  return earliest;
}

void Device::expire(TimePoint now) {
  for (const auto& queue_pair : queue_pairs_) {
    queue_pair->expire(now);
  }
}

} // namespace weir::endpoint
