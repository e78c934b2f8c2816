// SPDX-License-Identifier: BSD-3-Clause

/// The packet path without EAL, for callgrind. Prepared frames go through an InlineSwitch inside
/// drive_packets(), whose instructions budget.py collects. Prints the number of these frames.
///
/// budget_path ring    a ring of four: every packet is held, or completes its slot
/// budget_path plain   plain RDMA between two hosts: every packet is forwarded

#include "frame/frame.hpp"
#include "stage/inline_switch.hpp"
#include "support/ring_job.hpp"

#include <cstdio>
#include <deque>
#include <string_view>

namespace weir::bench {
namespace {

constexpr std::uint16_t kWorld = 4;
constexpr std::uint32_t kPacketsPerMessage = 16;
constexpr std::uint32_t kMessages = 16;
constexpr std::uint16_t kMtu = 1024;
constexpr std::uint32_t kFrameBytes = 1600;

/// Frames with their bytes, made before the measurement; each is used once.
class Stock {
 public:
  void add(const test::Built& built, std::uint16_t ingress) {
    bytes_.push_back(built.bytes);
    frame::Frame& frame = frames_.emplace_back();
    frame.data = bytes_.back().data();
    frame.length = static_cast<std::uint32_t>(bytes_.back().size());
    frame.ingress = ingress;
  }

  std::deque<frame::Frame>& frames() { return frames_; }

 private:
  std::deque<test::Bytes> bytes_;
  std::deque<frame::Frame> frames_;
};

/// Counts frames that leave, as every sink must.
class Departures : public stage::FrameSink {
 public:
  void attach(stage::InlineSwitch& owner) { owner_ = &owner; }

  void transmit(frame::Frame& frame, l2::PortSet /*ports*/) override {
    owner_->count(frame.departure);
    ++sent_;
  }

  void release(frame::Frame& /*frame*/) override {}

  /// Nothing is lost here, so nothing is to be mended.
  frame::Frame* originate(std::uint32_t /*bytes*/) override { return nullptr; }

  std::size_t sent() const { return sent_; }

 private:
  stage::InlineSwitch* owner_ = nullptr;
  std::size_t sent_ = 0;
};

test::JobSpec job_spec() {
  return {.world = kWorld,
          .window = 4,
          .mtu = kMtu,
          .max_message_bytes = kMtu * kPacketsPerMessage,
          .type = DataType::f32,
          .ports = kWorld};
}

stage::InlineSwitch::Settings settings() {
  stage::InlineSwitch::Settings settings;
  settings.worker.classifier.sessions = conn::SessionSource::counting_from(test::kSession);
  // valgrind does not support AVX-512, and all machines must run the same code.
  settings.worker.level = op::CpuLevel::avx2;
  return settings;
}

void add_hellos(test::RingJob& job, Stock& stock) {
  for (std::uint16_t rank = 0; rank < kWorld; ++rank) {
    stock.add(job.hello(rank), job.port_of(rank));
  }
}

/// Turns a job's frame into the frame that is sent.
using Disguise = test::Built (*)(test::Built);

test::Built as_it_is(test::Built frame) {
  return frame;
}

/// Without the magic a message is a plain one.
test::Built without_magic(test::Built frame) {
  if (test::starts_message(frame)) {
    test::put32(frame.bytes, frame.payload, 0);
    test::seal(frame);
  }
  return frame;
}

/// Adds the messages packet by packet, the ranks in turn.
void add_messages(test::RingJob& job, Stock& stock, Disguise disguise) {
  const test::Bytes data(kMtu * kPacketsPerMessage - kInaHeaderBytes, 0x3c);
  for (std::uint32_t message = 1; message <= kMessages; ++message) {
    std::vector<std::vector<test::Built>> by_rank;
    for (std::uint16_t rank = 0; rank < kWorld; ++rank) {
      by_rank.push_back(job.message(rank, message, data));
    }
    for (std::size_t packet = 0; packet < kPacketsPerMessage; ++packet) {
      for (std::uint16_t rank = 0; rank < kWorld; ++rank) {
        stock.add(disguise(by_rank[rank][packet]), job.port_of(rank));
      }
    }
  }
}

extern "C" [[gnu::noinline]] void drive_packets(stage::InlineSwitch& engine, Stock& stock) {
  const auto now = frame::Instant::from_ns(1'000'000'000);
  for (frame::Frame& frame : stock.frames()) {
    engine.accept(frame, now);
  }
}

/// Sends the job's frames through a switch with or without a ring for them.
int run(std::vector<ring::RingSpec> rings, Disguise disguise) {
  test::RingJob job(job_spec());
  Stock hellos;
  Stock messages;
  add_hellos(job, hellos);
  add_messages(job, messages, disguise);
  Departures departures;
  stage::InlineSwitch engine(std::move(rings), std::vector<std::uint32_t>(kWorld, kFrameBytes),
                             settings(), departures);
  departures.attach(engine);
  for (frame::Frame& frame : hellos.frames()) {
    engine.accept(frame, frame::Instant::from_ns(1'000'000'000));
  }
  const std::size_t before = departures.sent();
  drive_packets(engine, messages);
  const std::size_t frames = messages.frames().size();
  std::printf("%zu\n", frames);
  return departures.sent() - before == frames ? 0 : 1;
}

} // namespace
} // namespace weir::bench

int main(int argc, char** argv) {
  using namespace weir;
  const std::string_view traffic = argc == 2 ? argv[1] : "";
  if (traffic == "ring") {
    return bench::run({test::RingJob(bench::job_spec()).ring()}, bench::as_it_is);
  }
  if (traffic == "plain") {
    return bench::run({}, bench::without_magic);
  }
  std::fputs("usage: budget_path ring|plain\n", stderr);
  return 2;
}
