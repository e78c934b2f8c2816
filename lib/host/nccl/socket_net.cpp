// SPDX-License-Identifier: BSD-3-Clause
#include "host/nccl/socket_net.hpp"

#include "host/nccl/call.hpp"
#include "host/nccl/own_address.hpp"
#include "random/random_bytes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <functional>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/uio.h>

namespace weir::nccl {
namespace {

static_assert(sizeof(SocketHandle) <= kHandleBytes);
static_assert(sizeof(MessageHeader) == 16);

constexpr std::uint64_t kMagic = 0x3154454e'52494557; // "WEIRNET1" in memory, little-endian
constexpr std::size_t kMostCallers = 64;
constexpr int kSilenceSeconds = 60; // of a machine that is gone

bool is_for_later() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

void set_option(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof(value));
}

void set_options(int socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kSilenceSeconds * 1000);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, kSilenceSeconds / 2);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, kSilenceSeconds / 6);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

socklen_t length_of(const sockaddr_storage& address) {
  return address.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

std::string text_of(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return fmt::format("{}:{}", text.data(), ntohs(v4.sin_port));
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  return fmt::format("[{}]:{}", text.data(), ntohs(v6.sin6_port));
}

sockaddr* general(sockaddr_storage& address) {
  return reinterpret_cast<sockaddr*>(&address);
}

Descriptor stream_socket(int family) {
  return Descriptor(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

/// Writes all of the handle but the token.
Descriptor listen_at_own_address(const std::string& interface, SocketHandle& handle) {
  sockaddr_storage address = own_address(interface);
  Descriptor socket = stream_socket(address.ss_family);
  socklen_t length = length_of(address);
  if (::bind(socket.get(), general(address), length) != 0 ||
      ::listen(socket.get(), kMostCallers) != 0 ||
      getsockname(socket.get(), general(address), &length) != 0) {
    throw Failure(Result::system_error, fmt::format("point-to-point: listen at {}: {}",
                                                    text_of(address), std::strerror(errno)));
  }
  handle = {.magic = kMagic};
  std::memcpy(handle.address.data(), &address, length);
  return socket;
}

} // namespace

SocketRequest* SocketConnection::start(const SocketRequest& request) {
  if (!failure_.empty()) {
    throw Failure(Result::remote_error, failure_);
  }
  if (requests_.size() == kMostRequests) {
    return nullptr;
  }
  SocketRequest* const started = &requests_.emplace_back(request);
  advance();
  return started;
}

std::optional<std::size_t> SocketConnection::test(SocketRequest& request) {
  if (!request.is_done) {
    if (!failure_.empty()) {
      throw Failure(Result::remote_error, failure_);
    }
    advance();
  }
  if (!request.is_done) {
    return {};
  }
  const std::size_t bytes = request.header.bytes;
  requests_.remove_if([&](const SocketRequest& each) { return &each == &request; });
  return bytes;
}

void SocketConnection::fail(const std::string& what) {
  const auto open = std::ranges::count(requests_, false, &SocketRequest::is_done);
  failure_ =
      fmt::format("point-to-point with {}: {}, with {} requests under way", peer_, what, open);
  throw Failure(Result::remote_error, failure_);
}

std::unique_ptr<SendConnection> SendConnection::begin(const SocketHandle& handle) {
  if (handle.magic != kMagic) {
    throw Failure(Result::invalid_argument,
                  "point-to-point: found a handle of another network plug-in; all ranks must "
                  "use Weir, or none: compare their lines at init");
  }
  sockaddr_storage address{};
  std::memcpy(&address, handle.address.data(), handle.address.size());
  auto made = std::make_unique<SendConnection>(stream_socket(address.ss_family), text_of(address));
  made->token_ = handle.token;
  set_options(made->socket());
  if (::connect(made->socket(), general(address), length_of(address)) != 0 &&
      errno != EINPROGRESS) {
    made->fail(std::strerror(errno));
  }
  return made;
}

bool SendConnection::is_ready() {
  if (!is_connected_) {
    pollfd waiting{.fd = socket(), .events = POLLOUT, .revents = 0};
    if (poll(&waiting, 1, 0) == 0) {
      return false;
    }
    if (const int error = error_of_socket(socket())) {
      fail(std::strerror(error));
    }
    is_connected_ = true;
  }
  const ssize_t sent =
      ::send(socket(), token_.data() + token_sent_, token_.size() - token_sent_, MSG_NOSIGNAL);
  if (sent < 0 && !is_for_later()) {
    fail(std::strerror(errno));
  }
  token_sent_ += static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
  return token_sent_ == token_.size();
}

void SendConnection::advance() {
  for (SocketRequest& request : requests()) {
    if (!request.is_done && !send_some(request)) {
      return;
    }
  }
}

/// Whether all of it is the kernel's.
bool SendConnection::send_some(SocketRequest& request) {
  constexpr std::size_t before = sizeof(MessageHeader);
  while (request.moved < before + request.header.bytes) {
    const std::size_t of_header = std::min(request.moved, before);
    const std::size_t of_data = request.moved - of_header;
    std::array<iovec, 2> parts{
        iovec{reinterpret_cast<char*>(&request.header) + of_header, before - of_header},
        iovec{request.data + of_data, request.header.bytes - of_data}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t sent = sendmsg(socket(), &message, MSG_NOSIGNAL);
    if (sent < 0) {
      if (!is_for_later()) {
        fail(std::strerror(errno));
      }
      return false;
    }
    request.moved += static_cast<std::size_t>(sent);
  }
  request.is_done = true;
  return true;
}

std::size_t ReceiveConnection::receive_some(void* to, std::size_t bytes) {
  const ssize_t came = recv(socket(), to, bytes, 0);
  if (came == 0) {
    fail("the peer has closed the connection");
  }
  if (came < 0 && !is_for_later()) {
    fail(std::strerror(errno));
  }
  return static_cast<std::size_t>(std::max<ssize_t>(came, 0));
}

bool ReceiveConnection::take_header() {
  while (header_taken_ < sizeof(header_)) {
    const std::size_t came = receive_some(reinterpret_cast<char*>(&header_) + header_taken_,
                                          sizeof(header_) - header_taken_);
    if (came == 0) {
      return false;
    }
    header_taken_ += came;
  }
  return true;
}

/// The oldest receive with the message's tag; NULL: the program has not started it yet.
SocketRequest* ReceiveConnection::receiver() {
  const auto found = std::ranges::find_if(requests(), [&](const SocketRequest& request) {
    return !request.is_done && request.header.tag == header_.tag;
  });
  if (found == requests().end()) {
    return nullptr;
  }
  if (header_.bytes > found->room) {
    fail(fmt::format("found a message of {} bytes with tag {}; its receive has room for {}",
                     header_.bytes, header_.tag, found->room));
  }
  found->header.bytes = header_.bytes;
  return &*found;
}

void ReceiveConnection::advance() {
  while (std::ranges::any_of(requests(), std::logical_not{}, &SocketRequest::is_done)) {
    if (current_ == nullptr) {
      if (!take_header() || (current_ = receiver()) == nullptr) {
        return;
      }
    }
    while (current_->moved < header_.bytes) {
      const std::size_t came =
          receive_some(current_->data + current_->moved, header_.bytes - current_->moved);
      if (came == 0) {
        return;
      }
      current_->moved += came;
    }
    current_->is_done = true;
    current_ = nullptr;
    header_taken_ = 0;
  }
}

SocketListener::SocketListener(const std::string& interface, SocketHandle& handle)
    : socket_(listen_at_own_address(interface, handle)),
      token_(random_bytes<std::tuple_size_v<Token>>()) {
  handle.token = token_;
}

void SocketListener::take_callers() {
  while (callers_.size() < kMostCallers) {
    sockaddr_storage address{};
    socklen_t length = sizeof(address);
    const int number =
        accept4(socket_.get(), general(address), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (number < 0) {
      return;
    }
    set_options(number);
    callers_.push_back({Descriptor(number), text_of(address)});
  }
}

SocketListener::Hearing SocketListener::hear(Caller& caller) const {
  const ssize_t came = recv(caller.socket.get(), caller.said.data() + caller.taken,
                            caller.said.size() - caller.taken, 0);
  if (came < 0 && is_for_later()) {
    return Hearing::goes_on;
  }
  if (came <= 0) {
    return Hearing::turned_away;
  }
  caller.taken += static_cast<std::size_t>(came);
  if (caller.taken < caller.said.size()) {
    return Hearing::goes_on;
  }
  return caller.said == token_ ? Hearing::is_right : Hearing::turned_away;
}

std::unique_ptr<ReceiveConnection> SocketListener::accept() {
  take_callers();
  // In turn, so that 64 who are silent keep nobody out for ever.
  for (std::size_t left = callers_.size(); left != 0; --left) {
    Caller caller = std::move(callers_.front());
    callers_.pop_front();
    switch (hear(caller)) {
    case Hearing::is_right:
      return std::make_unique<ReceiveConnection>(std::move(caller.socket), std::move(caller.peer));
    case Hearing::goes_on:
      callers_.push_back(std::move(caller));
      break;
    case Hearing::turned_away:
      break;
    }
  }
  if (callers_.size() == kMostCallers) {
    callers_.pop_front();
  }
  return nullptr;
}

} // namespace weir::nccl
