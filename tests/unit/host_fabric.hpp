// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The simulated network for the threads of one process: what the host library's tests plug into.
/// A frame that is sent has arrived when the call returns; otherwise its time is the real one.

#include "host/base/stream.hpp"
#include "host/transport/frame_io.hpp"
#include "network/simulated_network.hpp"
#include "support/frame_builder.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <stop_token>
#include <sys/eventfd.h>
#include <thread>
#include <utility>
#include <vector>

namespace weir::test {

/// Who lets the switch's timers run out: a thread, or who sends and receives, for measurements that
/// nothing shall disturb.
enum class Timekeeper : std::uint8_t { thread, ports };

class HostFabric {
 public:
  HostFabric(std::vector<ring::RingSpec> rings, std::uint16_t ports, std::uint32_t session = 7,
             Timekeeper timekeeper = Timekeeper::thread)
      : rings_(std::move(rings)), inboxes_(ports),
        network_({.links = std::vector<network::LinkTraits>(ports, {.delay = 0}),
                  .longest_frame = kMaxFrame},
                 rings_, settings(session)) {
    for (std::uint16_t port = 0; port < ports; ++port) {
      network_.attach(port, inboxes_[port]);
    }
    if (timekeeper == Timekeeper::thread) {
      clock_ = std::jthread([this](const std::stop_token& stop) { keep_time(stop); });
    }
  }

  HostFabric(const HostFabric&) = delete;
  HostFabric& operator=(const HostFabric&) = delete;

  /// The same configuration with a new switch: no slots, no connections, another session.
  void restart(std::uint32_t session) {
    const std::scoped_lock lock(mutex_);
    network_.replace_switch(rings_, settings(session));
  }

  /// From now on every frame is lost.
  void cut() {
    const std::scoped_lock lock(mutex_);
    for (std::uint16_t port = 0; port < inboxes_.size(); ++port) {
      network_.to_switch(port).set_down();
    }
  }

  std::unique_ptr<host::FrameIo> open(std::uint16_t port) {
    return std::make_unique<Port>(*this, port);
  }

 private:
  static constexpr std::uint32_t kMaxFrame = 4096 + 200;

  /// Frames that wait.
  class Arrived {
   public:
    void add(std::span<const std::uint8_t> frame) {
      frames_.emplace_back(frame.begin(), frame.end());
      eventfd_write(descriptor(), 1);
    }

    std::deque<Bytes> take() {
      eventfd_t frames = 0;
      eventfd_read(descriptor(), &frames);
      return std::exchange(frames_, {});
    }

    /// Readable while frames wait.
    int descriptor() const { return event_.get(); }

   private:
    std::deque<Bytes> frames_;
    host::Socket event_{[] { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }};
  };

  class Port : public host::FrameIo {
   public:
    Port(HostFabric& fabric, std::uint16_t port)
        : fabric_(fabric), port_(port), outgoing_(kMaxFrame) {
      const std::scoped_lock lock(fabric_.mutex_);
      fabric_.inboxes_[port_].add(arrived_);
    }

    ~Port() override {
      const std::scoped_lock lock(fabric_.mutex_);
      fabric_.inboxes_[port_].remove(arrived_);
    }

    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;

    wire::MacAddress mac() const override {
      return {{0x02, 0, 0, 0, 0, static_cast<std::uint8_t>(port_ + 1)}};
    }

    std::size_t receive(host::FrameReader& reader) override {
      std::deque<Bytes> frames = fabric_.take(arrived_);
      for (Bytes& frame : frames) {
        reader.accept(frame);
      }
      return frames.size();
    }

    std::span<std::uint8_t> reserve(std::size_t bytes) override {
      return std::span(outgoing_).first(bytes);
    }

    void commit(std::size_t frame_bytes) override {
      fabric_.send(port_, std::span(outgoing_).first(frame_bytes));
    }

    void flush() override {}

    int descriptor() const override { return arrived_.descriptor(); }

   private:
    HostFabric& fabric_;
    std::uint16_t port_;
    Arrived arrived_;
    Bytes outgoing_;
  };

  /// A port. As with packet sockets, each that is open there gets every frame.
  class Inbox : public network::Station {
   public:
    void receive(std::span<std::uint8_t> frame) override {
      for (Arrived* arrived : open_) {
        arrived->add(frame);
      }
    }

    void expire() override {}

    void add(Arrived& arrived) { open_.push_back(&arrived); }

    void remove(Arrived& arrived) { std::erase(open_, &arrived); }

   private:
    std::vector<Arrived*> open_;
  };

  static stage::InlineSwitch::Settings settings(std::uint32_t session) {
    stage::InlineSwitch::Settings settings;
    settings.mac_entries = 64;
    settings.worker.classifier.sessions = conn::SessionSource::counting_from(session);
    settings.worker.classifier.plain_entries = 64;
    return settings;
  }

  /// The network's time is the real one, so that the switch's timers are those that ship.
  network::Time now() const {
    return static_cast<network::Time>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - start_).count());
  }

  void send(std::uint16_t port, std::span<const std::uint8_t> bytes) {
    const std::scoped_lock lock(mutex_);
    network_.advance_to(now());
    network_.send(port, bytes);
    network_.advance_to(network_.now());
  }

  std::deque<Bytes> take(Arrived& arrived) {
    const std::scoped_lock lock(mutex_);
    network_.advance_to(now());
    return arrived.take();
  }

  void keep_time(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      {
        const std::scoped_lock lock(mutex_);
        network_.advance_to(now());
      }
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
  }

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const std::vector<ring::RingSpec> rings_;
  std::mutex mutex_;           // of all below
  std::vector<Inbox> inboxes_; // by port
  network::SimulatedNetwork network_;
  std::jthread clock_; // goes first
};

} // namespace weir::test
