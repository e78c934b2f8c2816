// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/fork_watch.hpp"
#include "host/base/frame_seal.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::host {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

/// `start` + `timeout`, or the clock's maximum if that is less.
Deadline deadline_after(Deadline start, std::chrono::milliseconds timeout);

/// Milliseconds until the deadline, for poll(2): rounded up; 0 when it has passed.
int milliseconds_left(Deadline deadline);

/// A file descriptor. It is closed with the object, and at once in a child made by fork: the other
/// end must notice our end, even if a child lives on.
class Socket {
 public:
  Socket() = default;

  /// The descriptor that `call` opens. `call` must not block.
  explicit Socket(const std::function<int()>& call) : descriptor_(open_unshared(call)) {}

  ~Socket();

  Socket(Socket&& other) noexcept
      : birthplace_(other.birthplace_), descriptor_(std::exchange(other.descriptor_, -1)) {}

  Socket& operator=(Socket&& other) noexcept {
    std::swap(birthplace_, other.birthplace_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  int get() const { return descriptor_; }

  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  Birthplace birthplace_;
  int descriptor_ = -1;
};

/// A message between ranks outside the data path. Users define `kind`.
struct ControlFrame {
  std::uint8_t kind = 0;
  std::vector<std::uint8_t> body;
};

/// A peer whose machine or network is gone breaks the connection within this time, which counts as
/// FramedStream::kShortestSilence at least. A peer that is only stopped does not: its kernel
/// answers.
void notice_silence_within(const Socket& connection, std::chrono::milliseconds time);

/// Control frames over one TCP connection. Never blocks.
class FramedStream {
 public:
  static constexpr std::uint32_t kMaxBody = std::uint32_t{1} << 24;

  /// A frame with more than `max_body` bytes closes the connection, so that a stranger cannot make
  /// us allocate memory.
  explicit FramedStream(Socket socket, std::uint32_t max_body = kMaxBody);

  /// For when the sender is known.
  void allow_bodies_up_to(std::uint32_t bytes) { max_body_ = bytes; }

  /// From now on each frame has a code at its end. A frame that came with a wrong code, or with
  /// none, closes the connection.
  void seal(const Mac& outgoing_key, const Mac& incoming_key);

  /// As the function of this name does.
  void notice_silence_within(std::chrono::milliseconds time) {
    host::notice_silence_within(socket_, time);
  }

  static constexpr std::chrono::seconds kShortestSilence{3};

  /// A peer that leaves more than that to be sent to it counts as gone when a further frame is
  /// sent. So no more waits than this and one frame.
  static constexpr std::size_t kMostUnsent = std::size_t{1} << 20;

  /// Queues the frame and sends what the socket takes. Never fails: is_open() tells when the peer
  /// is gone.
  void send(std::uint8_t kind, std::span<const std::uint8_t> body);

  /// The next complete frame. Frames that came before the peer closed are still returned.
  std::optional<ControlFrame> receive();

  /// Whether a frame of this kind has come and waits for receive(), wherever it stands. Its code is
  /// not checked yet.
  bool holds(std::uint8_t kind) const;

  /// Reads what has come, for receive(), holds() and is_open().
  void read_available();

  /// False when the connection is closed or broken, or what came is no frame. Knows only what
  /// read_available() has read.
  bool is_open() const { return open_; }

  /// When it is not open: "its connection closed" and the like.
  const std::string& why_closed() const { return why_closed_; }

  /// True when there are bytes left to send.
  bool has_backlog() const { return !outgoing_.empty(); }

  std::size_t unsent_bytes() const { return outgoing_.size(); }

  void flush();

  /// Returns when receive() or flush() has work, or at the deadline.
  void wait(Deadline deadline) const;

  int descriptor() const { return socket_.get(); }

  /// The addresses of both ends, as numbers. Empty when the connection is broken.
  std::string local_host() const;
  std::string peer_host() const;

 private:
  void queue(ByteView bytes);
  std::nullopt_t close_because(std::string_view why);

  /// At the end of each frame that comes.
  std::size_t code_bytes() const { return incoming_seal_ ? sizeof(Mac) : 0; }

  Socket socket_;
  std::deque<std::uint8_t> outgoing_;
  std::vector<std::uint8_t> incoming_;
  std::uint32_t max_body_;
  std::optional<FrameSeal> outgoing_seal_;
  std::optional<FrameSeal> incoming_seal_;
  bool open_ = true;
  std::string why_closed_;
};

/// HOST:PORT, [IPv6]:PORT.
struct Endpoint {
  std::string host;
  std::string port;

  /// What parse() reads.
  std::string text() const;

  /// nullopt for anything else.
  static std::optional<Endpoint> parse(const std::string& text);

  /// Those between commas. Leaves out what is none.
  static std::vector<Endpoint> parse_list(std::string_view list);
};

/// Throws std::runtime_error with the cause.
Socket listen_at(const Endpoint& endpoint);

/// At a free port on every interface.
Socket listen_everywhere();

/// A connection that waits at the listener, or an empty socket. Throws std::runtime_error when the
/// process can open no more descriptors.
Socket accept_waiting(const Socket& listener);

/// A connection to a numeric address that is under way, or an empty socket and why.
Socket connecting_to(const Endpoint& endpoint, int& error);

/// How a connection that was under way ended: 0, or an error number. A connection to itself, which
/// the kernel makes when nobody listens at a port that it gives to callers, is ECONNREFUSED.
int outcome_of(const Socket& connection);

/// The port that a listener got.
std::uint16_t port_of(const Socket& listener);

/// Its address, as numbers.
std::string local_host_of(const Socket& listener);

/// Closes a connection on which nothing was said. Who listens may be of this job, and does not take
/// it for a stranger's then.
void withdraw(Socket connection);

/// Connections to several addresses, tried at the same time, because an address that does not
/// answer costs seconds.
class ConnectionAttempts {
 public:
  /// To every address of every name.
  explicit ConnectionAttempts(const std::vector<Endpoint>& endpoints);
  ~ConnectionAttempts();
  ConnectionAttempts(const ConnectionAttempts&) = delete;
  ConnectionAttempts& operator=(const ConnectionAttempts&) = delete;

  /// The next that succeeds. An empty socket when no other can succeed, or at the deadline.
  Socket next(Deadline deadline);

  /// No other can succeed.
  bool are_over() const;

  /// The last that next() returned was of no use.
  void reject_last(const std::string& why) { attempts_[last_].failure = why; }

  /// What became of them, for an error's text.
  std::string failures() const;

 private:
  struct Attempt {
    Socket socket; // empty when it is over
    std::string where;
    std::string failure;
  };

  void begin(const Endpoint& endpoint);
  Socket take_finished(std::size_t index);

  std::vector<Attempt> attempts_;
  std::size_t last_ = 0;
};

} // namespace weir::host
