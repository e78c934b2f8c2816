// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/stream.hpp"
#include "host/rendezvous/handshake.hpp"
#include "host/rendezvous/rejections.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::host {

/// A connection and the rank that it says it is. It takes no longer bodies than the handshake's
/// until it is allowed to. One that has more to read than it takes does not notice its end.
struct PendingPeer {
  std::unique_ptr<FramedStream> stream;
  Claim claim;
};

/// The network of a host that is given by its address. Of IPv4 the address itself; of IPv6 the
/// first 64 bits, because a host may have all addresses behind them. A link-local address has the
/// name of its link after a `%`.
std::string network_of(std::string_view host);

/// Who has not finished the handshake.
struct WaitingCaller {
  std::string_view host;
  std::string_view network;
  bool has_asked = false; // to join
};

/// Which of these makes room for another, oldest first: of the fullest network's fullest host the
/// oldest that has said nothing, otherwise its oldest. So who calls from one address takes the
/// place of nobody who calls from another, unless that one has as many.
std::size_t who_gives_way(std::span<const WaitingCaller> callers);

/// Rank 0's side of the handshake. It hears all connections at once, so one that is silent or
/// speaks another protocol delays no rank. Bytes that only look like a join, or were a join once,
/// admit nobody: a caller must answer with a random number that was drawn for it, and, where there
/// is a secret, with a code that only its owners can make.
class Admission {
 public:
  /// Most connections that wait: twice the ranks of the largest job. When there are more, or the
  /// process can open no more, one of the address that has the most is closed: its oldest that has
  /// said nothing, otherwise its oldest. In IPv6 that is in the network of 64 bits that has the
  /// most. A rank that is closed so comes again.
  static constexpr std::size_t kMaxCallers = 512;

  /// Who has not finished the handshake by then is closed. A rank needs two round trips.
  static constexpr std::chrono::seconds kPatience{5};

  Admission(Socket listener, Credentials credentials,
            std::chrono::milliseconds patience = kPatience)
      : listener_(std::move(listener)), credentials_(std::move(credentials)), patience_(patience) {}

  /// The next connection that asked to join and answered its challenge. nullopt at the deadline.
  /// Throws std::runtime_error when the process can open no connection, though no caller waits.
  std::optional<PendingPeer> next(Deadline deadline);

  const Rejections& rejections() const { return rejections_; }

  /// For who was admitted and then was none of the job's ranks.
  void count(Rejections::Reason reason) { rejections_.count(reason); }

 private:
  /// A connection that is not admitted yet.
  struct Caller {
    std::unique_ptr<FramedStream> stream;
    std::string host;    // where it comes from
    std::string network; // the host's
    Deadline deadline;
    std::optional<Claim> claim; // set when it has asked to join; it is then challenged
    Nonce nonce{};              // the challenge's
  };

  enum class Hearing : std::uint8_t { waiting, over, met };

  void wait(Deadline deadline) const;
  void open_to_callers();
  Socket accept();
  void forget_one();
  std::optional<PendingPeer> hear_callers();
  Hearing hear(Caller& caller);
  Hearing hear_join(Caller& caller, const ControlFrame& frame);
  Hearing hear_answer(Caller& caller, const ControlFrame& frame);
  Hearing reject(Rejections::Reason reason);

  const Socket listener_;
  const Credentials credentials_;
  const std::chrono::milliseconds patience_;
  Rejections rejections_;
  std::vector<Caller> callers_; // oldest first
};

} // namespace weir::host
