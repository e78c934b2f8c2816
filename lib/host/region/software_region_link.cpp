// SPDX-License-Identifier: BSD-3-Clause
#include "host/region/software_region_link.hpp"

#include "host/region/region_failure.hpp"
#include "random/random_bytes.hpp"

#include <algorithm>
#include <utility>

namespace weir::host {
namespace {

constexpr std::uint8_t kShortestRnrTimer = 1; // 10 µs: receives come back by a thread of ours

} // namespace

SoftwareRegionLink::SoftwareRegionLink(const RegionLinkPlan& plan,
                                       const SoftwareTransportOptions& options,
                                       std::unique_ptr<FrameIo> frames)
    : plan_(plan), options_(options),
      pump_(std::move(frames), {.share = options.loss, .seed = options.seed}) {
  member_ = {.ip = options.ip,
             .queue_pair = draw_queue_pairs(1),
             .first_psn = draw_psn(),
             .base = reinterpret_cast<std::uint64_t>(plan.memory.data()),
             .key = random_number(1, UINT32_MAX),
             .ack_timeout = plan.ack_timeout_exponent};
  pump_.frames().keep_only({.first = member_.queue_pair, .count = 1});
}

void SoftwareRegionLink::connect(const MadeRegion& region, const RegionEnd& end) {
  endpoint::QueuePairConfig config;
  config.local_mac = options_.mac;
  config.local_ip = options_.ip;
  config.local_qp = member_.queue_pair;
  config.send_psn = member_.first_psn;
  config.remote_mac = region.mac;
  config.remote_ip = region.ip;
  config.remote_qp = end.queue_pair;
  config.receive_psn = end.first_psn;
  config.udp_source_port = entropy_port(member_.queue_pair);
  config.path_mtu = plan_.path_mtu;
  config.ack_timeout = plan_.ack_timeout;
  // A member may be late as long as the region's patience; then the switch ends it.
  config.retry_count =
      plan_.retry_count == kMostRetries ? endpoint::kRetryForever : plan_.retry_count;
  config.rnr_timer = kShortestRnrTimer;
  config.window = std::max(region.window, 2U);
  config.send_depth = plan_.send_depth;
  config.receive_depth = plan_.receive_depth;
  config.max_rd_atomic = config.max_dest_rd_atomic = plan_.reads;
  device_.memory().add(member_.key, plan_.memory, endpoint::Access::read_and_write);
  queue_pair_ = &device_.create(config);
  for (std::uint32_t i = 0; i < plan_.receive_depth; ++i) {
    post_receive();
  }
}

bool SoftwareRegionLink::post(const endpoint::SendRequest& request) {
  return queue_pair_->post(request) == endpoint::PostResult::posted;
}

void SoftwareRegionLink::post_receive() {
  queue_pair_->post(endpoint::ReceiveRequest{});
}

bool SoftwareRegionLink::poll(RegionListener& listener) {
  bool moved = pump_.receive(device_);
  moved |= drain(listener);
  moved |= pump_.transmit(device_);
  if (moved) {
    spins_.restart();
  }
  return moved;
}

/// Of a queue pair that has failed only the failure tells.
bool SoftwareRegionLink::drain(RegionListener& listener) {
  bool moved = false;
  while (const std::optional<endpoint::Completion> completion = queue_pair_->poll()) {
    if (completion->status != endpoint::Status::success) {
      continue;
    }
    moved = true;
    if (completion->is_send_queue()) {
      listener.completed();
    } else {
      listener.notified(completion->immediate.value_or(0));
    }
  }
  return moved;
}

std::optional<Error> SoftwareRegionLink::failure() const {
  const std::optional<endpoint::Status> status = queue_pair_->failure();
  if (!status) {
    return std::nullopt;
  }
  return region_failure(*status, queue_pair_->config().remote_ip, endpoint::name_of(*status));
}

void SoftwareRegionLink::close() {
  if (queue_pair_ != nullptr) {
    queue_pair_->close();
  }
}

std::uint64_t SoftwareRegionLink::progress() const {
  return queue_pair_->acknowledged_psn();
}

} // namespace weir::host
