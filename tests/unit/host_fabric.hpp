// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// A switch in memory, shared by the threads of one process. The host library's tests use it
/// instead of a network.

#include "frame/frame.hpp"
#include "host/transport/frame_io.hpp"
#include "stage/inline_switch.hpp"
#include "support/frame_pool.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace weir::test {

class HostFabric {
 public:
  HostFabric(std::vector<ring::RingSpec> rings, std::uint16_t ports, std::uint32_t session = 7)
      : rings_(std::move(rings)), queues_(ports), sink_(*this) {
    install(session);
  }

  ~HostFabric() { remove(); }

  HostFabric(const HostFabric&) = delete;
  HostFabric& operator=(const HostFabric&) = delete;

  /// The same configuration with a new switch: no slots, no connections, another session.
  void restart(std::uint32_t session) {
    const std::scoped_lock lock(mutex_);
    remove();
    install(session);
  }

  /// From now on every frame is lost.
  void cut() {
    const std::scoped_lock lock(mutex_);
    is_cut_ = true;
  }

  std::unique_ptr<host::FrameIo> open(std::uint16_t port) {
    return std::make_unique<Port>(*this, port);
  }

  std::uint64_t frames() const { return frames_; }

 private:
  static constexpr std::uint32_t kMaxFrame = 4096 + 200;

  class Port : public host::FrameIo {
   public:
    Port(HostFabric& fabric, std::uint16_t port)
        : fabric_(fabric), port_(port), outgoing_(kMaxFrame) {}

    wire::MacAddress mac() const override {
      return {{0x02, 0, 0, 0, 0, static_cast<std::uint8_t>(port_ + 1)}};
    }

    std::size_t receive(host::FrameReader& reader) override {
      std::deque<Bytes> frames = fabric_.take(port_);
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

    void wait(std::chrono::microseconds timeout) override { fabric_.wait(port_, timeout); }

   private:
    HostFabric& fabric_;
    std::uint16_t port_;
    Bytes outgoing_;
  };

  class Sink : public stage::FrameSink {
   public:
    explicit Sink(HostFabric& fabric) : fabric_(fabric) {}

    void transmit(frame::Frame& frame, l2::PortSet ports) override {
      const auto bytes = frame.bytes();
      for (std::size_t port = 0; port < fabric_.queues_.size(); ++port) {
        if ((ports >> port & 1) != 0) {
          fabric_.queues_[port].emplace_back(bytes.begin(), bytes.end());
        }
      }
      fabric_.arrival_.notify_all();
      fabric_.switch_->count(frame.departure);
      fabric_.pool_.release(frame);
    }

    void release(frame::Frame& frame) override { fabric_.pool_.release(frame); }

   private:
    HostFabric& fabric_;
  };

  void install(std::uint32_t session) {
    stage::InlineSwitch::Settings settings;
    settings.mac_entries = 64;
    settings.worker.classifier.sessions = conn::SessionSource::counting_from(session);
    settings.worker.classifier.plain_entries = 64;
    switch_ = std::make_unique<stage::InlineSwitch>(
        rings_, std::vector<std::uint32_t>(queues_.size(), kMaxFrame), settings, sink_);
  }

  void remove() {
    for (std::uint16_t ring = 0; ring < rings_.size(); ++ring) {
      switch_->reset_ring(ring, {});
    }
    switch_.reset();
  }

  void send(std::uint16_t port, std::span<const std::uint8_t> bytes) {
    const std::scoped_lock lock(mutex_);
    if (is_cut_) {
      return;
    }
    ++frames_;
    now_ns_ += 1000;
    switch_->accept(pool_.make(bytes, port), frame::Instant::from_ns(now_ns_));
  }

  std::deque<Bytes> take(std::uint16_t port) {
    const std::scoped_lock lock(mutex_);
    return std::exchange(queues_[port], {});
  }

  void wait(std::uint16_t port, std::chrono::microseconds timeout) {
    std::unique_lock lock(mutex_);
    arrival_.wait_for(lock, timeout, [&] { return !queues_[port].empty(); });
  }

  const std::vector<ring::RingSpec> rings_;
  std::mutex mutex_; // of all below
  std::condition_variable arrival_;
  FramePool pool_;
  std::vector<std::deque<Bytes>> queues_; // frames that wait at each port
  Sink sink_;
  std::unique_ptr<stage::InlineSwitch> switch_;
  std::uint64_t now_ns_ = 0;
  std::uint64_t frames_ = 0;
  bool is_cut_ = false;
};

} // namespace weir::test
