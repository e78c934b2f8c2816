// SPDX-License-Identifier: BSD-3-Clause

/// The packet path without EAL, for callgrind. Prepared frames go through an InlineSwitch inside
/// drive_packets(), whose instructions budget.py collects. Prints the number of these frames.
///
/// budget_path ring    a ring of four, in turn: every packet is held, or completes its slot
/// budget_path bursts  the same, each rank's packets of a message in one burst, as on an lcore
/// budget_path acks    the receivers' acknowledgements in such a ring, one for each message
/// budget_path plain   plain RDMA between two hosts: every packet is forwarded

#include "frame/frame.hpp"
#include "stage/inline_switch.hpp"
#include "support/ring_job.hpp"
#include "wire/syndrome.hpp"

#include <array>
#include <cstdio>
#include <deque>
#include <span>
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

  /// So many of the frames, one after the other, come in one burst.
  std::size_t burst = 1;

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

  /// No packet is lost here, so none is to be mended.
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
          .first_own_qp = 0x500,
          .ports = kWorld};
}

stage::InlineSwitch::Settings settings() {
  stage::InlineSwitch::Settings settings;
  settings.worker.classifier.sessions = conn::SessionSource::counting_from(test::kSession);
  // valgrind does not support AVX-512, and all machines must run the same code.
  settings.worker.level = op::CpuLevel::avx2;
  return settings;
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

test::Bytes data_of_a_message() {
  return test::Bytes(kMtu * kPacketsPerMessage - kInaHeaderBytes, 0x3c);
}

/// The packets of a message, the ranks in turn.
std::vector<test::Built> message_of(test::RingJob& job, std::uint32_t message, Disguise disguise) {
  const test::Bytes data = data_of_a_message();
  std::vector<std::vector<test::Built>> by_rank;
  for (std::uint16_t rank = 0; rank < kWorld; ++rank) {
    by_rank.push_back(job.message(rank, message, data));
  }
  std::vector<test::Built> packets;
  for (std::size_t packet = 0; packet < kPacketsPerMessage; ++packet) {
    for (std::uint16_t rank = 0; rank < kWorld; ++rank) {
      packets.push_back(disguise(by_rank[rank][packet]));
    }
  }
  return packets;
}

/// What each rank says to its predecessor when it has all of a message.
std::vector<test::Built> acknowledgements_of(const test::RingJob& job, std::uint32_t message) {
  std::vector<test::Built> answers;
  for (std::uint16_t receiver = 0; receiver < kWorld; ++receiver) {
    const auto rank = static_cast<std::uint16_t>((receiver + kWorld - 1) % kWorld);
    const std::uint32_t psn = job.first_psn_of(rank) + message * kPacketsPerMessage;
    answers.push_back(test::build(job.answer_to(rank, wire::ack_syndrome(0), psn, message)));
  }
  return answers;
}

constexpr frame::Instant kNow{1'000'000'000};

void accept_all(stage::InlineSwitch& engine, Stock& stock) {
  if (stock.burst == 1) {
    for (frame::Frame& frame : stock.frames()) {
      engine.accept(frame, kNow);
    }
    return;
  }
  std::array<frame::Frame*, stage::InlineSwitch::kBurst> burst;
  std::size_t size = 0;
  for (frame::Frame& frame : stock.frames()) {
    burst[size++] = &frame;
    if (size == stock.burst) {
      engine.accept(std::span(burst).first(size), kNow);
      size = 0;
    }
  }
}

extern "C" [[gnu::noinline]] void drive_packets(stage::InlineSwitch& engine, Stock& stock) {
  accept_all(engine, stock);
}

/// Frames that go through the switch together.
struct Leg {
  Stock stock;
  void (*drive)(stage::InlineSwitch&, Stock&) = accept_all;
};

void add(Stock& stock, const test::RingJob& job, const std::vector<test::Built>& frames) {
  for (std::size_t i = 0; i < frames.size(); ++i) {
    stock.add(frames[i], job.port_of(static_cast<std::uint16_t>(i % kWorld)));
  }
}

Leg& add_measured(std::deque<Leg>& legs) {
  Leg& leg = legs.emplace_back();
  leg.drive = drive_packets;
  return leg;
}

/// Sends the legs' frames through a switch with these rings. Counts those of the measured legs.
int run(std::vector<ring::RingSpec> rings, std::deque<Leg>& legs) {
  Departures departures;
  stage::InlineSwitch engine(std::move(rings), std::vector<std::uint32_t>(kWorld, kFrameBytes),
                             settings(), departures);
  departures.attach(engine);
  std::size_t frames = 0;
  bool all_left = true;
  for (Leg& leg : legs) {
    const std::size_t before = departures.sent();
    leg.drive(engine, leg.stock);
    all_left = all_left && departures.sent() - before == leg.stock.frames().size();
    frames += leg.drive == drive_packets ? leg.stock.frames().size() : 0;
  }
  std::printf("%zu\n", frames);
  return all_left ? 0 : 1;
}

void add_hellos(test::RingJob& job, std::deque<Leg>& legs) {
  Leg& leg = legs.emplace_back();
  for (std::uint16_t rank = 0; rank < kWorld; ++rank) {
    leg.stock.add(job.hello(rank), job.port_of(rank));
  }
}

int run_messages(std::vector<ring::RingSpec> rings, Disguise disguise) {
  test::RingJob job(job_spec());
  std::deque<Leg> legs;
  add_hellos(job, legs);
  Leg& measured = add_measured(legs);
  for (std::uint32_t message = 1; message <= kMessages; ++message) {
    add(measured.stock, job, message_of(job, message, disguise));
  }
  return run(std::move(rings), legs);
}

int run_bursts() {
  test::RingJob job(job_spec());
  std::deque<Leg> legs;
  add_hellos(job, legs);
  Stock& measured = add_measured(legs).stock;
  measured.burst = kPacketsPerMessage;
  for (std::uint32_t message = 1; message <= kMessages; ++message) {
    for (std::uint16_t rank = 0; rank < kWorld; ++rank) {
      for (const test::Built& packet : job.message(rank, message, data_of_a_message())) {
        measured.add(packet, job.port_of(rank));
      }
    }
  }
  return run({job.ring()}, legs);
}

int run_acknowledgements() {
  test::RingJob job(job_spec());
  std::deque<Leg> legs;
  add_hellos(job, legs);
  for (std::uint32_t message = 1; message <= kMessages; ++message) {
    add(legs.emplace_back().stock, job, message_of(job, message, as_it_is));
    add(add_measured(legs).stock, job, acknowledgements_of(job, message));
  }
  return run({job.ring()}, legs);
}

} // namespace
} // namespace weir::bench

int main(int argc, char** argv) {
  using namespace weir;
  const std::string_view traffic = argc == 2 ? argv[1] : "";
  if (traffic == "ring") {
    return bench::run_messages({test::RingJob(bench::job_spec()).ring()}, bench::as_it_is);
  }
  if (traffic == "bursts") {
    return bench::run_bursts();
  }
  if (traffic == "acks") {
    return bench::run_acknowledgements();
  }
  if (traffic == "plain") {
    return bench::run_messages({}, bench::without_magic);
  }
  std::fputs("usage: budget_path ring|bursts|acks|plain\n", stderr);
  return 2;
}
