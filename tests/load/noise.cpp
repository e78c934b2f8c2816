// SPDX-License-Identifier: BSD-3-Clause
#include "noise.hpp"

#include <utility>

namespace weir::load {
namespace {

constexpr std::uint16_t kNoisePort = static_cast<std::uint16_t>(Place::noise);
constexpr std::uint16_t kDeafPort = static_cast<std::uint16_t>(Place::deaf);
constexpr std::uint32_t kPlainQueuePair = 0xabc;
constexpr std::uint32_t kUnknownQueuePair = 0xdef;
constexpr std::uint8_t kWriteMiddle = 0x07;
constexpr std::uint16_t kNotRoce = 5000; // UDP port
constexpr std::size_t kFrames = 8;       // sent in turn
constexpr std::size_t kBulkBytes = 1400;
constexpr std::uint16_t kStranger = 100; // no member's address

test::FrameSpec from_noise() {
  test::FrameSpec spec;
  spec.source_mac = mac_of(kNoisePort);
  spec.destination_mac = mac_of(0);
  spec.source = ip_of(kNoisePort);
  spec.destination = ip_of(0);
  spec.payload = test::Bytes(kPathMtu, 0x55);
  return spec;
}

/// The switch learns a sender's port from any frame.
test::Bytes announcement(std::uint16_t port) {
  test::FrameSpec spec = from_noise();
  spec.source_mac = mac_of(port);
  spec.destination_mac = mac_of(kNoisePort);
  spec.udp_destination = kNotRoce;
  return test::build(spec).bytes;
}

class Discard : public host::FrameReader {
 public:
  void accept(std::span<std::uint8_t> /*frame*/) override {}
};

} // namespace

test::Bytes middle_from_nowhere(std::uint16_t port) {
  test::FrameSpec spec = from_noise();
  spec.source_mac = mac_of(port);
  spec.qp = kUnknownQueuePair;
  spec.opcode = kWriteMiddle;
  return test::build(spec).bytes;
}

std::vector<test::Bytes> all_sorts() {
  test::FrameSpec plain = from_noise();
  plain.qp = kPlainQueuePair;
  test::FrameSpec unwanted = from_noise();
  unwanted.destination_mac = mac_of(kDeafPort);
  unwanted.udp_destination = kNotRoce;
  std::vector<test::Bytes> frames(kFrames, test::build(plain).bytes);
  frames[0] = middle_from_nowhere(kNoisePort);
  frames[1] = test::build(unwanted).bytes;
  return frames;
}

std::vector<test::Bytes> bulk_for(std::uint16_t member) {
  test::FrameSpec spec = from_noise();
  spec.destination_mac = mac_of(member);
  spec.destination = ip_of(member);
  spec.source = ip_of(kStranger);
  spec.udp_destination = kNotRoce;
  spec.payload = test::Bytes(kBulkBytes, 0x55);
  return {test::build(spec).bytes};
}

Noise::Noise(const Lab& lab) : wire_(lab.open(Place::noise)), deaf_(lab.open(Place::deaf)) {
  send(*deaf_, announcement(kDeafPort));
  deaf_->flush();
}

Noise::~Noise() {
  stop();
}

void Noise::start(std::vector<test::Bytes> frames) {
  frames_ = std::move(frames);
  is_stopping_ = false;
  sender_ = std::thread([this] { run(); });
}

void Noise::stop() {
  is_stopping_ = true;
  if (sender_.joinable()) {
    sender_.join();
  }
}

void Noise::run() {
  for (std::size_t next = 0; !is_stopping_; next = (next + 1) % frames_.size()) {
    if (send(*wire_, frames_[next])) {
      ++sent_;
    } else {
      ++refused_;
      std::this_thread::yield();
    }
  }
}

void Noise::drain() {
  Discard discard;
  constexpr unsigned quiet_looks = 50;
  for (unsigned quiet = 0; quiet < quiet_looks;) {
    quiet = deaf_->receive(discard) == 0 ? quiet + 1 : 0;
    wire_->receive(discard);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

} // namespace weir::load
