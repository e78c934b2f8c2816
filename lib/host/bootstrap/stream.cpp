// SPDX-License-Identifier: BSD-3-Clause
#include "host/bootstrap/stream.hpp"

#include "wire/big_endian.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace weir::host {
namespace {

constexpr std::uint32_t kMagic = 0x5743544c; // "WCTL"
constexpr auto kRetryPause = std::chrono::milliseconds(20);

struct FrameHeader {
  wire::be32 magic;
  std::uint8_t kind;
  wire::be32 body_bytes;
};

static_assert(sizeof(FrameHeader) == 9);

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses resolve(const Endpoint& endpoint, int flags, std::string& cause) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(endpoint.host.c_str(), endpoint.port.c_str(), &hints, &list);
  if (error != 0) {
    cause = gai_strerror(error);
    return nullptr;
  }
  return Addresses(list);
}

bool wait_for(int descriptor, short events, Deadline deadline) {
  pollfd entry{descriptor, events, 0};
  return poll(&entry, 1, milliseconds_left(deadline)) == 1;
}

Socket stream_socket(const addrinfo& address) {
  return Socket(
      [&] { return ::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
}

Socket try_connect(const addrinfo& address, Deadline deadline, std::string& cause) {
  Socket socket = stream_socket(address);
  if (!socket) {
    cause = std::strerror(errno);
    return {};
  }
  if (connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) {
    return socket;
  }
  if (errno != EINPROGRESS || !wait_for(socket.get(), POLLOUT, deadline)) {
    cause = errno == EINPROGRESS ? "no answer" : std::strerror(errno);
    return {};
  }
  int error = 0;
  socklen_t length = sizeof(error);
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) {
    cause = std::strerror(error);
    return {};
  }
  return socket;
}

} // namespace

Deadline deadline_after(Deadline start, std::chrono::milliseconds timeout) {
  const auto most = std::chrono::floor<std::chrono::milliseconds>(Deadline::max() - start);
  return timeout < most ? start + std::max(timeout, std::chrono::milliseconds(0)) : Deadline::max();
}

int milliseconds_left(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

Socket::~Socket() {
  if (descriptor_ >= 0 && birthplace_.is_here()) {
    close_unshared(descriptor_);
  }
}

FramedStream::FramedStream(Socket socket, std::uint32_t max_body)
    : socket_(std::move(socket)), max_body_(max_body) {
  const int flags = fcntl(socket_.get(), F_GETFL);
  fcntl(socket_.get(), F_SETFL, flags | O_NONBLOCK);
  const int on = 1;
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

void FramedStream::send(std::uint8_t kind, std::span<const std::uint8_t> body) {
  FrameHeader header{wire::be32(kMagic), kind, wire::be32(static_cast<std::uint32_t>(body.size()))};
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&header);
  outgoing_.insert(outgoing_.end(), bytes, bytes + sizeof(header));
  outgoing_.insert(outgoing_.end(), body.begin(), body.end());
  flush();
}

void FramedStream::flush() {
  while (!outgoing_.empty()) {
    std::array<std::uint8_t, 16384> chunk;
    const std::size_t count = std::min(chunk.size(), outgoing_.size());
    std::copy_n(outgoing_.begin(), count, chunk.begin());
    const ssize_t sent = ::send(socket_.get(), chunk.data(), count, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EAGAIN || errno == EINTR) {
        return;
      }
      outgoing_.clear(); // the reading side reports the end, after it has read what came before it
      return;
    }
    outgoing_.erase(outgoing_.begin(), outgoing_.begin() + sent);
  }
}

void FramedStream::read_available() {
  std::array<std::uint8_t, 16384> chunk;
  while (open_ && incoming_.size() < sizeof(FrameHeader) + max_body_) {
    const ssize_t count = recv(socket_.get(), chunk.data(), chunk.size(), 0);
    if (count > 0) {
      incoming_.insert(incoming_.end(), chunk.begin(), chunk.begin() + count);
      continue;
    }
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
      return;
    }
    open_ = false;
  }
}

std::optional<ControlFrame> FramedStream::receive() {
  read_available();
  if (incoming_.size() < sizeof(FrameHeader)) {
    return std::nullopt;
  }
  const FrameHeader header = wire::view_as<FrameHeader>(incoming_.data());
  const std::uint32_t body_bytes = header.body_bytes.get();
  if (header.magic.get() != kMagic || body_bytes > max_body_) {
    open_ = false;
    incoming_.clear();
    return std::nullopt;
  }
  if (incoming_.size() < sizeof(FrameHeader) + body_bytes) {
    return std::nullopt;
  }
  const auto begin = incoming_.begin() + sizeof(FrameHeader);
  const auto end = begin + body_bytes;
  ControlFrame frame{header.kind, {begin, end}};
  incoming_.erase(incoming_.begin(), end);
  return frame;
}

std::optional<Endpoint> Endpoint::parse(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size()) {
    return std::nullopt;
  }
  Endpoint endpoint{text.substr(0, colon), text.substr(colon + 1)};
  const bool is_bracketed = endpoint.host.front() == '[' && endpoint.host.back() == ']';
  if (is_bracketed) {
    endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  }
  const bool is_number =
      endpoint.port.size() <= 5 && std::all_of(endpoint.port.begin(), endpoint.port.end(),
                                               [](char c) { return c >= '0' && c <= '9'; });
  if (endpoint.host.empty() || !is_number || std::stoi(endpoint.port) > 65535) {
    return std::nullopt;
  }
  return endpoint;
}

Socket listen_at(const Endpoint& endpoint) {
  std::string cause;
  const Addresses list = resolve(endpoint, AI_PASSIVE, cause);
  for (const addrinfo* address = list.get(); address != nullptr; address = address->ai_next) {
    Socket socket = stream_socket(*address);
    const int on = 1;
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (socket && bind(socket.get(), address->ai_addr, address->ai_addrlen) == 0 &&
        listen(socket.get(), SOMAXCONN) == 0) {
      return socket;
    }
    cause = std::strerror(errno);
  }
  throw std::runtime_error(
      fmt::format("cannot listen at {}:{}: {}", endpoint.host, endpoint.port, cause));
}

Socket accept_waiting(const Socket& listener) {
  Socket socket(
      [&] { return accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); });
  if (!socket && (errno == EMFILE || errno == ENFILE)) {
    throw std::runtime_error(fmt::format("cannot accept a connection: {}", std::strerror(errno)));
  }
  return socket;
}

Socket connect_until(const Endpoint& endpoint, Deadline deadline, std::string& cause) {
  while (true) {
    const Addresses list = resolve(endpoint, 0, cause);
    for (const addrinfo* address = list.get(); address != nullptr; address = address->ai_next) {
      Socket socket = try_connect(*address, deadline, cause);
      if (socket) {
        return socket;
      }
    }
    if (Clock::now() + kRetryPause >= deadline) {
      return {};
    }
    std::this_thread::sleep_for(kRetryPause);
  }
}

} // namespace weir::host
