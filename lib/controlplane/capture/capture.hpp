// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "capture/pcapng_file.hpp"
#include "capture/verdict.hpp"
#include "frame/capture_tap.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace weir::capture {

/// What each lcore's queue may take, for frames that wait for the writing thread.
inline constexpr std::size_t kQueueBytes = std::size_t{8} << 20;

struct Plan {
  std::string file; // must not exist
  std::string what; // "ring 1": for people
  frame::CaptureFilter filter;
  std::uint64_t count = 0;      // it ends after so many packets
  std::uint32_t most_bytes = 0; // of a frame
  std::size_t lcores = 0;
  std::uint64_t clock_zero_ns = 0; // the time of the records' 0, in nanoseconds since 1970
  Names names;
  std::size_t queue_bytes = kQueueBytes; // for each lcore
};

enum class State : std::uint8_t { running, complete, stopped, failed };

struct Status {
  std::string file;
  std::string what;
  State state{};
  std::uint64_t count = 0;    // wanted
  std::uint64_t written = 0;  // packets
  std::uint64_t left_out = 0; // packets that found an lcore's queue full
  std::string error;          // of a failed one
};

/// Writes what the lcores' taps get into a file, each packet with the switch's verdict as its
/// comment, until there are enough or end() is called. Only its own thread writes, so no lcore
/// waits for the file.
class Capture {
 public:
  /// Makes the file. Throws FileError.
  explicit Capture(Plan plan);

  ~Capture() { end(); }

  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  frame::CaptureTap& tap(std::size_t lcore) { return *taps_[lcore]; }

  /// From now on records with this index are of this ring. Does nothing when it has ended.
  void learn(std::uint16_t ring, const ring::RingSpec& spec);

  /// Begins to write. When it has ended, the thread calls `detach`, after which no lcore may use
  /// its tap any more.
  void start(std::function<void()> detach);

  /// Writes what waits and closes the file. Does nothing when it has ended already.
  void end();

  Status status() const;

 private:
  /// A frame that has left its queue.
  struct Waiting {
    frame::CapturedFrame captured;
    std::size_t begin; // in bytes_
  };

  void run();
  void attempt(const std::function<void()>& step);
  void write_while_wanted();
  void finish(std::uint64_t left_out);

  bool is_complete() const { return added_ == plan_.count; }

  std::size_t write_waiting();
  std::span<const std::uint8_t> bytes_of(const Waiting& waiting) const;
  void flush();
  void write(const Waiting& waiting);
  void add(const Waiting& waiting, std::size_t interface, Direction direction,
           std::string_view verdict);
  std::uint64_t all_left_out() const;

  Plan plan_;
  std::mutex names_; // plan_.names.rings
  PcapngFile file_;
  std::vector<std::unique_ptr<frame::CaptureTap>> taps_; // by lcore
  std::function<void()> detach_;
  std::atomic<bool> wants_end_{false};
  std::uint64_t added_ = 0;   // to file_: packets; of the thread
  std::uint64_t last_ns_ = 0; // time of the last of them; likewise
  frame::Count written_;      // packets in the file; written by the thread
  // Of the thread, and used again for each turn.
  std::vector<Waiting> waiting_;
  std::vector<std::uint8_t> bytes_; // theirs, one frame's behind the other's
  std::thread thread_;
  mutable std::mutex mutex_; // of what follows, and of the end of taps_
  State state_ = State::running;
  std::uint64_t left_out_ = 0; // when it ended
  std::string error_;
};

} // namespace weir::capture
