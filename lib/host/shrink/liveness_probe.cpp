// SPDX-License-Identifier: BSD-3-Clause
#include "host/shrink/liveness_probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>

namespace weir::host {

LivenessProbe::LivenessProbe(const std::vector<Endpoint>& endpoints,
                             std::chrono::milliseconds patience) {
  for (const Endpoint& endpoint : endpoints) {
    attempts_.push_back(std::make_unique<Attempt>(endpoint, patience));
  }
}

LivenessProbe::State LivenessProbe::check() {
  std::array<unsigned, 4> counts{}; // of the attempts' states
  for (const std::unique_ptr<Attempt>& attempt : attempts_) {
    ++counts[static_cast<std::size_t>(attempt->check())];
  }
  for (const State state : {State::alive, State::trying, State::silent}) {
    if (counts[static_cast<std::size_t>(state)] != 0) {
      return state;
    }
  }
  return State::ended;
}

std::pair<Endpoint, Socket> LivenessProbe::take() {
  const auto alive = std::ranges::find(attempts_, State::alive,
                                       [](const auto& attempt) { return attempt->state(); });
  return (*alive)->take();
}

LivenessProbe::Attempt::Attempt(const Endpoint& endpoint, std::chrono::milliseconds patience)
    : endpoint_(endpoint), patience_(patience) {
  begin();
}

LivenessProbe::Attempt::~Attempt() {
  if (socket_) {
    withdraw(std::move(socket_));
  }
}

LivenessProbe::State LivenessProbe::Attempt::check() {
  switch (state_) {
  case State::trying:
    return state_ = finish();
  case State::alive:
    return state_ = watch();
  case State::ended:
  case State::silent:
    break;
  }
  return state_;
}

void LivenessProbe::Attempt::begin() {
  deadline_ = deadline_after(Clock::now(), patience_);
  connect();
}

void LivenessProbe::Attempt::connect() {
  int error = 0;
  socket_ = connecting_to(endpoint_, error);
  state_ = socket_ ? State::trying : judge(error);
}

LivenessProbe::State LivenessProbe::Attempt::finish() {
  const State in_vain = Clock::now() < deadline_ ? State::trying : State::silent;
  pollfd entry{socket_.get(), POLLOUT, 0};
  if (poll(&entry, 1, 0) <= 0) {
    return in_vain;
  }
  const int error = outcome_of(socket_);
  if (error == ECONNRESET && in_vain == State::trying) { // the listener closed just now
    connect();
    return state_;
  }
  if (error == 0) {
    notice_silence_within(socket_, patience_);
  }
  return judge(error);
}

/// A kernel that refuses is alive, and its process is not. What this process lacks says nothing of
/// the other one.
LivenessProbe::State LivenessProbe::Attempt::judge(int error) {
  switch (error) {
  case 0:
    return State::alive;
  case ECONNREFUSED:
    return State::ended;
  case EMFILE:
  case ENFILE:
  case ENOBUFS:
  case ENOMEM:
    throw std::runtime_error(
        fmt::format("cannot connect to {}: {}", endpoint_.text(), std::strerror(error)));
  default:
    return State::silent;
  }
}

LivenessProbe::State LivenessProbe::Attempt::watch() {
  char byte = 0;
  const ssize_t count = recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR))) {
    return State::alive;
  }
  begin();
  return state_;
}

} // namespace weir::host
