// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/port.hpp"
#include "frame_stock.hpp"
#include "host/transport/frame_io.hpp"
#include "lcore/clock.hpp"
#include "lcore/lcore.hpp"
#include "link_kinds.hpp"
#include "shared_tables.hpp"
#include "workload.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace weir::bench {

/// Frames did not come that should have.
class LostFrames : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The links between hosts and ports, as far as the kernel makes them. They go with this object.
class Cables {
 public:
  /// Throws std::runtime_error with the command that failed.
  Cables(const LinkKind& kind, std::uint16_t ports, const std::filesystem::path& folder);
  ~Cables(); // also when the constructor throws
  Cables(const Cables&) = delete;
  Cables& operator=(const Cables&) = delete;

 private:
  Cables() = default;

  std::vector<std::string> interfaces_; // to delete at the end
};

/// The hosts' ends of all links, used by one thread.
class FarEnds {
 public:
  void add(std::unique_ptr<host::FrameIo> end) { ends_.push_back(std::move(end)); }

  /// Sends `count` frames of the stock, from number `first` on, each by the host of its port.
  void send(const FrameStock& stock, std::size_t first, std::size_t count);

  /// Receives what has come to every host. Returns the number of frames.
  std::size_t receive();

  std::uint64_t bytes_received() const { return counter_.bytes; }

 private:
  struct Counter : host::FrameReader {
    void accept(std::span<std::uint8_t> frame) override { bytes += frame.size(); }

    std::uint64_t bytes = 0;
  };

  std::vector<std::unique_ptr<host::FrameIo>> ends_;
  Counter counter_;
};

/// Gives the device back with its port, so that the next measurement can probe it again.
struct DetachPort {
  void operator()(control::Port* port) const;
};

/// The switch of a workload over links of one kind, and its hosts. All roles of the switch are on
/// one lcore.
class LinkLab {
 public:
  /// Throws an exception that says what this machine lacks for the kind of link, or LostFrames.
  LinkLab(const LinkKind& kind, const Workload& workload, const std::filesystem::path& folder);
  ~LinkLab();
  LinkLab(const LinkLab&) = delete;
  LinkLab& operator=(const LinkLab&) = delete;

  /// The session of the workload's ring; its connections are open.
  std::uint32_t session() { return lcore_->worker()->incarnations().session_of(0); }

  /// Sends the stock and receives as many frames; hosts and switch work in turn on this thread.
  /// Returns the seconds that a frame takes. Throws LostFrames when fewer or more frames or bytes
  /// come.
  double seconds_on_one_core(const FrameStock& stock);

  /// The same with the switch on another EAL lcore.
  double seconds_on_two_cores(const FrameStock& stock);

  /// Sends the whole stock before the switch looks once. Returns how many frames arrive: so many
  /// wait in the link.
  std::size_t frames_kept(const FrameStock& stock);

 private:
  void make_ports(const LinkKind& kind, std::uint16_t count);
  void make_lcore(const Workload& workload);
  void open_connections(const Workload& workload);

  void run_round() { lcore_->round(clock_.now()); }

  const std::filesystem::path& folder_;
  Pool pool_;
  Cables cables_;
  SharedTables tables_;
  std::vector<std::unique_ptr<control::Port, DetachPort>> ports_;
  std::unique_ptr<lcore::Lcore> lcore_;
  FarEnds hosts_;
  lcore::Clock clock_;
};

/// The stock from one host to another over one cable without a switch, both on this thread: what
/// hosts and cable take in all other measurements, too.
double seconds_without_switch(const FrameStock& stock, const std::filesystem::path& folder);

} // namespace weir::bench
