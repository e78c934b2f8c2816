// SPDX-License-Identifier: BSD-3-Clause
#include "host/rendezvous/rendezvous.hpp"

#include "host/base/host_addresses.hpp"
#include "host/base/random_bytes.hpp"
#include "host/rendezvous/joining.hpp"

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

} // namespace

Rendezvous::Rendezvous(const RendezvousPlan& plan)
    : plan_(plan), credentials_(plan.credentials), timer_(plan.timeout, Clock::now()),
      streams_(plan.world) {
  if (plan_.rank == 0) {
    admit_all();
  } else {
    join();
  }
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

/// With an all-gather, also tells the other ranks where it listens, or that it cannot.
Socket Rendezvous::open_listener() {
  if (!plan_.all_gather) {
    return listen_at(*Endpoint::parse(plan_.address));
  }
  Socket listener;
  RendezvousPoint place;
  try {
    listener =
        plan_.address.empty() ? listen_everywhere() : listen_at(*Endpoint::parse(plan_.address));
    place = invite(listener);
  } catch (const std::runtime_error& error) {
    share_failure(plan_.all_gather, claim(), error.what());
    throw;
  }
  adopt(share_rendezvous_point(plan_.all_gather, claim(), place));
  return listener;
}

RendezvousPoint Rendezvous::invite(const Socket& listener) const {
  const auto secret = random_bytes<32>();
  const std::string port = std::to_string(port_of(listener));
  RendezvousPoint place{{}, std::string(secret.begin(), secret.end())};
  const std::optional<Endpoint> given = Endpoint::parse(plan_.address);
  if (given && !is_wildcard(given->host)) {
    place.endpoints.push_back({given->host, port});
    return place;
  }
  for (const std::string& address : announced(read_host_addresses(), plan_.preferred_ip)) {
    place.endpoints.push_back({address, port});
  }
  return place;
}

/// The job's own secret is the better one: the all-gather may be overheard.
void Rendezvous::adopt(const RendezvousPoint& place) {
  if (credentials_.secret.empty()) {
    credentials_.secret = place.secret;
  }
}

void Rendezvous::admit_all() {
  Socket listener = attempted([&] { return open_listener(); }); // may change the credentials
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
  }
  callers_turned_away_ = admission.rejections().total();
}

/// A rank that came and closed counts as missing: another process may still come in its place.
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
  if (stream) {
    stream->read_available();
  }
  if (stream && !stream->is_open()) {
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

void Rendezvous::join() {
  std::vector<Endpoint> endpoints;
  if (plan_.all_gather) {
    const RendezvousPoint place = share_rendezvous_point(plan_.all_gather, claim(), {});
    adopt(place);
    endpoints = place.endpoints;
  } else {
    endpoints.push_back(*Endpoint::parse(plan_.address));
  }
  streams_[0] = attempted([&] {
    return join_rank_0({claim(), credentials_, endpoints, plan_.timeout, plan_.keep_alive});
  });
}

std::vector<Blob> Rendezvous::gather(std::span<const std::uint8_t> mine, std::string_view what,
                                     const Meanwhile& meanwhile) {
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
    abandon(Error(ErrorCode::peer_died, rank,
                  fmt::format("rendezvous: rank {}: {}", rank, stream.why_closed())));
  }
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
