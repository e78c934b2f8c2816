// SPDX-License-Identifier: BSD-3-Clause
#include "host/rendezvous/joining.hpp"

#include "host/base/control_note.hpp"
#include "host/base/error.hpp"
#include "host/base/stall_timer.hpp"
#include "random/random_bytes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace weir::host {
namespace {

constexpr auto kRetryPause = std::chrono::milliseconds(20);
// Where there are several addresses, the wrong ones do not use up the timeout.
constexpr auto kConnectPatience = std::chrono::seconds(3);  // for those that do not answer
constexpr std::chrono::milliseconds kSilencePatience{1000}; // for one that answers, says nothing,
constexpr std::chrono::milliseconds kMostPatience{60'000};  // and after many times of it

class Joining {
 public:
  explicit Joining(const JoinPlan& plan)
      : plan_(plan), deadline_(deadline_after(Clock::now(), plan.timeout)) {}

  using Stream = std::unique_ptr<FramedStream>;

  Stream run();
  Stream shake_hands(Socket socket);

  bool is_refused() const { return is_refused_; }

 private:
  /// It may object to the claim itself, and name its rank.
  Sender rank_0() const {
    const int least_world = plan_.claim.rank + 1;
    return {0, static_cast<std::uint16_t>(std::max<int>(plan_.claim.world, least_world))};
  }

  bool has_one_endpoint() const { return plan_.endpoints.size() == 1; }

  Deadline within(std::chrono::milliseconds time) const {
    return std::min(deadline_, deadline_after(Clock::now(), time));
  }

  Stream try_all();
  Socket connected(ConnectionAttempts& attempts) const;
  bool answer_challenge(FramedStream& stream, const ControlFrame& challenge, ByteView join);
  bool is_welcome(FramedStream& stream);
  std::optional<ControlFrame> await(FramedStream& stream);
  void obey() const;
  void obey(FramedStream& stream) const;
  void note_refusal(ByteView body);
  void note_strange(const ControlFrame& frame, std::string_view due);
  [[noreturn]] void give_up() const;

  const JoinPlan& plan_;
  const Deadline deadline_;
  std::chrono::milliseconds patience_ = kSilencePatience;
  std::string cause_;       // why the last connection was of no use
  bool is_refused_ = false; // the last connection's join
  bool is_silent_ = false;  // somebody who has accepted a connection
  std::string failures_;    // of every address, the last time
};

Joining::Stream Joining::run() {
  while (true) {
    if (Stream stream = try_all()) {
      return stream;
    }
    obey();
    if (Clock::now() + kRetryPause >= deadline_) {
      give_up();
    }
    std::this_thread::sleep_for(kRetryPause);
    if (std::exchange(is_silent_, false)) { // it may be rank 0, and not yet hear its callers
      patience_ = std::min(2 * patience_, kMostPatience);
    }
  }
}

Joining::Stream Joining::try_all() {
  ConnectionAttempts attempts(plan_.endpoints);
  while (Socket socket = connected(attempts)) {
    if (Stream stream = shake_hands(std::move(socket))) {
      return stream;
    }
    if (is_refused_ && has_one_endpoint()) {
      throw Error(ErrorCode::mismatch, plan_.claim.rank,
                  fmt::format("rendezvous at {}: rank {} was {}", plan_.endpoints.front().text(),
                              plan_.claim.rank, cause_));
    }
    attempts.reject_last(cause_);
  }
  if (failures_.empty() || Clock::now() < deadline_) { // what the deadline cut short tells less
    failures_ = attempts.failures();
  }
  return nullptr;
}

/// The next that comes about. An empty socket when none does.
Socket Joining::connected(ConnectionAttempts& attempts) const {
  const Deadline deadline = within(kConnectPatience);
  while (true) {
    obey();
    const Deadline now = Clock::now();
    Socket socket = attempts.next(std::min(deadline, now + StallTimer::kLookPeriod));
    if (socket || attempts.are_over() || now >= deadline) {
      return socket;
    }
  }
}

Joining::Stream Joining::shake_hands(Socket socket) {
  auto stream = std::make_unique<FramedStream>(std::move(socket), kMostChallengeBytes);
  stream->notice_silence_within(plan_.keep_alive);
  const auto join = make_join(plan_.credentials, plan_.claim, random_bytes<sizeof(Nonce)>());
  stream->send(code(ControlKind::join), join);
  const std::optional<ControlFrame> frame = await(*stream);
  if (!frame || !answer_challenge(*stream, *frame, join) || !is_welcome(*stream)) {
    return nullptr;
  }
  return stream;
}

bool Joining::answer_challenge(FramedStream& stream, const ControlFrame& challenge, ByteView join) {
  if (challenge.kind == code(ControlKind::refused)) {
    note_refusal(challenge.body);
    return false;
  }
  if (challenge.kind != code(ControlKind::challenge)) {
    note_strange(challenge, "a challenge");
    return false;
  }
  const std::optional<Nonce> nonce = read_challenge(challenge.body, join, plan_.credentials);
  if (!nonce) {
    cause_ = "who listens there does not know the job's secret";
    return false;
  }
  if (!plan_.credentials.secret.empty()) {
    const SessionKeys keys = session_keys(plan_.credentials, join, *nonce);
    stream.seal(keys.to_rank_0, keys.from_rank_0);
  }
  stream.allow_bodies_up_to(FramedStream::kMaxBody);
  stream.send(code(ControlKind::answer), *nonce);
  return true;
}

bool Joining::is_welcome(FramedStream& stream) {
  const std::optional<ControlFrame> frame = await(stream);
  if (frame && frame->kind == code(ControlKind::failed)) {
    throw decode_error(frame->body, plan_.leader.value_or(rank_0()));
  }
  if (frame && frame->kind != code(ControlKind::welcome)) {
    note_strange(*frame, "a welcome");
  }
  return frame && frame->kind == code(ControlKind::welcome);
}

/// Reads first and then looks at the clock: this process may have been stopped meanwhile. Where
/// only one can be rank 0, waits for it as long as may be.
std::optional<ControlFrame> Joining::await(FramedStream& stream) {
  const Deadline deadline = has_one_endpoint() ? deadline_ : within(patience_);
  while (true) {
    if (std::optional<ControlFrame> frame = stream.receive()) {
      return frame;
    }
    if (!stream.is_open()) {
      cause_ = fmt::format("{} before this rank was admitted", stream.why_closed());
      return std::nullopt;
    }
    obey(stream);
    const Deadline now = Clock::now();
    if (now >= deadline) {
      is_silent_ = true;
      cause_ = "it accepted the connection and said nothing";
      return std::nullopt;
    }
    stream.wait(std::min(deadline, now + StallTimer::kLookPeriod));
  }
}

void Joining::obey() const {
  if (plan_.stop != nullptr) {
    plan_.stop->obey(plan_.claim.rank);
  }
}

/// Rank 0 may have admitted this rank already: it learns why it goes.
void Joining::obey(FramedStream& stream) const {
  if (plan_.stop != nullptr && plan_.stop->is_given()) {
    const Error error = plan_.stop->error_of(plan_.claim.rank);
    stream.send(code(ControlKind::failed), encode(error));
    throw error;
  }
}

/// Nobody has proved to be rank 0. So where there are several addresses, this may be another job's.
void Joining::note_refusal(ByteView body) {
  const std::optional<Refusal> refusal = read_refusal(body);
  cause_ = fmt::format("turned away: {}", refusal ? text_of(*refusal) : "it does not say why");
  is_refused_ = true;
}

void Joining::note_strange(const ControlFrame& frame, std::string_view due) {
  cause_ = fmt::format("it sent a control frame of kind {}; due is {}", frame.kind, due);
}

void Joining::give_up() const {
  throw Error(ErrorCode::rendezvous_timeout, 0,
              fmt::format("rendezvous: rank 0 was not reached within {} ms: {}",
                          plan_.timeout.count(), failures_));
}

} // namespace

std::unique_ptr<FramedStream> join_rank_0(const JoinPlan& plan) {
  return Joining(plan).run();
}

JoinOutcome join_on(Socket connection, const JoinPlan& plan) {
  Joining joining(plan);
  std::unique_ptr<FramedStream> stream = joining.shake_hands(std::move(connection));
  return {std::move(stream), joining.is_refused()};
}

} // namespace weir::host
