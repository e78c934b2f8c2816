// SPDX-License-Identifier: BSD-3-Clause
#include "host/base/stream.hpp"

#include "host/base/control_note.hpp"
#include "text/list.hpp"
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
#include <unistd.h>

namespace weir::host {
namespace {

constexpr std::uint32_t kMagic = 0x5743544c; // "WCTL"

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

Socket stream_socket(const addrinfo& address) {
  return Socket(
      [&] { return ::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
}

/// The first three are what a keep-alive or an unacknowledged byte ends in.
std::string describe_break(int error) {
  const bool is_out_of_reach = error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
  return fmt::format("{}: {}",
                     is_out_of_reach ? "its machine or the network to it is gone"
                                     : "its connection broke",
                     std::strerror(error));
}

/// An IPv4 address of a socket that takes IPv6 as well is an IPv4 address for us.
std::string host_of(int descriptor, decltype(&getsockname) name_of_end) {
  static constexpr std::string_view kMapped = "::ffff:";
  sockaddr_storage storage{};
  auto* const address = reinterpret_cast<sockaddr*>(&storage);
  socklen_t length = sizeof(storage);
  std::array<char, NI_MAXHOST> text{};
  if (name_of_end(descriptor, address, &length) != 0 ||
      getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return {};
  }
  const std::string host(text.data());
  return host.starts_with(kMapped) ? host.substr(kMapped.size()) : host;
}

void set_option(const Socket& socket, int level, int name, int value) {
  setsockopt(socket.get(), level, name, &value, sizeof(value));
}

int error_of(const Socket& socket) {
  int error = 0;
  socklen_t length = sizeof(error);
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
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
  set_option(socket_, IPPROTO_TCP, TCP_NODELAY, 1);
}

std::string FramedStream::local_host() const {
  return host_of(socket_.get(), getsockname);
}

std::string FramedStream::peer_host() const {
  return host_of(socket_.get(), getpeername);
}

void FramedStream::seal(const Mac& outgoing_key, const Mac& incoming_key) {
  outgoing_seal_.emplace(outgoing_key);
  incoming_seal_.emplace(incoming_key);
}

/// A probe of an idle connection every quarter of the time, later every eighth. With a user
/// timeout, Linux closes at the first probe after it (tcp(7)), so that is an eighth before the end.
void notice_silence_within(const Socket& connection, std::chrono::milliseconds time) {
  static constexpr std::chrono::seconds kLongest{32767}; // between probes, of the kernel
  const auto whole = std::max<std::chrono::milliseconds>(time, FramedStream::kShortestSilence);
  const auto seconds = [](std::chrono::milliseconds span) {
    const auto cut = std::chrono::floor<std::chrono::seconds>(span);
    return static_cast<int>(std::clamp(cut, std::chrono::seconds(1), kLongest).count());
  };
  const int between = seconds(whole / 8);
  set_option(connection, IPPROTO_TCP, TCP_KEEPIDLE, seconds(whole / 4));
  set_option(connection, IPPROTO_TCP, TCP_KEEPINTVL, between);
  set_option(connection, IPPROTO_TCP, TCP_USER_TIMEOUT,
             static_cast<int>(whole.count()) - 1000 * between);
  set_option(connection, SOL_SOCKET, SO_KEEPALIVE, 1);
}

void FramedStream::send(std::uint8_t kind, std::span<const std::uint8_t> body) {
  if (outgoing_.size() > kMostUnsent) {
    close_because(fmt::format("it does not read: {} bytes wait to be sent to it; allowed: {}",
                              outgoing_.size(), kMostUnsent));
    return;
  }
  const FrameHeader header{wire::be32(kMagic), kind,
                           wire::be32(static_cast<std::uint32_t>(body.size()))};
  queue(bytes_of(header));
  queue(body);
  if (outgoing_seal_) {
    queue(outgoing_seal_->next(bytes_of(header), body));
  }
  flush();
}

void FramedStream::queue(ByteView bytes) {
  outgoing_.insert(outgoing_.end(), bytes.begin(), bytes.end());
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

void FramedStream::wait(Deadline deadline) const {
  const auto events = static_cast<short>(POLLIN | (has_backlog() ? POLLOUT : 0));
  pollfd entry{descriptor(), events, 0};
  poll(&entry, 1, milliseconds_left(deadline));
}

void FramedStream::read_available() {
  std::array<std::uint8_t, 16384> chunk;
  while (open_ && incoming_.size() < sizeof(FrameHeader) + max_body_ + code_bytes()) {
    const ssize_t count = recv(socket_.get(), chunk.data(), chunk.size(), 0);
    if (count > 0) {
      incoming_.insert(incoming_.end(), chunk.begin(), chunk.begin() + count);
      continue;
    }
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
      return;
    }
    open_ = false;
    why_closed_ = count == 0 ? "its connection closed" : describe_break(errno);
  }
}

bool FramedStream::holds(std::uint8_t kind) const {
  ByteView left = incoming_;
  while (left.size() >= sizeof(FrameHeader)) {
    const auto& header = wire::view_as<FrameHeader>(left.data());
    const std::size_t bytes = sizeof(FrameHeader) + header.body_bytes.get() + code_bytes();
    if (header.magic.get() != kMagic || bytes > left.size()) {
      return false;
    }
    if (header.kind == kind) {
      return true;
    }
    left = left.subspan(bytes);
  }
  return false;
}

std::optional<ControlFrame> FramedStream::receive() {
  read_available();
  if (incoming_.size() < sizeof(FrameHeader)) {
    return std::nullopt;
  }
  const FrameHeader header = wire::view_as<FrameHeader>(incoming_.data());
  const std::uint32_t body_bytes = header.body_bytes.get();
  if (header.magic.get() != kMagic) {
    return close_because("it sent what is no control frame");
  }
  if (body_bytes > max_body_) {
    return close_because(fmt::format("it sent a control frame of kind {} with {} bytes; allowed: "
                                     "{}",
                                     header.kind, body_bytes, max_body_));
  }
  const std::size_t frame_bytes = sizeof(FrameHeader) + body_bytes + code_bytes();
  if (incoming_.size() < frame_bytes) {
    return std::nullopt;
  }
  const ByteView body = ByteView(incoming_).subspan(sizeof(FrameHeader), body_bytes);
  const ByteView found = ByteView(incoming_).first(frame_bytes).last(code_bytes());
  if (incoming_seal_ && !is_same_mac(incoming_seal_->next(bytes_of(header), body), found)) {
    return close_because("it sent a control frame with a wrong authentication code");
  }
  ControlFrame frame{header.kind, {body.begin(), body.end()}};
  incoming_.erase(incoming_.begin(), incoming_.begin() + static_cast<std::ptrdiff_t>(frame_bytes));
  return frame;
}

/// The first reason counts.
std::nullopt_t FramedStream::close_because(std::string_view why) {
  if (open_) {
    why_closed_ = why;
  }
  open_ = false;
  incoming_.clear();
  return std::nullopt;
}

std::string Endpoint::text() const {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port);
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

std::vector<Endpoint> Endpoint::parse_list(std::string_view list) {
  std::vector<Endpoint> endpoints;
  for (const std::string_view word : text::words_of(list)) {
    if (const auto endpoint = parse(std::string(word))) {
      endpoints.push_back(*endpoint);
    }
  }
  return endpoints;
}

Socket listen_at(const Endpoint& endpoint) {
  std::string cause;
  const Addresses list = resolve(endpoint, AI_PASSIVE, cause);
  for (const addrinfo* address = list.get(); address != nullptr; address = address->ai_next) {
    Socket socket = stream_socket(*address);
    if (!socket) {
      cause = std::strerror(errno);
      continue;
    }
    const int on = 1;
    const int off = 0;
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off,
               sizeof(off)); // see bindv6only, ipv6(7)
    if (bind(socket.get(), address->ai_addr, address->ai_addrlen) == 0 &&
        listen(socket.get(), SOMAXCONN) == 0) {
      return socket;
    }
    const int error = errno;
    cause = std::strerror(error);
    if (error == EADDRINUSE) {
      break; // another job's, whose ranks would come to us, and ours to it
    }
  }
  throw std::runtime_error(fmt::format("cannot listen at {}: {}", endpoint.text(), cause));
}

Socket listen_everywhere() {
  try {
    return listen_at({"::", "0"});      // IPv4 comes there as well
  } catch (const std::runtime_error&) { // a kernel without IPv6
    return listen_at({"0.0.0.0", "0"});
  }
}

Socket accept_waiting(const Socket& listener) {
  Socket socket(
      [&] { return accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); });
  if (!socket && (errno == EMFILE || errno == ENFILE)) {
    throw std::runtime_error(fmt::format("cannot accept a connection: {}", std::strerror(errno)));
  }
  return socket;
}

Socket connecting_to(const Endpoint& endpoint, int& error) {
  std::string cause;
  const Addresses list = resolve(endpoint, AI_NUMERICHOST, cause);
  error = EADDRNOTAVAIL;
  if (!list) {
    return {};
  }
  Socket socket = stream_socket(*list);
  const bool is_begun = socket && (connect(socket.get(), list->ai_addr, list->ai_addrlen) == 0 ||
                                   errno == EINPROGRESS);
  error = is_begun ? 0 : errno;
  return is_begun ? std::move(socket) : Socket();
}

int outcome_of(const Socket& connection) {
  const int error = error_of(connection);
  if (error != 0) {
    return error;
  }
  sockaddr_storage own{};
  sockaddr_storage other{};
  socklen_t own_length = sizeof(own);
  socklen_t other_length = sizeof(other);
  getsockname(connection.get(), reinterpret_cast<sockaddr*>(&own), &own_length);
  if (getpeername(connection.get(), reinterpret_cast<sockaddr*>(&other), &other_length) != 0) {
    return errno == ENOTCONN ? ECONNRESET : errno; // it was reset since the first question
  }
  return own_length == other_length && std::memcmp(&own, &other, own_length) == 0 ? ECONNREFUSED
                                                                                  : 0;
}

std::uint16_t port_of(const Socket& listener) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length);
  const bool is_ipv4 = address.ss_family == AF_INET;
  return ntohs(is_ipv4 ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                       : reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
}

std::string local_host_of(const Socket& listener) {
  return host_of(listener.get(), getsockname);
}

void withdraw(Socket connection) {
  FramedStream(std::move(connection)).send(code(ControlKind::withdrawn), {});
}

ConnectionAttempts::ConnectionAttempts(const std::vector<Endpoint>& endpoints) {
  for (const Endpoint& endpoint : endpoints) {
    begin(endpoint);
  }
}

ConnectionAttempts::~ConnectionAttempts() {
  for (Attempt& attempt : attempts_) {
    if (attempt.socket) {
      withdraw(std::move(attempt.socket));
    }
  }
}

void ConnectionAttempts::begin(const Endpoint& endpoint) {
  std::string failure;
  const Addresses list = resolve(endpoint, 0, failure);
  if (!list) {
    attempts_.push_back({{}, endpoint.text(), failure});
  }
  for (const addrinfo* address = list.get(); address != nullptr; address = address->ai_next) {
    Attempt attempt{stream_socket(*address), endpoint.text(), "no answer"};
    const bool is_begun = attempt.socket && (connect(attempt.socket.get(), address->ai_addr,
                                                     address->ai_addrlen) == 0 ||
                                             errno == EINPROGRESS);
    if (!is_begun) {
      attempt.failure = std::strerror(errno);
      attempt.socket = {};
    }
    attempts_.push_back(std::move(attempt));
  }
}

bool ConnectionAttempts::are_over() const {
  return std::ranges::none_of(attempts_,
                              [](const Attempt& attempt) { return bool(attempt.socket); });
}

Socket ConnectionAttempts::next(Deadline deadline) {
  while (!are_over()) {
    std::vector<pollfd> entries; // poll skips a negative descriptor
    for (const Attempt& attempt : attempts_) {
      entries.push_back({attempt.socket.get(), POLLOUT, 0});
    }
    if (poll(entries.data(), entries.size(), milliseconds_left(deadline)) == 0) {
      break;
    }
    for (std::size_t index = 0; index < entries.size(); ++index) {
      if (entries[index].revents != 0) {
        if (Socket socket = take_finished(index)) {
          last_ = index;
          return socket;
        }
      }
    }
  }
  return {};
}

Socket ConnectionAttempts::take_finished(std::size_t index) {
  Attempt& attempt = attempts_[index];
  Socket socket = std::exchange(attempt.socket, Socket());
  const int error = error_of(socket);
  if (error != 0) {
    attempt.failure = std::strerror(error);
    return {};
  }
  attempt.failure.clear();
  return socket;
}

std::string ConnectionAttempts::failures() const {
  std::vector<std::string> failures;
  for (const Attempt& attempt : attempts_) {
    if (!attempt.failure.empty()) {
      failures.push_back(fmt::format("{}: {}", attempt.where, attempt.failure));
    }
  }
  return fmt::format("{}", fmt::join(failures, "; "));
}

} // namespace weir::host
