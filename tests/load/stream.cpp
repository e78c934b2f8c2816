// SPDX-License-Identifier: BSD-3-Clause
#include "stream.hpp"

namespace weir::load {
namespace {

constexpr std::uint16_t kTalker = static_cast<std::uint16_t>(Place::talker);
constexpr std::uint16_t kListener = static_cast<std::uint16_t>(Place::listener);
constexpr std::chrono::microseconds kPeriod{500};
constexpr std::uint16_t kForeignUdpPort = 5000; // UDP port

test::FrameSpec between(std::uint16_t from, std::uint16_t to) {
  test::FrameSpec spec;
  spec.source_mac = mac_of(from);
  spec.destination_mac = mac_of(to);
  spec.source = spec.destination = ip_of(200);
  spec.udp_destination = kForeignUdpPort;
  spec.payload = test::Bytes(64);
  return spec;
}

} // namespace

Stream::Stream(const Lab& lab)
    : talker_(lab.open(Place::talker)), listener_(lab.open(Place::listener)),
      frame_(test::build(between(kTalker, kListener))) {
  // The switch learns the listener's port.
  send(*listener_, test::build(between(kListener, kTalker)).bytes);
  listener_->flush();
  thread_ = std::thread([this] { run(); });
}

Stream::~Stream() {
  is_stopping_ = true;
  thread_.join();
}

void Stream::run() {
  while (!is_stopping_) {
    send_next();
    while (listener_->receive(*this) != 0) {
    }
    std::this_thread::sleep_for(kPeriod);
  }
}

void Stream::send_next() {
  test::put32(frame_.bytes, frame_.payload, static_cast<std::uint32_t>(sent_ + 1));
  if (send(*talker_, frame_.bytes)) {
    ++sent_;
    talker_->flush();
  }
}

void Stream::accept(std::span<std::uint8_t> frame) {
  if (frame.size() != frame_.bytes.size()) { // a flooded frame
    return;
  }
  const std::uint32_t number = test::get32(test::Bytes(frame.begin(), frame.end()), frame_.payload);
  late_ += number <= newest_ ? 1 : 0;
  newest_ = std::max(newest_, number);
  ++received_;
}

} // namespace weir::load
