// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/control_note.hpp"
#include "host/base/error.hpp"
#include "host/base/group_options.hpp"
#include "host/base/stall_timer.hpp"
#include "host/base/stop_order.hpp"
#include "host/base/stream.hpp"
#include "host/rendezvous/admission.hpp"
#include "host/rendezvous/listener.hpp"
#include "host/rendezvous/rendezvous_point.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::host {

using Blob = std::vector<std::uint8_t>;

struct RendezvousPlan {
  std::uint16_t rank = 0;
  std::uint16_t world = 0;
  std::string address; // HOST:PORT of rank 0; with an all-gather it may be empty, its port 0
  std::chrono::milliseconds timeout{10'000};
  Credentials credentials{};
  AllGather all_gather{};     // tells the ranks where rank 0 listens
  std::string preferred_ip{}; // of rank 0, if it is one of its host's
  std::chrono::milliseconds keep_alive{10'000};
  const StopOrder* stop = nullptr;      // null: none comes
  std::shared_ptr<Listener> listener{}; // of rank 0, in place of the address; null: none
  std::string handle{};                 // of the others: the listener's; empty: none
};

/// What is settled before the ranks meet.
struct MeetingPlace {
  Socket listener;                 // of rank 0; empty: it opens one at the plan's address
  std::vector<Endpoint> endpoints; // for the others; none: the plan's address
  std::string secret;              // drawn for this group; empty: none
};

/// Takes the plan's listener or reads the handle, if it has one; throws std::invalid_argument.
/// Calls the all-gather, if it has one: by it rank 0 tells the others where it listens, or that it
/// cannot. Throws Error.
MeetingPlace settle_place(const RendezvousPlan& plan);

/// Where the ranks of a job meet: rank 0 listens, the others connect and stay connected. Strangers
/// are rejected, counted, and do no harm. Until all ranks are there, a rank whose connection has
/// closed may come again, for example after a restart. Every function ends within the timeout, as
/// StallTimer counts it, or throws Error, which names the missing rank. Only the way to rank 0 has
/// a timeout by the clock, because to resolve a name may take seconds. When the plan's order to
/// stop is given, tells the other ranks and throws Error (aborted).
class Rendezvous {
 public:
  /// Returns when all ranks are there.
  explicit Rendezvous(const RendezvousPlan& plan) : Rendezvous(plan, settle_place(plan)) {}

  Rendezvous(const RendezvousPlan& plan, MeetingPlace place);

  /// Of ranks that have met already. `streams` are as release() hands them over.
  Rendezvous(const RendezvousPlan& plan, std::vector<std::unique_ptr<FramedStream>> streams)
      : plan_(plan), credentials_(plan.credentials), timer_(plan.timeout, Clock::now()),
        streams_(std::move(streams)) {}

  /// Called every millisecond while gather() waits. Must not throw.
  using Meanwhile = std::function<void()>;

  /// Every rank's blob, in rank order. Every rank must make the same number of calls. `what` names
  /// the blob, for the error when a rank does not send it.
  std::vector<Blob> gather(std::span<const std::uint8_t> mine, std::string_view what = "a blob",
                           const Meanwhile& meanwhile = {});

  /// For who waits for something else than a rank's blob. Ends the job if this rank shall stop, or
  /// if another has said that it failed or is gone. Most calls cost no more than a look at the
  /// clock.
  void look_at_others();

  /// Ends the job: tells every rank the error, then throws it here.
  [[noreturn]] void abandon(const Error& error);

  /// On rank 0: callers that were none of the job's ranks.
  std::uint64_t callers_turned_away() const { return callers_turned_away_; }

  /// With the meeting place's secret.
  const Credentials& credentials() const { return credentials_; }

  /// The connection to a rank. Null where there is none.
  const FramedStream* connection(std::uint16_t rank) const { return streams_[rank].get(); }

  /// Hands over the connections: on rank 0 one per rank with none for itself, on other ranks the
  /// one to rank 0.
  std::vector<std::unique_ptr<FramedStream>> release() { return std::move(streams_); }

 private:
  struct Objection {
    Rejections::Reason reason;
    std::string text;
  };

  void obey();
  std::optional<Error> told_by(std::uint16_t rank);
  bool has_died(std::uint16_t rank) const;
  Error death_of(std::uint16_t rank) const;
  void admit_all(Socket listener);
  void seat(Admission& admission, PendingPeer peer);
  std::optional<Objection> objection_to(const Claim& claim);
  std::optional<std::uint16_t> first_missing();
  bool is_here(std::uint16_t rank);
  [[noreturn]] void give_up_on(std::uint16_t first_missing, const Rejections& rejections);
  void join(std::vector<Endpoint> endpoints);

  /// What a rank sends.
  struct Due {
    ControlKind kind;
    std::string_view what;
  };

  std::uint32_t most_blob_bytes() const;
  std::vector<Blob> collect(std::span<const std::uint8_t> mine, std::string_view what,
                            const Meanwhile& meanwhile);
  void finish_sending(std::uint16_t to, std::string_view what, const Meanwhile& meanwhile);
  ControlFrame await(std::uint16_t from, const Due& due, const Meanwhile& meanwhile);
  void wait_for(std::uint16_t rank, std::string_view failing, const Meanwhile& meanwhile);
  std::string missing_ranks() const;
  std::string where() const;

  const RendezvousPlan plan_;
  Credentials credentials_; // with the meeting place's secret
  StallTimer timer_;        // since the constructor or gather() began to wait
  std::vector<std::unique_ptr<FramedStream>> streams_; // by rank
  Deadline next_look_ = Deadline::min();               // at the other ranks
  std::string last_objection_;
  std::uint64_t callers_turned_away_ = 0;
};

} // namespace weir::host
