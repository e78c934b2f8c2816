// SPDX-License-Identifier: BSD-3-Clause

/// A sequence of frames to the classifier: what it says of each lies inside its ring's slots, and
/// only what a ring's member may send gets there.

#include "conn/classify.hpp"
#include "frame_script.hpp"
#include "fuzz_rings.hpp"

#include <numeric>

using namespace weir;

namespace {

constexpr std::uint32_t kPlainEntries = 8;

std::vector<std::uint16_t> all_of(const conn::RingDirectory& directory) {
  std::vector<std::uint16_t> rings(directory.rings().size());
  std::iota(rings.begin(), rings.end(), std::uint16_t{0});
  return rings;
}

void check_contribution(const conn::Verdict& verdict, const wire::Frame& frame,
                        const conn::RingSpec& ring) {
  const conn::MessageRecord& record = *verdict.record;
  const std::uint32_t slots = ring.depth() * ring.packets_per_message();
  fuzz::require(verdict.rank < ring.world(), "a rank that the ring does not have");
  fuzz::require(ring.members[verdict.rank].ip == frame.packet.source, "another member's address");
  const auto& port = ring.members[verdict.rank].port;
  fuzz::require(!port || *port == frame.ingress, "another member's port");
  fuzz::require(record.packets <= ring.packets_per_message(), "a message of too many packets");
  fuzz::require(verdict.packet < record.packets, "a packet behind its message's end");
  fuzz::require(record.first_slot + verdict.packet < slots, "a slot behind the table's end");
  fuzz::require(frame.packet.payload_bytes <= ring.mtu, "a payload longer than a slot");
}

class Harness {
 public:
  void feed(fuzz::ScriptedFrame& scripted) {
    wire::Frame frame;
    frame.data = scripted.bytes.data();
    frame.length = static_cast<std::uint32_t>(scripted.bytes.size());
    frame.ingress = scripted.port;
    frame.packet = wire::parse(frame.bytes());
    const bool may_carry_ring_data = frame.packet.parsed == wire::Parsed::message ||
                                     frame.packet.parsed == wire::Parsed::malformed;
    if (!may_carry_ring_data) {
      return;
    }
    frame.pair = directory_.pair_of(frame.packet.source, frame.packet.destination);
    if (frame.pair != 0) {
      check(classifier_.classify(frame, ++now_ * 50), frame);
    }
  }

 private:
  void check(const conn::Verdict& verdict, const wire::Frame& frame) {
    const std::size_t rings = directory_.rings().size();
    fuzz::require(verdict.ring < rings, "a ring that is not there");
    fuzz::require(!verdict.flushed_ring || *verdict.flushed_ring < rings, "a flush of no ring");
    if (verdict.step == conn::Verdict::Step::contribute) {
      check_contribution(verdict, frame, directory_.rings()[verdict.ring]);
    }
  }

  conn::RingDirectory directory_{fuzz::rings()};
  conn::Classifier classifier_{
      directory_,
      all_of(directory_),
      {.session = fuzz::kSession, .plain_entries = kPlainEntries, .aging = 1000}};
  std::uint64_t now_ = 0;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Harness harness;
  fuzz::FrameScript script({data, size});
  while (auto frame = script.next()) {
    harness.feed(*frame);
  }
  return 0;
}
