// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/config.hpp"

#include "wire/psn.hpp"
#include "wire/syndrome.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <string_view>

namespace weir::endpoint {
namespace {

struct Limit {
  std::string_view field;
  std::uint32_t found;
  std::uint32_t low;
  std::uint32_t high;
};

} // namespace

std::string find_defect(const QueuePairConfig& config) {
  constexpr std::uint32_t max_depth = 1U << 20;
  constexpr std::uint32_t max_window = wire::kPsnHalf / 2;
  constexpr std::uint32_t max_reads = 255; // a byte each in IBTA's connection messages
  const std::array limits{
      Limit{"local_qp", config.local_qp, 2, wire::kPsnMask},
      Limit{"remote_qp", config.remote_qp, 2, wire::kPsnMask},
      Limit{"send_psn", config.send_psn, 0, wire::kPsnMask},
      Limit{"receive_psn", config.receive_psn, 0, wire::kPsnMask},
      Limit{"path_mtu", config.path_mtu, 256, 4096},
      Limit{"retry_count",
            config.retry_count == kRetryForever ? std::uint8_t{0} : config.retry_count, 0, 7},
      Limit{"rnr_retry", config.rnr_retry, 0, 7},
      Limit{"rnr_timer", config.rnr_timer, 0, wire::kSyndromeValueMask},
      Limit{"window", config.window, 1, max_window},
      Limit{"ack_request_every", config.ack_request_every, 1, max_window},
      Limit{"acknowledge_every", config.acknowledge_every, 1, max_window},
      Limit{"send_depth", config.send_depth, 1, max_depth},
      Limit{"receive_depth", config.receive_depth, 1, max_depth},
      Limit{"max_rd_atomic", config.max_rd_atomic, 0, max_reads},
      Limit{"max_dest_rd_atomic", config.max_dest_rd_atomic, 0, max_reads},
  };
  for (const Limit& limit : limits) {
    if (limit.found < limit.low || limit.found > limit.high) {
      return fmt::format("queue pair: {} is {}, allowed are {} to {}", limit.field, limit.found,
                         limit.low, limit.high);
    }
  }
  if (!std::has_single_bit(config.path_mtu)) {
    return fmt::format("queue pair: path_mtu is {}, allowed are 256, 512, 1024, 2048 and 4096",
                       config.path_mtu);
  }
  if (config.local_ip.is_v4() != config.remote_ip.is_v4()) {
    return fmt::format("queue pair: local_ip {} and remote_ip {} are of different families",
                       to_string(config.local_ip), to_string(config.remote_ip));
  }
  if (config.ack_timeout < Duration::zero()) {
    return fmt::format("queue pair: ack_timeout is {} ns, allowed are 0 (never) and more",
                       config.ack_timeout.count());
  }
  return {};
}

} // namespace weir::endpoint
