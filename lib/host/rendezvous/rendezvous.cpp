// SPDX-License-Identifier: BSD-3-Clause
#include "host/rendezvous/rendezvous.hpp"

#include "host/base/host_addresses.hpp"
#include "host/rendezvous/joining.hpp"
#include "random/random_bytes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace weir::host {
namespace {

constexpr auto kMeanwhilePeriod = std::chrono::milliseconds(1);
// More time for rank 0, which knows best who is missing.
constexpr auto kOthersSlack = std::chrono::seconds(1);

/// Returns what `attempt` returns. Turns a system error into the rendezvous's error.
template <typename Attempt>
auto attempted(Attempt&& attempt) {
  try {
    return attempt();
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw Error(ErrorCode::transport_failure, 0, fmt::format("rendezvous: {}", error.what()));
  }
}

Blob join_blobs(const std::vector<Blob>& blobs) {
  Blob all;
  for (const Blob& blob : blobs) {
    const wire::be32 bytes(static_cast<std::uint32_t>(blob.size()));
    const auto prefix = bytes_of(bytes);
    all.insert(all.end(), prefix.begin(), prefix.end());
    all.insert(all.end(), blob.begin(), blob.end());
  }
  return all;
}

std::vector<Blob> split_blobs(std::span<const std::uint8_t> all, std::size_t count) {
  std::vector<Blob> blobs;
  while (blobs.size() < count && all.size() >= sizeof(wire::be32)) {
    const std::size_t bytes = wire::view_as<wire::be32>(all.data()).get();
    all = all.subspan(sizeof(wire::be32));
    if (bytes > all.size()) {
      break;
    }
    blobs.emplace_back(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(bytes));
    all = all.subspan(bytes);
  }
  if (blobs.size() != count) {
    throw Error(ErrorCode::transport_failure, 0, "rank 0 sent a gather that cannot be read");
  }
  return blobs;
}

Claim claim_of(const RendezvousPlan& plan) {
  return {plan.rank, plan.world};
}

RendezvousPoint invite(const RendezvousPlan& plan, const Socket& listener) {
  const auto secret = random_bytes<32>();
  const std::string port = std::to_string(port_of(listener));
  RendezvousPoint place{{}, std::string(secret.begin(), secret.end())};
  const std::optional<Endpoint> given = Endpoint::parse(plan.address);
  if (given && !is_wildcard(given->host)) {
    place.endpoints.push_back({given->host, port});
    return place;
  }
  for (const std::string& address : announced(read_host_addresses(), plan.preferred_ip)) {
    place.endpoints.push_back({address, port});
  }
  return place;
}

/// Rank 0's part. Tells the other ranks where it listens, or that it cannot.
MeetingPlace invite_all(const RendezvousPlan& plan) {
  Socket listener;
  RendezvousPoint own;
  try {
    listener =
        plan.address.empty() ? listen_everywhere() : listen_at(*Endpoint::parse(plan.address));
    own = invite(plan, listener);
  } catch (const std::runtime_error& error) {
    share_failure(plan.all_gather, claim_of(plan), error.what());
    throw;
  }
  RendezvousPoint shared = share_rendezvous_point(plan.all_gather, claim_of(plan), own);
  return {std::move(listener), {}, std::move(shared.secret)};
}

} // namespace

MeetingPlace settle_place(const RendezvousPlan& plan) {
  if (plan.listener) {
    return {plan.listener->take(), {}, read_handle(plan.listener->handle_text()).secret};
  }
  if (!plan.handle.empty()) {
    RendezvousPoint point = read_handle(plan.handle);
    return {{}, std::move(point.endpoints), std::move(point.secret)};
  }
  if (!plan.all_gather) {
    return {};
  }
  if (plan.rank == 0) {
    return attempted([&] { return invite_all(plan); });
  }
  RendezvousPoint shared = share_rendezvous_point(plan.all_gather, claim_of(plan), {});
  return {{}, std::move(shared.endpoints), std::move(shared.secret)};
}

/// Who overhears where the ranks meet still lacks the job's own secret, if it has one.
Rendezvous::Rendezvous(const RendezvousPlan& plan, MeetingPlace place)
    : plan_(plan), credentials_(plan.credentials), timer_(plan.timeout, Clock::now()),
      streams_(plan.world) {
  credentials_.secret += place.secret;
  if (plan_.rank == 0) {
    admit_all(std::move(place.listener));
  } else {
    join(std::move(place.endpoints));
  }
}

void Rendezvous::obey() {
  if (plan_.stop != nullptr && plan_.stop->is_given()) {
    abandon(plan_.stop->error_of(plan_.rank));
  }
}

/// The error that the rank has sent, wherever it stands among its frames.
std::optional<Error> Rendezvous::told_by(std::uint16_t rank) {
  FramedStream& stream = *streams_[rank];
  stream.read_available();
  if (!stream.holds(code(ControlKind::failed))) {
    return std::nullopt;
  }
  while (const std::optional<ControlFrame> frame = stream.receive()) {
    if (frame->kind == code(ControlKind::failed)) {
      return decode_error(frame->body, {rank, plan_.world});
    }
  }
  return std::nullopt; // a wrong code has closed the connection
}

