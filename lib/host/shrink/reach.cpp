// SPDX-License-Identifier: BSD-3-Clause
#include "host/shrink/reach.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>

namespace weir::host {

Reach::Reach(const std::vector<Endpoint>& endpoints, std::chrono::milliseconds patience) {
  for (const Endpoint& endpoint : endpoints) {
    probes_.push_back(std::make_unique<Probe>(endpoint, patience));
  }
}

Reach::State Reach::look() {
  std::array<unsigned, 4> counts{}; // of the probes' states
  for (const std::unique_ptr<Probe>& probe : probes_) {
    ++counts[static_cast<std::size_t>(probe->look())];
  }
  for (const State state : {State::alive, State::trying, State::silent}) {
    if (counts[static_cast<std::size_t>(state)] != 0) {
      return state;
    }
  }
  return State::ended;
}

std::pair<Endpoint, Socket> Reach::take() {
  const auto alive =
      std::ranges::find(probes_, State::alive, [](const auto& probe) { return probe->state(); });
  return (*alive)->take();
}

Reach::Probe::Probe(const Endpoint& endpoint, std::chrono::milliseconds patience)
    : endpoint_(endpoint), patience_(patience) {
  begin();
}

Reach::Probe::~Probe() {
  if (socket_) {
    withdraw(std::move(socket_));
  }
}

Reach::State Reach::Probe::look() {
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

void Reach::Probe::begin() {
  deadline_ = deadline_after(Clock::now(), patience_);
  connect();
}

void Reach::Probe::connect() {
  int error = 0;
  socket_ = connecting_to(endpoint_, error);
  state_ = socket_ ? State::trying : judge(error);
}

Reach::State Reach::Probe::finish() {
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
Reach::State Reach::Probe::judge(int error) {
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

Reach::State Reach::Probe::watch() {
  char byte = 0;
  const ssize_t count = recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR))) {
    return State::alive;
  }
  begin();
  return state_;
}

} // namespace weir::host
