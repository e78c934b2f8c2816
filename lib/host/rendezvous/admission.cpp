// SPDX-License-Identifier: BSD-3-Clause
#include "host/rendezvous/admission.hpp"

#include "host/base/control_note.hpp"
#include "random/random_bytes.hpp"
#include "wire/address.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <map>
#include <poll.h>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace weir::host {
namespace {

Rejections::Reason kind_of(Refusal refusal) {
  switch (refusal) {
  case Refusal::another_job:
    return Rejections::Reason::of_another_job;
  case Refusal::another_secret:
    return Rejections::Reason::with_another_secret;
  case Refusal::secret_missing:
    return Rejections::Reason::without_secret;
  case Refusal::secret_unexpected:
    return Rejections::Reason::with_unexpected_secret;
  }
  return Rejections::Reason::stranger;
}

} // namespace

std::string network_of(std::string_view host) {
  constexpr std::size_t kNetworkBytes = 8;
  const std::optional<wire::IpAddress> ip = wire::parse_ip(host.substr(0, host.find('%')));
  return ip && !ip->is_v4() ? std::string(ip->bytes.begin(), ip->bytes.begin() + kNetworkBytes)
                            : std::string(host);
}

std::size_t who_gives_way(std::span<const WaitingCaller> callers) {
  std::map<std::string_view, std::size_t> of_network;
  std::map<std::string_view, std::size_t> of_host;
  for (const WaitingCaller& caller : callers) {
    ++of_network[caller.network];
    ++of_host[caller.host];
  }
  const auto crowd = [&](const WaitingCaller& caller) {
    return std::pair(of_network[caller.network], of_host[caller.host]);
  };
  const auto most = crowd(*std::ranges::max_element(callers, {}, crowd));
  const auto may_go = [&](const WaitingCaller& caller) { return crowd(caller) == most; };
  const auto is_silent = [&](const WaitingCaller& caller) {
    return !caller.has_asked && may_go(caller);
  };
  const auto silent = std::ranges::find_if(callers, is_silent);
  const auto found = silent != callers.end() ? silent : std::ranges::find_if(callers, may_go);
  return static_cast<std::size_t>(found - callers.begin());
}

std::optional<PendingPeer> Admission::next(Deadline deadline) {
  while (true) {
    open_to_callers();
    if (std::optional<PendingPeer> peer = hear_callers()) {
      return peer;
    }
    if (Clock::now() >= deadline) {
      return std::nullopt;
    }
    wait(deadline);
  }
}

void Admission::wait(Deadline deadline) const {
  std::vector<pollfd> entries{{listener_.get(), POLLIN, 0}};
  for (const auto& caller : callers_) {
    entries.push_back({caller.stream->descriptor(), POLLIN, 0});
  }
  poll(entries.data(), entries.size(), milliseconds_left(deadline));
}

/// Accepts connections while there is room. When full, accepts one in place of another and
/// returns, so that all are heard before the next.
void Admission::open_to_callers() {
  bool has_room = true;
  while (has_room) {
    const std::size_t before = callers_.size();
    Socket socket = accept();
    if (!socket) {
      return;
    }
    has_room = callers_.size() == before && before + 1 < kMaxCallers;
    if (callers_.size() == kMaxCallers) {
      forget_one();
    }
    assert(callers_.size() < kMaxCallers);
    auto stream = std::make_unique<FramedStream>(std::move(socket), kMostJoinBytes);
    std::string host = stream->peer_host();
    std::string network = network_of(host);
    callers_.push_back({.stream = std::move(stream),
                        .host = std::move(host),
                        .network = std::move(network),
                        .deadline = deadline_after(Clock::now(), patience_),
                        .claim = std::nullopt});
  }
}

/// Gives up a caller when the process can open no more descriptors.
Socket Admission::accept() {
  try {
    return accept_waiting(listener_);
  } catch (const std::runtime_error&) {
    if (callers_.empty()) {
      throw;
    }
    forget_one();
    return accept_waiting(listener_);
  }
}

void Admission::forget_one() {
  assert(!callers_.empty());
  std::vector<WaitingCaller> waiting;
  for (const Caller& caller : callers_) {
    waiting.push_back({caller.host, caller.network, caller.claim.has_value()});
  }
  callers_.erase(callers_.begin() + static_cast<std::ptrdiff_t>(who_gives_way(waiting)));
  rejections_.count(Rejections::Reason::stranger);
}

std::optional<PendingPeer> Admission::hear_callers() {
  for (auto entry = callers_.begin(); entry != callers_.end();) {
    const Hearing hearing = hear(*entry);
    if (hearing == Hearing::waiting) {
      ++entry;
      continue;
    }
    Caller caller = std::move(*entry);
    entry = callers_.erase(entry);
    if (hearing == Hearing::met) {
      return PendingPeer{std::move(caller.stream), *caller.claim};
    }
  }
  return std::nullopt;
}

Admission::Hearing Admission::hear(Caller& caller) {
  while (const std::optional<ControlFrame> frame = caller.stream->receive()) {
    const Hearing hearing = caller.claim ? hear_answer(caller, *frame) : hear_join(caller, *frame);
    if (hearing != Hearing::waiting) {
      return hearing;
    }
  }
  const bool may_go_on = caller.stream->is_open() && Clock::now() < caller.deadline;
  return may_go_on ? Hearing::waiting : reject(Rejections::Reason::stranger);
}

Admission::Hearing Admission::reject(Rejections::Reason reason) {
  rejections_.count(reason);
  return Hearing::over;
}

Admission::Hearing Admission::hear_join(Caller& caller, const ControlFrame& frame) {
  if (frame.kind == code(ControlKind::withdrawn)) {
    return Hearing::over; // a rank of ours, it seems, which has found another address
  }
  const std::optional<Claim> claim =
      frame.kind == code(ControlKind::join) ? read_join(frame.body) : std::nullopt;
  if (!claim) {
    return reject(Rejections::Reason::stranger);
  }
  if (const std::optional<Refusal> refusal = objection_to(frame.body, credentials_)) {
    const std::array body{static_cast<std::uint8_t>(*refusal)};
    caller.stream->send(code(ControlKind::refused), body);
    return reject(kind_of(*refusal));
  }
  caller.claim = claim;
  caller.nonce = random_bytes<sizeof(Nonce)>();
  caller.stream->allow_bodies_up_to(sizeof(Nonce));
  caller.stream->send(code(ControlKind::challenge),
                      make_challenge(credentials_, frame.body, caller.nonce));
  if (!credentials_.secret.empty()) {
    const SessionKeys keys = session_keys(credentials_, frame.body, caller.nonce);
    caller.stream->seal(keys.from_rank_0, keys.to_rank_0);
  }
  return Hearing::waiting;
}

Admission::Hearing Admission::hear_answer(Caller& caller, const ControlFrame& frame) {
  const bool is_right =
      frame.kind == code(ControlKind::answer) && std::ranges::equal(frame.body, caller.nonce);
  return is_right ? Hearing::met : reject(Rejections::Reason::stranger);
}

} // namespace weir::host
