// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/device.hpp"
#include "host/region/region_link.hpp"
#include "host/transport/frame_pump.hpp"
#include "host/transport/software_transport.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace weir::host {

/// Over lib/core/endpoint's queue pair and raw frames.
class SoftwareRegionLink : public RegionLink {
 public:
  SoftwareRegionLink(const RegionLinkPlan& plan, const SoftwareTransportOptions& options,
                     std::unique_ptr<FrameIo> frames);

  RegionMember member() const override { return member_; }

  void connect(const MadeRegion& region, const RegionEnd& end) override;
  bool post(const endpoint::SendRequest& request) override;
  void post_receive() override;
  bool poll(RegionListener& listener) override;
  std::optional<Error> failure() const override;
  void close() override;
  std::uint64_t progress() const override;

  int descriptor() const override { return pump_.frames().descriptor(); }

  bool arm() override { return descriptor() != kNoDescriptor || !spins_.spin(); }

  Deadline due() const override { return due_of(device_); }

 private:
  bool drain(RegionListener& listener);

  const RegionLinkPlan plan_;
  const SoftwareTransportOptions options_;
  FramePump pump_;
  endpoint::Device device_;
  RegionMember member_;
  endpoint::QueuePair* queue_pair_ = nullptr; // the device's, once connected
  Spins spins_;
};

} // namespace weir::host
