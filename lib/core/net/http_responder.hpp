// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/listening_socket.hpp"

#include <functional>
#include <list>
#include <memory>
#include <poll.h>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace weir::net {

/// What it has for one path.
struct HttpPage {
  using Text = std::shared_ptr<const std::string>;

  std::string path; // "/metrics"
  std::string content_type;
  std::function<Text()> text; // asked by the responder's thread; nullptr: there is none now (503)
  std::string more = {};      // header lines, each with its CRLF
};

/// Answers GET and HEAD over HTTP/1.1 (RFC 9112), one request on a connection, while it lives. One
/// thread serves all connections, and none holds it: a connection has so much time, a request so
/// many bytes. There are so many connections, of all and of an address; a newcomer takes the place
/// of the oldest one of the address that has most.
class HttpResponder {
 public:
  static constexpr std::size_t kMostConnections = 32;
  static constexpr std::size_t kMostOfAnAddress = 8;
  static constexpr std::size_t kMostRequestBytes = 8192;

  HttpResponder(ListeningSocket listening, HttpPage page);
  HttpResponder(ListeningSocket listening, std::vector<HttpPage> pages);
  ~HttpResponder();
  HttpResponder(const HttpResponder&) = delete;
  HttpResponder& operator=(const HttpResponder&) = delete;

 private:
  class Connection;

  void serve();
  void serve_once(const std::vector<pollfd>& awaited);
  void let_in();
  void make_room(const std::string& address);
  void end_oldest_of(const std::string& address);
  std::string address_with_most() const;
  std::vector<pollfd> awaited() const;
  void use(const std::vector<pollfd>& awaited);

  const ListeningSocket listening_;
  const std::vector<HttpPage> pages_;
  const int end_;
  std::list<Connection> connections_; // the oldest first
  std::thread thread_;
};

} // namespace weir::net
