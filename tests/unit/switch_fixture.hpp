// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The whole switch without EAL: frames in, frames out, and what must come out. tests/support
/// builds the expected frames from docs/protocol.md §5.

#include "frame/frame.hpp"
#include "stage/inline_switch.hpp"
#include "support/frame_builder.hpp"
#include "support/frame_pool.hpp"
#include "support/ring_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace weir::stage {

using frame::Departure;
using test::build;
using test::Built;
using test::Bytes;
using test::FramePool;
using test::FrameSpec;
using test::JobSpec;
using test::kSession;
using test::RecordingSink;
using test::result_of;
using test::RingJob;
using test::Sent;

inline constexpr std::uint32_t kMaxFrame = 1500 + 22;

/// Tables for tests, and sessions from this one on.
inline InlineSwitch::Settings small_switch(std::uint32_t first_session) {
  InlineSwitch::Settings settings;
  settings.mac_entries = 512;
  settings.worker.classifier = {.sessions = conn::SessionSource::counting_from(first_session),
                                .plain_entries = 16,
                                .spare_children = 4,
                                .aging = 10'000};
  settings.worker.level = op::CpuLevel::baseline;
  return settings;
}

/// A switch, the frames in it and the frames that left it. After every frame the accounting must
/// balance, and the frames alive must be those in slots (protocol I6).
class SwitchFixture {
 public:
  explicit SwitchFixture(const std::vector<const RingJob*>& jobs,
                         std::vector<std::uint32_t> limits = {},
                         slot::ReductionHelpers* helpers = nullptr, std::uint32_t queue_room = 0,
                         std::uint16_t workers = 1,
                         const conn::CurrentOperators* operators = nullptr)
      : SwitchFixture(jobs, settings(helpers, queue_room, workers, operators), std::move(limits)) {}

  SwitchFixture(const std::vector<const RingJob*>& jobs, const InlineSwitch::Settings& settings,
                std::vector<std::uint32_t> limits)
      : sink_(pool_),
        switch_(rings_of(jobs), limits.empty() ? all_ports() : std::move(limits), settings, sink_) {
    sink_.attach(switch_);
  }

  std::vector<Sent> send(const Bytes& bytes, std::uint16_t port) {
    received_bytes_ += bytes.size();
    switch_.receive(pool_.make(bytes, port), now);
    expect_balance();
    return sink_.take();
  }

  std::vector<Sent> send(const Built& frame, std::uint16_t port) { return send(frame.bytes, port); }

  /// A frame on its way to the switch.
  struct Incoming {
    Bytes bytes;
    std::uint16_t port = 0;
  };

  /// The frames come together, as in a burst of a port.
  std::vector<Sent> send(const std::vector<Incoming>& burst) {
    std::vector<frame::Frame*> frames;
    for (const Incoming& frame : burst) {
      frames.push_back(&pool_.make(frame.bytes, frame.port));
    }
    switch_.accept(frames, now);
    expect_balance();
    return sink_.take();
  }

  /// The frames that leave when the timers are looked at.
  std::vector<Sent> poll_timers() {
    switch_.poll_timers(now);
    expect_balance();
    return sink_.take();
  }

  /// The frames that leave when so many that wait for their turn go on.
  std::vector<Sent> serve(unsigned frames) {
    switch_.serve(frames, now);
    expect_balance();
    return sink_.take();
  }

  /// The frames that leave when the worker collects reductions that others have made.
  std::vector<Sent> collect() {
    switch_.collect(now);
    expect_balance();
    return sink_.take();
  }

  /// Lets time pass, and looks at the timers when they are due. The frames that leave meanwhile.
  std::vector<Sent> wait(std::uint64_t ns) {
    const std::uint64_t end = now.ns + ns;
    while (switch_.next_timer() <= end) {
      now = frame::Instant{std::max(now.ns, switch_.next_timer())};
      switch_.poll_timers(now);
    }
    now = frame::Instant{end};
    return collect();
  }

  /// Lets the switch learn where each host is.
  void announce(const RingJob& job) {
    for (std::uint16_t rank = 0; rank < job.spec().world; ++rank) {
      Bytes frame(60, 0xff);
      const auto mac = job.mac_of(rank).bytes;
      std::copy(mac.begin(), mac.end(), frame.begin() + 6);
      test::put16(frame, 12, 0x0806);
      EXPECT_EQ(send(frame, job.port_of(rank)).size(), 1u);
    }
  }

  /// Announces the hosts and has all of them say hello.
  void start(const RingJob& job) {
    announce(job);
    for (std::uint16_t rank = 0; rank < job.spec().world; ++rank) {
      const bool is_last = rank + 1 == job.spec().world;
      EXPECT_EQ(send(job.hello(rank), job.port_of(rank)).size(), is_last ? job.spec().world : 0u);
    }
  }

  std::vector<Sent> reset(std::uint16_t ring) {
    switch_.reset_ring(ring, now);
    expect_balance();
    return sink_.take();
  }

  std::vector<Sent> drain(std::uint16_t ring) {
    switch_.drain_ring(ring, now);
    expect_balance();
    return sink_.take();
  }

  std::vector<Sent> withdraw(std::uint16_t ring) {
    switch_.withdraw_ring(ring, now);
    expect_balance();
    return sink_.take();
  }

  /// The classes of the frames that have left since the last call.
  std::vector<frame::TrafficClass> classes() { return sink_.take_classes(); }

  Accounting accounting() const { return switch_.accounting(); }

  InlineSwitch& inside() { return switch_; }

  const frame::RingCounters& ring(std::uint16_t index = 0) const {
    return switch_.worker_of(index).counters_of(index);
  }

  std::uint64_t dropped(DropReason reason) const {
    return accounting().frames.dropped[static_cast<std::size_t>(reason)];
  }

  /// Of the frames that came one by one.
  std::uint64_t received_bytes() const { return received_bytes_; }

  frame::Instant now = frame::Instant{1'000'000'000};

  static std::vector<std::uint32_t> all_ports() { return std::vector<std::uint32_t>(4, kMaxFrame); }

 private:
  static std::vector<ring::RingSpec> rings_of(const std::vector<const RingJob*>& jobs) {
    std::vector<ring::RingSpec> rings;
    for (const RingJob* job : jobs) {
      rings.push_back(job->ring());
    }
    return rings;
  }

  static InlineSwitch::Settings settings(slot::ReductionHelpers* helpers, std::uint32_t queue_room,
                                         std::uint16_t workers,
                                         const conn::CurrentOperators* operators) {
    InlineSwitch::Settings settings = small_switch(kSession);
    settings.worker.classifier.operators = operators;
    settings.worker.helpers = helpers;
    settings.worker.queue_room = queue_room;
    settings.workers = workers;
    return settings;
  }

  void expect_balance() {
    const Accounting accounting = switch_.accounting();
    EXPECT_TRUE(accounting.balances())
        << accounting.frames.received << " received, " << accounting.accounted() << " accounted";
    EXPECT_EQ(pool_.live(), accounting.held + accounting.queued);
  }

  std::uint64_t received_bytes_ = 0;
  FramePool pool_;
  RecordingSink sink_;
  InlineSwitch switch_;
};

// ---- What a message's result is. ----

template <typename Element>
Bytes fold_as(Operation operation, const std::vector<Bytes>& inputs) {
  Bytes folded = inputs.front();
  for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
    for (std::size_t at = 0; at < folded.size(); at += sizeof(Element)) {
      Element a;
      Element b;
      std::memcpy(&a, folded.data() + at, sizeof a);
      std::memcpy(&b, inputs[rank].data() + at, sizeof b);
      switch (operation) {
      case Operation::min:
        a = std::min(a, b);
        break;
      case Operation::max:
        a = std::max(a, b);
        break;
      default:
        a = static_cast<Element>(a + b);
        break;
      }
      std::memcpy(folded.data() + at, &a, sizeof a);
    }
  }
  return folded;
}

/// The left fold in rank order. Signed sums use unsigned words, which wrap.
inline Bytes fold(DataType type, Operation operation, const std::vector<Bytes>& inputs) {
  const bool is_sum = operation == Operation::sum;
  switch (type) {
  case DataType::f32:
    return fold_as<float>(operation, inputs);
  case DataType::i32:
    return is_sum ? fold_as<std::uint32_t>(operation, inputs)
                  : fold_as<std::int32_t>(operation, inputs);
  default:
    return fold_as<std::uint8_t>(operation, inputs);
  }
}

inline Bytes random_data(std::mt19937& random, DataType type, std::size_t bytes) {
  Bytes data(bytes);
  for (std::size_t at = 0; at < bytes; ++at) {
    data[at] = static_cast<std::uint8_t>(random());
  }
  for (std::size_t at = 0; type == DataType::f32 && at + 4 <= bytes; at += 4) {
    const float value =
        std::ldexp(static_cast<float>(random()) / 4e9f - 0.5f, static_cast<int>(random() % 40));
    std::memcpy(data.data() + at, &value, sizeof value);
  }
  return data;
}

inline l2::PortSet port_behind(const RingJob& job, std::uint16_t rank) {
  return l2::PortSet{1} << job.port_of(job.successor_of(rank));
}

/// The frame that the rank's successor must get for `frame`.
inline Sent result_sent(const RingJob& job, std::uint16_t rank, const Built& frame,
                        const Bytes& data) {
  return {result_of(frame, data, job.spec().session).bytes, port_behind(job, rank),
          Departure::consumed};
}

/// The same when the switch asks for an acknowledgement that the rank did not ask for.
inline Sent asking_result_sent(const RingJob& job, std::uint16_t rank, const Built& frame,
                               const Bytes& data) {
  Built asking = frame;
  asking.bytes[asking.bth + 8] |= 0x80; // IBTA §9.2: AckReq
  return result_sent(job, rank, asking, data);
}

/// A frame between two hosts on a queue pair of no ring.
inline Built between(RingJob& job, std::uint16_t from, std::uint16_t to, std::uint8_t opcode,
                     std::size_t payload) {
  FrameSpec spec = job.frame_of(from);
  spec.destination = job.ip_of(to);
  spec.destination_mac = job.mac_of(to);
  spec.opcode = opcode;
  spec.qp = 0x777;
  spec.payload = Bytes(payload, 3);
  return build(spec);
}

/// A message of every rank, packet by packet, and the data of each packet's result.
struct Exchange {
  std::vector<std::vector<Built>> packets; // by rank
  std::vector<Bytes> reduced;              // by packet
};

inline Exchange exchange(RingJob& job, std::uint32_t id, const std::vector<Bytes>& inputs) {
  Exchange made;
  for (std::uint16_t rank = 0; rank < job.spec().world; ++rank) {
    made.packets.push_back(job.message(rank, id, inputs[rank]));
  }
  for (std::size_t k = 0; k < made.packets[0].size(); ++k) {
    std::vector<Bytes> parts;
    for (const auto& packets : made.packets) {
      parts.push_back(data_of(packets[k]));
    }
    made.reduced.push_back(fold(job.spec().type, job.spec().operation, parts));
  }
  return made;
}

inline Exchange random_exchange(std::mt19937& random, RingJob& job, std::uint32_t id,
                                std::size_t bytes) {
  std::vector<Bytes> inputs;
  for (std::uint16_t rank = 0; rank < job.spec().world; ++rank) {
    inputs.push_back(random_data(random, job.spec().type, bytes));
  }
  return exchange(job, id, inputs);
}

/// Sends every packet once, each rank's in order, ranks mixed at random. After every packet,
/// compares what leaves with docs/protocol.md.
inline void expect_completes(std::mt19937& random, SwitchFixture& fixture, const RingJob& job,
                             const Exchange& exchange) {
  const std::uint16_t world = job.spec().world;
  std::vector<std::uint16_t> turns;
  for (std::uint16_t rank = 0; rank < world; ++rank) {
    turns.insert(turns.end(), exchange.reduced.size(), rank);
  }
  std::shuffle(turns.begin(), turns.end(), random);
  std::vector<std::size_t> next(world);
  std::vector<std::size_t> arrived(exchange.reduced.size());
  for (const std::uint16_t rank : turns) {
    const std::size_t k = next[rank]++;
    std::vector<Sent> expected;
    if (++arrived[k] == world) {
      for (std::uint16_t to = 0; to < world; ++to) {
        expected.push_back(result_sent(job, to, exchange.packets[to][k], exchange.reduced[k]));
      }
    }
    ASSERT_EQ(fixture.send(exchange.packets[rank][k], job.port_of(rank)), expected)
        << "rank " << rank << " packet " << k;
  }
}

} // namespace weir::stage
