// SPDX-License-Identifier: BSD-3-Clause
#include "host/bootstrap/rendezvous.hpp"

#include "host/bootstrap/stall_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <poll.h>
#include <stdexcept>

namespace weir::host {
namespace {

constexpr auto kMeanwhilePeriod = std::chrono::milliseconds(1);
// More time for rank 0, which knows best who is missing.
constexpr auto kSlack = std::chrono::seconds(1);

/// Waits for bytes on the stream.
void wait_readable(const FramedStream& stream, std::chrono::milliseconds timeout) {
  const short events = static_cast<short>(POLLIN | (stream.has_backlog() ? POLLOUT : 0));
  pollfd entry{stream.descriptor(), events, 0};
  poll(&entry, 1, milliseconds_left(Clock::now() + timeout));
}

/// Returns what `attempt` returns. Turns a system error into the rendezvous's error.
template <typename Attempt>
auto attempted(Attempt&& attempt) {
  try {
    return attempt();
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
    : plan_(plan), timer_(plan.timeout, Clock::now()), streams_(plan.world) {
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

void Rendezvous::admit_all() {
  Admission admission =
      attempted([&] { return Admission(listen_at(*Endpoint::parse(plan_.address))); });
  while (const std::optional<std::uint16_t> missing = first_missing()) {
    const Deadline look = Clock::now() + StallTimer::kLookPeriod;
    std::optional<PendingPeer> peer = attempted([&] { return admission.next(look); });
    timer_.look(Clock::now());
    if (peer) {
      seat(std::move(*peer));
    } else if (timer_.is_over()) {
      give_up_on(*missing);
    }
  }
}

/// A rank that came and closed counts as missing: another process may still come in its place.
std::optional<std::uint16_t> Rendezvous::first_missing() {
  std::optional<std::uint16_t> first;
  for (std::uint16_t rank = plan_.world - 1; rank > 0; --rank) {
    if (streams_[rank]) {
      streams_[rank]->read_available();
    }
    if (!streams_[rank] || !streams_[rank]->is_open()) {
      streams_[rank].reset();
      first = rank;
    }
  }
  return first;
}

void Rendezvous::give_up_on(std::uint16_t first_missing) {
  const std::string refusal =
      last_refusal_.empty() ? "" : fmt::format("; turned away was one that said {}", last_refusal_);
  abandon(Error(ErrorCode::rendezvous_timeout, first_missing,
                fmt::format("rendezvous at {}: {} of {} did not come within {} ms{}", plan_.address,
                            missing_ranks(), plan_.world, plan_.timeout.count(), refusal)));
}

/// Why the peer is none of our ranks. Empty when it is one.
std::string Rendezvous::objection_to(const PendingPeer& peer) const {
  const std::string claim = fmt::format("rank {} of {}", peer.rank, peer.world);
  if (peer.world != plan_.world) {
    return fmt::format("{}; rank 0 says world {}", claim, plan_.world);
  }
  if (peer.rank == 0 || peer.rank >= plan_.world) {
    return fmt::format("{}; ranks 1 to {} may come", claim, plan_.world - 1);
  }
  return {};
}

void Rendezvous::seat(PendingPeer peer) {
  const std::uint16_t rank = peer.rank;
  const auto dismiss = [rank](FramedStream& stream, const std::string& text) {
    const Error error(ErrorCode::mismatch, rank, text);
    stream.send(code(ControlKind::failed), encode(error));
  };
  const std::string objection = objection_to(peer);
  if (!objection.empty()) {
    dismiss(*peer.stream, fmt::format("rendezvous: found {}", objection));
    last_refusal_ = objection;
    return;
  }
  if (streams_[rank]) {
    dismiss(*streams_[rank],
            fmt::format("rendezvous: another process came as rank {} and took its place", rank));
  }
  streams_[rank] = std::move(peer.stream);
}

void Rendezvous::join() {
  std::string cause;
  Socket socket = connect_until(*Endpoint::parse(plan_.address),
                                deadline_after(Clock::now(), plan_.timeout), cause);
  if (!socket) {
    throw Error(ErrorCode::rendezvous_timeout, 0,
                fmt::format("rendezvous at {}: rank 0 was not reached within {} ms: {}",
                            plan_.address, plan_.timeout.count(), cause));
  }
  streams_[0] = std::make_unique<FramedStream>(std::move(socket));
  ask_admission(*streams_[0], plan_.rank, plan_.world);
  answer_challenge(*streams_[0], await(0, ControlKind::challenge, {}));
}

std::vector<Blob> Rendezvous::gather(std::span<const std::uint8_t> mine,
                                     const Meanwhile& meanwhile) {
  timer_.look(Clock::now());
  timer_.renew();
  if (plan_.rank == 0) {
    return collect(mine, meanwhile);
  }
  streams_[0]->send(code(ControlKind::blob), mine);
  const ControlFrame frame = await(0, ControlKind::blobs, meanwhile);
  return split_blobs(frame.body, plan_.world);
}

std::vector<Blob> Rendezvous::collect(std::span<const std::uint8_t> mine,
                                      const Meanwhile& meanwhile) {
  std::vector<Blob> blobs(plan_.world);
  blobs[0].assign(mine.begin(), mine.end());
  for (std::uint16_t rank = 1; rank < plan_.world; ++rank) {
    blobs[rank] = await(rank, ControlKind::blob, meanwhile).body;
  }
  const Blob all = join_blobs(blobs);
  for (std::uint16_t rank = 1; rank < plan_.world; ++rank) {
    streams_[rank]->send(code(ControlKind::blobs), all);
  }
  return blobs;
}

ControlFrame Rendezvous::await(std::uint16_t from, ControlKind kind, const Meanwhile& meanwhile) {
  FramedStream& stream = *streams_[from];
  while (true) {
    stream.flush();
    if (std::optional<ControlFrame> frame = stream.receive()) {
      if (frame->kind == code(ControlKind::failed)) {
        abandon(decode_error(frame->body));
      }
      if (frame->kind == code(kind)) {
        return std::move(*frame);
      }
      abandon(Error(ErrorCode::transport_failure, from,
                    fmt::format("rendezvous: rank {} sent a frame of kind {}; due is {}", from,
                                frame->kind, code(kind))));
    }
    if (!stream.is_open()) {
      abandon(Error(ErrorCode::peer_died, from,
                    fmt::format("rendezvous: rank {} closed its connection", from)));
    }
    timer_.look(Clock::now());
    if (timer_.is_over(plan_.rank == 0 ? std::chrono::milliseconds(0) : kSlack)) {
      abandon(Error(ErrorCode::rendezvous_timeout, from,
                    fmt::format("rendezvous: rank {} sent nothing within {} ms", from,
                                plan_.timeout.count())));
    }
    if (meanwhile) {
      meanwhile();
    }
    wait_readable(stream, meanwhile ? kMeanwhilePeriod : StallTimer::kLookPeriod);
  }
}

} // namespace weir::host
