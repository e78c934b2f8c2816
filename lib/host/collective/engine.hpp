// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/error.hpp"
#include "host/base/stall_timer.hpp"
#include "host/base/stream.hpp"
#include "host/collective/exchange_series.hpp"
#include "host/collective/reducer.hpp"
#include "host/control/job_control.hpp"
#include "host/transport/transport.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::host {

/// One call.
struct Job {
  CallBuffers buffers;
  Call call;
  ExchangeSeries* series = nullptr; // of a call that takes several; then `buffers` is not used
  std::atomic<std::size_t> bytes_done = 0; // written by the engine
  std::atomic<bool> done = false;          // written by the engine, last of all
};

/// Runs jobs over its channels, in their order and without a gap. Never blocks. The owner calls
/// step() until they are done, and now and then between jobs, for peers that still need an
/// acknowledgement. One thread at a time.
///
/// Before attach(), a channel may fail, or stay without an answer to its hello: the others go on,
/// and keep() leaves it out.
class Engine : private TransportListener {
 public:
  Engine(const Place& place, std::vector<std::unique_ptr<Reducer>> channels, Transport& transport,
         std::chrono::milliseconds timeout);

  /// Whether each channel is idle or has failed.
  bool hellos_are_over() const;

  /// Why the channel has failed; none if it has not. For before attach().
  const std::optional<Error>& failure(std::size_t channel) const { return failures_[channel]; }

  /// That the channel's hello has no answer, or no acknowledgement, after so long. `advice` is
  /// what a person may do; empty: nothing is known.
  Error silence(std::size_t channel, std::chrono::milliseconds waited,
                std::string_view advice) const;

  /// Closes all channels but these, which ascend. Jobs are cut into as many parts.
  void keep(const std::vector<std::size_t>& channels);

  /// From now on jobs may start, and the end of another rank or channel is noticed.
  void attach(JobControl& control);

  /// Begins the job. Others may be running. Throws Error.
  void start(Job& job);

  /// Whether a message of the job may have left. Of one that has not been started: no.
  bool has_begun(const Job& job) const;

  /// Gives a job that has not begun other buffers. The old ones are its caller's again.
  void replace(Job& job, const CallBuffers& buffers);

  /// Does all work that is possible now; true when there was any. Throws Error.
  bool step();

  /// Whether every channel that is used has its results and acknowledgements.
  bool channels_are_idle() const;

  bool is_waiting() const { return !jobs_.empty() || !channels_are_idle(); }

  /// When step() has work even if nothing comes.
  Deadline due() const;

  /// Another rank has sent a control frame: the next step reads it.
  void hear_control() { next_control_ = Deadline::min(); }

  std::uint64_t messages_sent() const { return messages_sent_; }

  std::uint64_t results_received() const { return results_received_; }

 private:
  /// A channel that carries a part of each job.
  struct Carrier {
    std::size_t channel;
    Reducer* reducer;
  };

  Arrival arrived(std::size_t channel, const IncomingMessage& message) override;
  void completed(std::size_t channel) override;
  void failed(std::size_t channel, const Error& error) override;

  void moved() override { note_move(); }

  void note_failure(std::size_t channel, const Error& error);
  void consult_control(Deadline now);
  void poll_control();
  std::string link_in_words() const;
  std::string since_last_move(std::size_t channel) const;
  Error standstill(std::size_t channel, std::chrono::milliseconds waited) const;
  Progress progress() const;
  bool exchange();
  void drain();
  void begin_slices(const Job& job);
  void begin_ready();
  Slice share_of(const Job& job, const Share& share) const;
  bool post_messages();
  std::size_t bytes_done() const;
  std::size_t exchanged_bytes() const;
  std::optional<std::uint64_t> exchange_of(const Job& job) const;
  void retire_jobs();
  bool go_on(Job& job);
  void finish(Job& job) const;
  void average(const Job& job) const;
  void note_move();
  void check_stall();

  bool is_attached() const { return control_ != nullptr; }

  const Place place_;
  std::vector<std::unique_ptr<Reducer>> channels_;
  std::vector<Carrier> carriers_;              // in the order of the parts
  std::vector<std::optional<Error>> failures_; // by channel, before attach()
  Transport& transport_;
  JobControl* control_ = nullptr;
  const std::chrono::milliseconds timeout_;
  std::deque<Job*> jobs_;             // in their order
  std::size_t begun_ = 0;             // of those: the channels have them
  std::uint64_t jobs_done_ = 0;       // before those
  std::uint64_t exchanges_begun_ = 0; // of all jobs; each is a slice of every channel
  std::uint64_t exchanges_done_ = 0;
  std::size_t bytes_of_earlier_ = 0; // of the first job: of its exchanges that are done
  std::optional<Error> lost_; // what ended the exchange of messages, but may not be the cause
  StallTimer stall_timer_;
  TransportStatistics when_moved_; // the transport's, a control period after the last move at most
  bool has_moved_ = true;          // since they were taken
  Deadline next_control_;
  std::uint64_t messages_sent_ = 0;
  std::uint64_t results_received_ = 0;
};

} // namespace weir::host
