// SPDX-License-Identifier: BSD-3-Clause

/// A sequence of frames to a software queue pair with requests under way. It must not crash, and
/// must write nothing outside its registered memory and what it reads into.

#include "endpoint/device.hpp"
#include "frame_script.hpp"

#include <array>

using namespace weir;

namespace {

constexpr std::uint32_t kRemoteKey = 0x1234;
constexpr std::size_t kGuard = 64;

endpoint::QueuePairConfig configuration() {
  endpoint::QueuePairConfig config;
  config.local_ip = *wire::parse_ip("10.77.0.2");
  config.remote_ip = *wire::parse_ip("10.77.0.1");
  config.local_qp = 17;
  config.remote_qp = 18;
  config.path_mtu = 256;
  config.max_rd_atomic = config.max_dest_rd_atomic = 2;
  return config;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::array<std::uint8_t, 2048 + 2 * kGuard> memory{};
  std::array<std::uint8_t, 512> inbox{};
  std::array<std::uint8_t, 1000> outbox{};
  std::array<std::uint8_t, 600 + 2 * kGuard> target{};
  std::array<std::uint8_t, 2048> buffer{};
  endpoint::Device device;
  device.memory().add(kRemoteKey, 0, std::span(memory).subspan(kGuard, 2048),
                      endpoint::Access::read_and_write);
  endpoint::QueuePair& pair = device.create(configuration());
  pair.post(endpoint::ReceiveRequest{.id = 1, .buffer = inbox});
  pair.post(endpoint::SendRequest{.id = 2,
                                  .kind = endpoint::SendKind::write_immediate,
                                  .header = {},
                                  .data = outbox,
                                  .remote_address = 0,
                                  .remote_key = 1,
                                  .immediate = 3});
  pair.post(endpoint::SendRequest{.id = 3,
                                  .kind = endpoint::SendKind::read,
                                  .remote_key = 1,
                                  .target = std::span(target).subspan(kGuard, 600)});
  fuzz::FrameScript script({data, size});
  endpoint::TimePoint now{std::chrono::seconds(1)};
  while (auto frame = script.next()) {
    device.receive(frame->bytes, now);
    while (device.transmit(buffer, now) != 0) {
    }
    while (pair.poll()) {
    }
    now += std::chrono::milliseconds(frame->port * 30);
    device.expire(now);
  }
  for (std::size_t i = 0; i < kGuard; ++i) {
    fuzz::require(memory[i] == 0 && memory[memory.size() - 1 - i] == 0,
                  "a write outside the region");
    fuzz::require(target[i] == 0 && target[target.size() - 1 - i] == 0,
                  "a READ outside its target");
  }
  return 0;
}
