// SPDX-License-Identifier: BSD-3-Clause
#include "worker_buffers.hpp"

namespace weir::app {

std::uint16_t shares_of(host::CallKind kind, std::uint16_t world) {
  const bool is_shared =
      kind == host::CallKind::all_gather || kind == host::CallKind::reduce_scatter;
  return is_shared ? world : std::uint16_t{1};
}

CallBuffers::CallBuffers(const host::Call& call, const host::Place& place, Placement placement,
                         std::size_t whole)
    : whole_(call.kind == host::CallKind::barrier ? 0 : whole) {
  const std::uint16_t shares = shares_of(call.kind, place.world);
  const std::size_t part = whole_.size() / shares;
  std::span<std::byte> ours = std::span(whole_).subspan(shares == 1 ? 0 : place.rank * part, part);
  if (placement == Placement::out_of_place && call.kind != host::CallKind::broadcast) {
    other_.resize(part);
    ours = other_;
  }
  input_ = call.kind == host::CallKind::all_gather ? ours : std::span(whole_);
  result_ = call.kind == host::CallKind::all_gather ? std::span(whole_) : ours;
  if (call.kind == host::CallKind::reduce && place.rank != call.root) {
    result_ = {};
  }
}

} // namespace weir::app