Error Rendezvous::death_of(std::uint16_t rank) const {
  return {ErrorCode::peer_died, rank,
          fmt::format("rendezvous: rank {}: {}", rank, streams_[rank]->why_closed())};
}

void Rendezvous::look_at_others() {
  obey();
  const Deadline now = Clock::now();
  if (now < next_look_) {
    return;
  }
  next_look_ = now + StallTimer::kLookPeriod;
  for (std::uint16_t rank = 0; rank < plan_.world; ++rank) {
    if (!streams_[rank]) {
      continue;
    }
    if (const std::optional<Error> error = told_by(rank)) {
      abandon(*error);
    }
    if (has_died(rank)) {
      abandon(death_of(rank));
    }
  }
}

/// Rank 0 may end when it has sent all that was due.
bool Rendezvous::has_died(std::uint16_t rank) const {
  const FramedStream& stream = *streams_[rank];
  return !stream.is_open() && !stream.holds(code(ControlKind::blobs));
}

void Rendezvous::abandon(const Error& error) {
  const Blob body = encode(error);
  for (const auto& stream : streams_) {
    if (stream) {
      stream->send(code(ControlKind::failed), body);
    }
  }
  throw error;
}

std::string Rendezvous::missing_ranks() const {
  std::vector<std::uint16_t> missing;
  for (std::uint16_t rank = 1; rank < plan_.world; ++rank) {
    if (!streams_[rank]) {
      missing.push_back(rank);
    }
  }
  return named(missing);
}

void Rendezvous::admit_all(Socket listener) {
  if (!listener) {
    listener = attempted([&] { return listen_at(*Endpoint::parse(plan_.address)); });
  }
  Admission admission(std::move(listener), credentials_);
  while (const std::optional<std::uint16_t> missing = first_missing()) {
    const Deadline look = Clock::now() + StallTimer::kLookPeriod;
    std::optional<PendingPeer> peer = attempted([&] { return admission.next(look); });
    timer_.look(Clock::now());
    if (peer) {
      seat(admission, std::move(*peer));
    } else if (timer_.is_over()) {
      give_up_on(*missing, admission.rejections());
    }
    obey();
  }
  callers_turned_away_ = admission.rejections().total();
}

/// A rank that came and closed counts as missing: another process may still come in its place. One
/// that has aborted wants no other to come.
std::optional<std::uint16_t> Rendezvous::first_missing() {
  std::optional<std::uint16_t> first;
  for (std::uint16_t rank = plan_.world - 1; rank > 0; --rank) {
    if (!is_here(rank)) {
      first = rank;
    }
  }
  return first;
}

bool Rendezvous::is_here(std::uint16_t rank) {
  std::unique_ptr<FramedStream>& stream = streams_[rank];
  if (!stream) {
    return false;
  }
  const std::optional<Error> error = told_by(rank);
  if (error && error->code() == ErrorCode::aborted) {
    abandon(*error);
  }
  if (error || !stream->is_open()) {
    stream.reset();
  }
  return stream != nullptr;
}

void Rendezvous::give_up_on(std::uint16_t first_missing, const Rejections& rejections) {
  const std::string callers = rejections.describe();
  const std::string objection =
      last_objection_.empty() ? "" : fmt::format("; the last said {}", last_objection_);
  abandon(Error(ErrorCode::rendezvous_timeout, first_missing,
                fmt::format("rendezvous{}: {} of {} did not come within {} ms{}{}{}", where(),
                            missing_ranks(), plan_.world, plan_.timeout.count(),
                            callers.empty() ? "" : "; turned away were callers: ", callers,
                            objection)));
}

/// " at HOST:PORT", if that was agreed.
std::string Rendezvous::where() const {
  return plan_.address.empty() ? "" : fmt::format(" at {}", plan_.address);
}

/// Why the caller is none of our ranks.
std::optional<Rendezvous::Objection> Rendezvous::objection_to(const Claim& claim) {
  const std::string said = fmt::format("rank {} of {}", claim.rank, claim.world);
  if (claim.world != plan_.world) {
    return Objection{Rejections::Reason::no_rank,
                     fmt::format("{}; rank 0 says world {}", said, plan_.world)};
  }
  if (claim.rank == 0 || claim.rank >= plan_.world) {
    return Objection{Rejections::Reason::no_rank,
                     fmt::format("{}; ranks 1 to {} may come", said, plan_.world - 1)};
  }
  if (is_here(claim.rank)) {
    return Objection{Rejections::Reason::rank_taken,
                     fmt::format("{}; another process is here as this rank", said)};
  }
  return std::nullopt;
}

