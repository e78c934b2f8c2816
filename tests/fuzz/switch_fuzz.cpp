// SPDX-License-Identifier: BSD-3-Clause

/// A sequence of frames through all stages: the accounting balances after each, no frame is lost or
/// freed twice, what is forwarded leaves as it came, and no frame leaves by its ingress port.

#include "dataplane/inline_switch.hpp"
#include "frame_script.hpp"
#include "support/frame_pool.hpp"

using namespace weir;

namespace {

conn::RingSpec ring(std::uint32_t id, std::uint32_t window, std::uint16_t mtu,
                    std::uint16_t world) {
  conn::RingSpec spec;
  spec.id = id;
  spec.window = window;
  spec.mtu = mtu;
  spec.max_message_bytes = 4096;
  for (std::uint16_t rank = 0; rank < world; ++rank) {
    spec.members.push_back({*wire::parse_ip("10.77.0." + std::to_string(rank + 1)), std::nullopt});
  }
  return spec;
}

/// The captures' ring with two shapes, and a second ring over the same hosts.
std::vector<conn::RingSpec> rings() {
  return {ring(7, 1, 256, 3), ring(8, 2, 256, 2)};
}

class Harness {
 public:
  Harness() : sink_(pool_), switch_(rings(), {1600, 1600, 1600, 300}, {}, sink_) {
    sink_.attach(switch_);
  }

  ~Harness() {
    switch_.reset_ring(0, {});
    switch_.reset_ring(1, {});
    fuzz::require(pool_.live() == 0, "a frame leaked");
  }

  Harness(const Harness&) = delete;
  Harness& operator=(const Harness&) = delete;

  void feed(const fuzz::ScriptedFrame& scripted) {
    switch_.accept(pool_.make(scripted.bytes, scripted.port),
                   dataplane::Instant::from_ns(++now_ * 1'000'000));
    for (const test::Sent& sent : sink_.take()) {
      if (sent.departure == wire::Departure::forwarded) {
        fuzz::require(sent.bytes == scripted.bytes, "a forwarded frame was altered");
        fuzz::require((sent.ports >> scripted.port & 1) == 0, "a frame left by its ingress port");
      }
    }
    const dataplane::Accounting accounting = switch_.accounting();
    fuzz::require(accounting.balances(), "the accounting does not balance");
    fuzz::require(accounting.held == pool_.live(), "held frames and live frames differ");
  }

 private:
  test::FramePool pool_;
  test::RecordingSink sink_;
  dataplane::InlineSwitch switch_;
  std::uint64_t now_ = 0;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Harness harness;
  fuzz::FrameScript script({data, size});
  while (const auto frame = script.next()) {
    harness.feed(*frame);
  }
  return 0;
}
