// SPDX-License-Identifier: BSD-3-Clause
#include "host/region/nic_region_link.hpp"

#include "host/region/region_failure.hpp"
#include "host/transport/frame_pump.hpp"

#include <algorithm>
#include <utility>

namespace weir::host {
namespace {

using endpoint::SendKind;

std::span<const std::uint8_t> memory_of(const endpoint::SendRequest& work) {
  return work.kind == SendKind::read ? work.target : work.data;
}

bool is_success(const NicCompletion& completion) {
  return completion.status == endpoint::Status::success;
}

} // namespace

NicRegionLink::NicRegionLink(const RegionLinkPlan& plan, Nic& nic, std::uint8_t gid_index)
    : plan_(plan), staging_(plan.send_depth * kStagedBytes),
      connection_(nic.open_connection({.exposed = plan.memory,
                                       .staging = staging_,
                                       .path_mtu = plan.path_mtu,
                                       .send_depth = plan.send_depth,
                                       .receive_depth = plan.receive_depth,
                                       .reads = plan.reads},
                                      gid_index)) {
  member_ = {.ip = connection_->ip(),
             .queue_pair = connection_->queue_pair(),
             .first_psn = draw_psn(),
             .base = reinterpret_cast<std::uint64_t>(plan.memory.data()),
             .key = connection_->exposed_key(),
             .ack_timeout = plan.ack_timeout_exponent};
}

/// Receives are there before the first immediate can come.
void NicRegionLink::connect(const MadeRegion& region, const RegionEnd& end) {
  region_ip_ = region.ip;
  for (std::uint32_t i = 0; i < plan_.receive_depth; ++i) {
    connection_->post_receive();
  }
  connection_->connect({.ip = region.ip,
                        .queue_pair = end.queue_pair,
                        .first_psn = end.first_psn,
                        .own_psn = member_.first_psn,
                        .ack_timeout = plan_.ack_timeout_exponent,
                        .retry_count = plan_.retry_count});
}

/// A device that fails ends the connection, whoever has called.
template <typename Action>
void NicRegionLink::attempt(Action action) {
  if (failure_ || is_closed_) {
    return;
  }
  try {
    action();
  } catch (const Error& error) {
    failure_ = error;
  }
}

bool NicRegionLink::post(const endpoint::SendRequest& request) {
  if (requests_.size() == plan_.send_depth) {
    return false;
  }
  const std::span<const std::uint8_t> memory = memory_of(request);
  requests_.push_back(
      {.work = request, .key = memory.empty() ? std::nullopt : connection_->key_of(memory)});
  attempt([&] { feed(); });
  return true;
}

void NicRegionLink::post_receive() {
  attempt([&] { connection_->post_receive(); });
}

/// As many pieces as there is room for.
void NicRegionLink::feed() {
  while (whole_ < requests_.size() && pieces_.size() < plan_.send_depth) {
    post_piece(requests_[whole_]);
  }
}

/// Pieces end in the order of their posting.
std::span<std::uint8_t> NicRegionLink::slot_of(std::uint64_t piece) {
  return std::span(staging_).subspan(piece % plan_.send_depth * kStagedBytes, kStagedBytes);
}

/// An immediate goes with the last piece: behind all of its write.
void NicRegionLink::post_piece(Request& request) {
  const std::size_t most = request.key ? kPieceBytes : kStagedBytes;
  const std::size_t left = memory_of(request.work).size() - request.posted;
  const std::size_t bytes = std::min({left, most, std::size_t{connection_->longest_message()}});
  Piece piece{.is_last = bytes == left};
  endpoint::SendRequest work = request.work;
  work.remote_address += request.posted;
  if (work.kind == SendKind::write_immediate && !piece.is_last) {
    work.kind = SendKind::write;
  }
  const std::span<std::uint8_t> slot =
      slot_of(pieces_ended_ + pieces_.size()).first(std::min(bytes, kStagedBytes));
  if (work.kind == SendKind::read) {
    work.target = work.target.subspan(request.posted, bytes);
    if (!request.key) {
      piece.target = std::exchange(work.target, slot);
    }
  } else {
    work.data = work.data.subspan(request.posted, bytes);
    if (!request.key) {
      std::ranges::copy(work.data, slot.begin());
      work.data = slot;
    }
  }
  connection_->post(work, request.key ? *request.key : connection_->key_of(slot).value_or(0));
  request.posted += bytes;
  pieces_.push_back(piece);
  whole_ += piece.is_last ? 1 : 0;
}

bool NicRegionLink::poll(RegionListener& listener) {
  const std::span<const NicCompletion> done = connection_->poll();
  for (const NicCompletion& completion : done) {
    if (!is_success(completion)) {
      fail(completion);
    } else if (completion.kind == endpoint::CompletionKind::receive_write_immediate) {
      listener.notified(completion.immediate);
    } else {
      take_send(listener);
    }
  }
  attempt([&] { feed(); });
  return !done.empty();
}

void NicRegionLink::take_send(RegionListener& listener) {
  const Piece piece = pieces_.front();
  if (!piece.target.empty()) {
    std::ranges::copy(slot_of(pieces_ended_).first(piece.target.size()), piece.target.begin());
  }
  pieces_.pop_front();
  ++pieces_ended_;
  if (piece.is_last) {
    requests_.pop_front();
    --whole_;
    listener.completed(); // may post
  }
}

/// The first request that fails tells why; a flushed one may be polled before it.
void NicRegionLink::fail(const NicCompletion& completion) {
  if (failure_ && !is_flush_) {
    return;
  }
  is_flush_ = completion.status == endpoint::Status::flushed;
  failure_ = region_failure(completion.status, region_ip_, completion.device_said);
}

void NicRegionLink::close() {
  is_closed_ = true;
  connection_->close();
}

/// A failed connection too has events, which would else wake whoever sleeps again and again.
bool NicRegionLink::arm() {
  if (is_closed_) {
    return true;
  }
  try {
    return connection_->arm();
  } catch (const Error& error) {
    failure_ = failure_.value_or(error);
    return true;
  }
}

} // namespace weir::host
