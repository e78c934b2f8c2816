// SPDX-License-Identifier: BSD-3-Clause
#include "wire/loop_probe.hpp"

#include <cstring>

namespace weir::wire {
namespace {

constexpr unsigned kMostTagsBefore = 2;

EtherType type_at(const std::uint8_t* bytes) {
  return static_cast<EtherType>(view_as<be16>(bytes).get());
}

/// Where the frame's own EtherType is, behind its tags.
std::size_t offset_of_type(std::span<const std::uint8_t> frame) {
  std::size_t offset = offsetof(EthernetHeader, type);
  for (unsigned tag = 0; tag < kMostTagsBefore && is_tag(type_at(frame.data() + offset)); ++tag) {
    offset += sizeof(VlanTag);
  }
  return offset;
}

/// 02-57, and the first bytes of the sender's number.
MacAddress source_of(const LoopProbe& probe) {
  MacAddress source{{0x02, 0x57}};
  std::memcpy(source.bytes.data() + 2, &probe.sender, source.bytes.size() - 2);
  return source;
}

} // namespace

LoopProbe loop_probe(std::uint64_t sender, std::uint16_t port, std::uint64_t token) {
  LoopProbe probe{};
  probe.magic.set(kLoopProbeMagic);
  probe.version.set(kLoopProbeVersion);
  probe.port.set(port);
  probe.sender.set(sender);
  probe.token.set(token);
  return probe;
}

LoopProbeFrame frame_of(const LoopProbe& probe) {
  LoopProbeFrame frame{};
  auto& ethernet = view_as<EthernetHeader>(frame.data());
  ethernet.destination = kLoopProbeGroup;
  ethernet.source = source_of(probe);
  ethernet.type.set(static_cast<std::uint16_t>(EtherType::experimental));
  std::memcpy(frame.data() + sizeof ethernet, &probe, sizeof probe);
  return frame;
}

[[gnu::cold]] const LoopProbe* read_loop_probe(std::span<const std::uint8_t> frame) {
  const std::size_t type = offset_of_type(frame);
  const auto& probe = view_as<LoopProbe>(frame.data() + type + sizeof(be16));
  const bool is_one = type_at(frame.data() + type) == EtherType::experimental &&
                      probe.magic.get() == kLoopProbeMagic &&
                      probe.version.get() == kLoopProbeVersion;
  return is_one ? &probe : nullptr;
}

} // namespace weir::wire
