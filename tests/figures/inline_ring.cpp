// SPDX-License-Identifier: BSD-3-Clause
#include "inline_ring.hpp"

#include <algorithm>

namespace weir::figures {
namespace {

constexpr std::uint32_t kMaxFrame = 1500 + 22;
constexpr std::uint32_t kMessageBytes = 600; // three packets of 256 bytes with the INA header
constexpr std::size_t kBroadcastFrame = 60;
constexpr std::uint16_t kArp = 0x0806;

test::JobSpec spec_of(std::uint16_t world) {
  test::JobSpec spec;
  spec.world = world;
  spec.ports = world;
  return spec;
}

stage::InlineSwitch::Settings settings() {
  stage::InlineSwitch::Settings settings;
  settings.mac_entries = 512;
  settings.worker.classifier = {.sessions = conn::SessionSource::counting_from(test::kSession),
                                .plain_entries = 16,
                                .aging = 10'000};
  settings.worker.level = op::CpuLevel::baseline;
  return settings;
}

/// `bytes` of 32-bit elements in the host's order.
test::Bytes filled(std::size_t bytes, std::uint32_t element) {
  test::Bytes data(bytes);
  for (std::size_t at = 0; at + sizeof element <= bytes; at += sizeof element) {
    std::copy_n(reinterpret_cast<const std::uint8_t*>(&element), sizeof element, &data[at]);
  }
  return data;
}

} // namespace

InlineRing::InlineRing(std::uint16_t world)
    : job_(spec_of(world)), sink_(pool_),
      switch_({job_.ring()}, std::vector<std::uint32_t>(world, kMaxFrame), settings(), sink_) {
  sink_.attach(switch_);
  for (std::uint16_t rank = 0; rank < world; ++rank) {
    test::Built announcement;
    announcement.bytes.assign(kBroadcastFrame, 0xff);
    const auto mac = job_.mac_of(rank).bytes;
    std::ranges::copy(mac, announcement.bytes.begin() + mac.size());
    test::put16(announcement.bytes, 2 * mac.size(), kArp);
    send(announcement, rank);
  }
  for (std::uint16_t rank = 0; rank < world; ++rank) {
    send(job_.hello(rank), rank);
  }
}

std::vector<test::Built> InlineRing::message(std::uint16_t rank, std::uint32_t id) {
  return job_.message(rank, id, filled(kMessageBytes, rank + 1U));
}

std::vector<test::Sent> InlineRing::send(const test::Built& frame, std::uint16_t rank) {
  switch_.accept(pool_.make(frame.bytes, job_.port_of(rank)), frame::Instant{1'000'000'000});
  return sink_.take();
}

test::Bytes InlineRing::sum_for(const test::Built& frame) const {
  const std::uint32_t world = job_.spec().world;
  return test::result_of(frame, filled(test::data_of(frame).size(), world * (world + 1) / 2)).bytes;
}

} // namespace weir::figures