/// It is allowed its whole introduction at once: the end of its process is seen after that alone.
void Rendezvous::seat(Admission& admission, PendingPeer peer) {
  const std::uint16_t rank = peer.claim.rank;
  if (const std::optional<Objection> objection = objection_to(peer.claim)) {
    const Error error(ErrorCode::mismatch, rank,
                      fmt::format("rendezvous: found {}", objection->text));
    peer.stream->send(code(ControlKind::failed), encode(error));
    admission.count(objection->reason);
    last_objection_ = objection->text;
    return;
  }
  peer.stream->allow_bodies_up_to(most_blob_bytes());
  peer.stream->notice_silence_within(plan_.keep_alive);
  peer.stream->send(code(ControlKind::welcome), {});
  streams_[rank] = std::move(peer.stream);
}

void Rendezvous::join(std::vector<Endpoint> endpoints) {
  if (endpoints.empty() && !plan_.all_gather) {
    endpoints.push_back(*Endpoint::parse(plan_.address));
  }
  streams_[0] = attempted([&] {
    return join_rank_0({.claim = claim_of(plan_),
                        .credentials = credentials_,
                        .endpoints = std::move(endpoints),
                        .timeout = plan_.timeout,
                        .keep_alive = plan_.keep_alive,
                        .stop = plan_.stop});
  });
}

std::vector<Blob> Rendezvous::gather(std::span<const std::uint8_t> mine, std::string_view what,
                                     const Meanwhile& meanwhile) {
  obey();
  timer_.look(Clock::now());
  timer_.renew();
  if (plan_.rank == 0) {
    return collect(mine, what, meanwhile);
  }
  streams_[0]->send(code(ControlKind::blob), mine);
  const ControlFrame frame = await(0, {ControlKind::blobs, what}, meanwhile);
  return split_blobs(frame.body, plan_.world);
}

/// So that one frame holds all ranks' blobs, each with its length.
std::uint32_t Rendezvous::most_blob_bytes() const {
  return static_cast<std::uint32_t>(FramedStream::kMaxBody / plan_.world - sizeof(wire::be32));
}

std::vector<Blob> Rendezvous::collect(std::span<const std::uint8_t> mine, std::string_view what,
                                      const Meanwhile& meanwhile) {
  std::vector<Blob> blobs(plan_.world);
  blobs[0].assign(mine.begin(), mine.end());
  for (std::uint16_t rank = 1; rank < plan_.world; ++rank) {
    streams_[rank]->allow_bodies_up_to(most_blob_bytes());
    blobs[rank] = await(rank, {ControlKind::blob, what}, meanwhile).body;
  }
  const Blob all = join_blobs(blobs);
  for (std::uint16_t rank = 1; rank < plan_.world; ++rank) {
    streams_[rank]->send(code(ControlKind::blobs), all);
  }
  for (std::uint16_t rank = 1; rank < plan_.world; ++rank) {
    finish_sending(rank, what, meanwhile);
  }
  return blobs;
}

/// What waits here is lost when this rank ends.
void Rendezvous::finish_sending(std::uint16_t to, std::string_view what,
                                const Meanwhile& meanwhile) {
  while (streams_[to]->flush(), streams_[to]->has_backlog()) {
    wait_for(to, fmt::format("did not take every rank's part of {}", what), meanwhile);
  }
}

ControlFrame Rendezvous::await(std::uint16_t from, const Due& due, const Meanwhile& meanwhile) {
  FramedStream& stream = *streams_[from];
  while (true) {
    look_at_others();
    stream.flush();
    if (std::optional<ControlFrame> frame = stream.receive()) {
      if (frame->kind == code(ControlKind::failed)) {
        abandon(decode_error(frame->body, {from, plan_.world}));
      }
      if (frame->kind == code(due.kind)) {
        return std::move(*frame);
      }
      abandon(Error(ErrorCode::transport_failure, from,
                    fmt::format("rendezvous: rank {} sent a frame of kind {}; due is {}", from,
                                frame->kind, code(due.kind))));
    }
    wait_for(from, fmt::format("did not send {}", due.what), meanwhile);
  }
}

/// For a while. `failing` says what the rank does not do.
void Rendezvous::wait_for(std::uint16_t rank, std::string_view failing,
                          const Meanwhile& meanwhile) {
  const FramedStream& stream = *streams_[rank];
  if (!stream.is_open()) {
    abandon(death_of(rank));
  }
  obey();
  timer_.look(Clock::now());
  if (timer_.is_over(plan_.rank == 0 ? std::chrono::milliseconds(0) : kOthersSlack)) {
    abandon(Error(
        ErrorCode::rendezvous_timeout, rank,
        fmt::format("rendezvous: rank {} {} within {} ms", rank, failing, plan_.timeout.count())));
  }
  if (meanwhile) {
    meanwhile();
  }
  stream.wait(Clock::now() + (meanwhile ? kMeanwhilePeriod : StallTimer::kLookPeriod));
}

} // namespace weir::host
