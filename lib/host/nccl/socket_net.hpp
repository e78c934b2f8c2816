// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/nccl/descriptor.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <netinet/in.h>
#include <optional>
#include <string>
#include <sys/socket.h>

namespace weir::nccl {

/// Point-to-point of our own, for where no other plug-in's is passed on: one TCP connection each
/// way, driven by test(). Nothing waits. A connection belongs to one thread at a time, as NCCL has
/// it. Errors are Failures that name the peer.

using Token = std::array<std::uint8_t, 16>;

class SendConnection;

/// Of 128 bytes. What begins it is no address family, so that NCCL's own nets refuse it.
struct SocketHandle {
  std::uint64_t magic;
  Token token;                // drawn for the listener; who does not know it is turned away
  SendConnection* connecting; // of the caller, under way; NULL in what the listener writes
  std::array<std::uint8_t, sizeof(sockaddr_in6)> address;
};

/// Before a message's bytes, both little-endian as both ends are.
struct MessageHeader {
  std::uint64_t bytes;
  std::int64_t tag;
};

struct SocketRequest {
  MessageHeader header{};
  char* data = nullptr;
  std::size_t room = 0;  // of a receive
  std::size_t moved = 0; // of a send with its header
  bool is_done = false;
};

class SocketConnection {
 public:
  SocketConnection(Descriptor socket, std::string peer)
      : socket_(std::move(socket)), peer_(std::move(peer)) {}

  SocketConnection(const SocketConnection&) = delete;
  SocketConnection& operator=(const SocketConnection&) = delete;
  virtual ~SocketConnection() = default;

  /// NULL: there are kMostRequests. The request is the connection's, until test() says that it is
  /// done.
  SocketRequest* start(const SocketRequest& request);
  /// How many bytes it moved; nothing: it is not done.
  std::optional<std::size_t> test(SocketRequest& request);

 protected:
  virtual void advance() = 0;
  [[noreturn]] void fail(const std::string& what);

  int socket() const { return socket_.get(); }

  std::list<SocketRequest>& requests() { return requests_; }

 private:
  Descriptor socket_;
  std::string peer_;
  std::list<SocketRequest> requests_; // in the order of their start
  std::string failure_;
};

class SendConnection : public SocketConnection {
 public:
  /// Begins to connect to a listener's handle.
  static std::unique_ptr<SendConnection> begin(const SocketHandle& handle);
  using SocketConnection::SocketConnection;
  /// Whether it is made, and the token sent.
  bool is_ready();

 private:
  void advance() override;
  bool send_some(SocketRequest& request);

  Token token_{};
  std::size_t token_sent_ = 0;
  bool is_connected_ = false;
};

class ReceiveConnection : public SocketConnection {
 public:
  using SocketConnection::SocketConnection;

 private:
  void advance() override;
  bool take_header();
  SocketRequest* receiver();
  /// How many bytes came; 0: none now. Fails at the connection's end.
  std::size_t receive_some(void* to, std::size_t bytes);

  MessageHeader header_{}; // of the message that comes
  std::size_t header_taken_ = 0;
  SocketRequest* current_ = nullptr;
};

class SocketListener {
 public:
  /// Writes its handle.
  SocketListener(const std::string& interface, SocketHandle& handle);
  /// The connection of one who knows the token, if one has come.
  std::unique_ptr<ReceiveConnection> accept();

 private:
  struct Caller {
    Descriptor socket;
    std::string peer;
    Token said{};
    std::size_t taken = 0;
  };
  enum class Hearing { goes_on, turned_away, is_right };

  void take_callers();
  Hearing hear(Caller& caller) const;

  Descriptor socket_;
  Token token_{};
  std::deque<Caller> callers_; // who has not said the token yet
};

} // namespace weir::nccl
