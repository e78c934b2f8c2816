// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/queue_pair_filter.hpp"

#include "wire/headers.hpp"

#include <cassert>
#include <cstddef>
#include <limits>

namespace weir::host {
namespace {

constexpr std::uint32_t kIp = sizeof(wire::EthernetHeader);
constexpr std::uint32_t k24Bits = 0xffffff;
// BPF loads a word where BTH has a reserved byte and the queue pair (IBTA §9.2).
constexpr std::uint32_t kQueuePairWord =
    sizeof(wire::UdpHeader) + offsetof(wire::Bth, destination_qp) - 1;
constexpr std::uint32_t kWholeFrame = std::numeric_limits<std::uint32_t>::max();

// The program's lines, in their order. A jump names one.
enum Line : std::uint8_t {
  load_type,
  is_ipv4,
  is_ipv6,
  is_vlan,
  is_service_vlan,
  is_old_qinq,
  is_roce_v1,
  load_next_header,
  is_udp_in_ipv6,
  skip_ipv6,
  go_on_with_udp,
  load_protocol,
  is_udp_in_ipv4,
  skip_ipv4,
  load_port,
  is_roce_v2,
  load_queue_pair,
  mask_queue_pair,
  is_not_below,
  is_above,
  keep,
  drop,
  lines
};

sock_filter step(std::uint32_t code, std::uint32_t operand) {
  return {.code = static_cast<std::uint16_t>(code), .jt = 0, .jf = 0, .k = operand};
}

sock_filter load(std::uint32_t size_and_mode, std::size_t offset) {
  return step(BPF_LD | size_and_mode, static_cast<std::uint32_t>(offset));
}

/// On the line `here`: goes to `then` if what was loaded passes the test, else to `otherwise`.
sock_filter branch(Line here, std::uint32_t test, std::uint32_t operand, Line then,
                   Line otherwise) {
  assert(then > here && otherwise > here); // BPF jumps forward only, counted from the next line
  return {.code = static_cast<std::uint16_t>(BPF_JMP | test | BPF_K),
          .jt = static_cast<std::uint8_t>(then - here - 1),
          .jf = static_cast<std::uint8_t>(otherwise - here - 1),
          .k = operand};
}

sock_filter if_type(Line here, wire::EtherType type, Line then) {
  const Line otherwise = type == wire::EtherType::roce_v1 ? drop : static_cast<Line>(here + 1);
  return branch(here, BPF_JEQ, static_cast<std::uint32_t>(type), then, otherwise);
}

} // namespace

QueuePairFilter filter_for(QueuePairRange queue_pairs) {
  const std::uint32_t end = queue_pairs.first + queue_pairs.count;
  assert(queue_pairs.count > 0 && end <= k24Bits + 1);
  const QueuePairFilter program{
      load(BPF_H | BPF_ABS, offsetof(wire::EthernetHeader, type)),
      if_type(is_ipv4, wire::EtherType::ipv4, load_protocol),
      if_type(is_ipv6, wire::EtherType::ipv6, load_next_header),
      if_type(is_vlan, wire::EtherType::vlan, keep),
      if_type(is_service_vlan, wire::EtherType::service_vlan, keep),
      if_type(is_old_qinq, wire::EtherType::old_qinq, keep),
      if_type(is_roce_v1, wire::EtherType::roce_v1, keep),

      load(BPF_B | BPF_ABS, kIp + offsetof(wire::Ipv6Header, next_header)),
      branch(is_udp_in_ipv6, BPF_JEQ, wire::kProtocolUdp, skip_ipv6, drop),
      step(BPF_LDX | BPF_W | BPF_IMM, sizeof(wire::Ipv6Header)),
      step(BPF_JMP | BPF_JA, load_port - go_on_with_udp - 1),

      load(BPF_B | BPF_ABS, kIp + offsetof(wire::Ipv4Header, protocol)),
      branch(is_udp_in_ipv4, BPF_JEQ, wire::kProtocolUdp, skip_ipv4, drop),
      step(BPF_LDX | BPF_B | BPF_MSH, kIp), // the header's length, options included

      load(BPF_H | BPF_IND, kIp + offsetof(wire::UdpHeader, destination_port)),
      branch(is_roce_v2, BPF_JEQ, wire::kRocePort, load_queue_pair, drop),
      load(BPF_W | BPF_IND, kIp + kQueuePairWord),
      step(BPF_ALU | BPF_AND | BPF_K, k24Bits),
      branch(is_not_below, BPF_JGE, queue_pairs.first, is_above, drop),
      branch(is_above, BPF_JGE, end, drop, keep),

      step(BPF_RET | BPF_K, kWholeFrame),
      step(BPF_RET | BPF_K, 0),
  };
  static_assert(std::tuple_size_v<QueuePairFilter> == lines);
  return program;
}

} // namespace weir::host
