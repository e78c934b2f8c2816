// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What a group's options mean for its transport.

#include "host/api/group.hpp"
#include "host/region/region_link.hpp"
#include "host/transport/frame_io.hpp"
#include "host/transport/software_transport.hpp"
#include "host/transport/transport.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

namespace weir::host {

inline constexpr std::chrono::milliseconds kMaxAckTimeout{8'796'093}; // 4.096 us x 2^31, IBTA's

/// 2N, or more if RingReducer needs it: it has two blocks of each rank under way.
std::uint32_t slots_of(const GroupOptions& options);

TransportPlan transport_plan(const GroupOptions& options);

/// What a software queue pair over these frames is.
SoftwareTransportOptions software_options(const GroupOptions& options, const FrameIo& frames);

/// Of a member of a region with this copy of the memory.
RegionLinkPlan region_link_plan(const GroupOptions& group, std::span<std::uint8_t> memory,
                                std::uint32_t reads);

/// The software transport over these frames, whatever kind the options name.
std::unique_ptr<Transport> open_software_transport(const GroupOptions& options,
                                                   std::unique_ptr<FrameIo> frames);

} // namespace weir::host
