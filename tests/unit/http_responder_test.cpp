// SPDX-License-Identifier: BSD-3-Clause
#include "net/http_responder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <gmock/gmock.h>
#include <memory>
#include <netinet/in.h>
#include <optional>
#include <sys/socket.h>
#include <unistd.h>

namespace weir::net::http_responder_test {
namespace {

using testing::EndsWith;
using testing::StartsWith;

sockaddr_in at(const char* ip, std::uint16_t port) {
  sockaddr_in found{};
  found.sin_family = AF_INET;
  found.sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, ip, &found.sin_addr), 1);
  return found;
}

std::uint16_t port_of(const ListeningSocket& listening) {
  sockaddr_in own{};
  socklen_t length = sizeof own;
  EXPECT_EQ(getsockname(listening.descriptor(), reinterpret_cast<sockaddr*>(&own), &length), 0);
  return ntohs(own.sin_port);
}

/// A connection from an address to a port of 127.0.0.1.
class Client {
 public:
  Client(const char* address, std::uint16_t port) : descriptor_(socket(AF_INET, SOCK_STREAM, 0)) {
    const sockaddr_in own = at(address, 0);
    const sockaddr_in other = at("127.0.0.1", port);
    EXPECT_EQ(bind(descriptor_, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
    EXPECT_EQ(connect(descriptor_, reinterpret_cast<const sockaddr*>(&other), sizeof other), 0);
  }

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  ~Client() { close(descriptor_); }

  void say(std::string_view text) const {
    EXPECT_EQ(send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }

  /// All until the other side closes.
  std::string heard() const {
    std::string all;
    std::array<char, 65536> bytes;
    for (ssize_t count = 0; (count = recv(descriptor_, bytes.data(), bytes.size(), 0)) > 0;) {
      all.append(bytes.data(), static_cast<std::size_t>(count));
    }
    return all;
  }

 private:
  const int descriptor_;
};

constexpr std::string_view kGet = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr std::string_view kHalf = "GET /metrics HTTP/1.1\r\nHo";

class Responder : public testing::Test {
 protected:
  std::string answer_to(std::string_view request, const char* from = "127.0.0.1") const {
    const Client client(from, port_);
    client.say(request);
    return client.heard();
  }

  std::shared_ptr<const Client> one_who_says(std::string_view text, const char* from) const {
    auto client = std::make_shared<const Client>(from, port_);
    client->say(text);
    return client;
  }

  std::string text_ = "answer\n";
  ListeningSocket listening_ = ListeningSocket::at_address("127.0.0.1:0");
  const std::uint16_t port_ = port_of(listening_);
  HttpResponder responder_{
      std::move(listening_),
      {{"/metrics", "text/plain", [this] { return std::make_shared<const std::string>(text_); }},
       {"/page", "text/html", [] { return std::make_shared<const std::string>("page\n"); },
        "Cache-Control: no-store\r\n"},
       {"/late", "text/plain", [] { return nullptr; }, "Cache-Control: no-store\r\n"}}};
};

TEST_F(Responder, AnswersGetAndHead) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 7\r\n"
                           "Connection: close\r\n\r\n";
  EXPECT_EQ(answer_to(kGet), head + "answer\n");
  EXPECT_EQ(answer_to("GET /metrics?a=b HTTP/1.0\r\n\r\nand more"), head + "answer\n");
  EXPECT_EQ(answer_to("HEAD /metrics HTTP/1.1\r\n\r\n"), head);
}

TEST_F(Responder, SaysAPagesOwnHeaderLines) {
  EXPECT_EQ(answer_to("GET /page HTTP/1.1\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nCache-Control: no-store\r\n"
            "Content-Length: 5\r\nConnection: close\r\n\r\npage\n");
}

TEST_F(Responder, SaysThatAPageHasNoTextNow) {
  EXPECT_EQ(answer_to("GET /late HTTP/1.1\r\n\r\n"),
            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n"
            "Content-Length: 34\r\nConnection: close\r\n\r\nno answer came in time; ask again\n");
}

TEST_F(Responder, RefusesAllElse) {
  EXPECT_THAT(answer_to("GET /quit HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_THAT(answer_to("HEAD /metric HTTP/1.1\r\n\r\n"), EndsWith("close\r\n\r\n"));
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "get", "GETS"}) {
    EXPECT_THAT(answer_to(fmt::format("{} /metrics HTTP/1.1\r\n\r\n", method)),
                StartsWith("HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\n"))
        << method;
  }
  for (const char* garbage : {"\r\n\r\n", "GET\r\n\r\n", "GET /metrics\r\n\r\n", " \r\n\r\n",
                              "GET /metrics HTTP/2\r\n\r\n", "\x16\x03\x01\r\n\r\n"}) {
    EXPECT_THAT(answer_to(garbage), StartsWith("HTTP/1.1 400 Bad Request\r\n")) << garbage;
  }
  EXPECT_THAT(answer_to(std::string(HttpResponder::kMostRequestBytes, 'a')),
              StartsWith("HTTP/1.1 431 "));
}

TEST_F(Responder, TakesARequestByteByByte) {
  const Client client("127.0.0.1", port_);
  for (const char& byte : kGet) {
    client.say({&byte, 1});
  }
  EXPECT_THAT(client.heard(), EndsWith("answer\n"));
}

TEST_F(Responder, SendsMoreThanASocketTakes) {
  text_.assign(20'000'000, 'x');
  const auto one_who_does_not_read = one_who_says(kGet, "127.0.0.2");
  EXPECT_THAT(answer_to(kGet), EndsWith("\r\n\r\n" + text_));
}

TEST_F(Responder, HalfRequestsOfOneAddressKeepNobodyOut) {
  std::vector<std::shared_ptr<const Client>> silent;
  for (int count = 0; count < 100; ++count) {
    silent.push_back(one_who_says(kHalf, "127.0.0.2"));
  }
  EXPECT_THAT(answer_to(kGet), EndsWith("answer\n"));
  EXPECT_THAT(answer_to(kGet, "127.0.0.2"), EndsWith("answer\n"));
}

TEST_F(Responder, HalfRequestsOfManyAddressesKeepNobodyOut) {
  std::vector<std::shared_ptr<const Client>> silent;
  for (const char* from : {"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6"}) {
    for (int count = 0; count < 10; ++count) {
      silent.push_back(one_who_says(kHalf, from));
    }
  }
  EXPECT_THAT(answer_to(kGet), EndsWith("answer\n"));
}

TEST_F(Responder, OneWhoHasBegunIsNotPutOutByOthers) {
  const auto early = one_who_says(kHalf, "127.0.0.1");
  std::vector<std::shared_ptr<const Client>> silent;
  for (int count = 0; count < 100; ++count) {
    silent.push_back(one_who_says(kHalf, count % 2 == 0 ? "127.0.0.2" : "127.0.0.3"));
  }
  early->say("st: a\r\n\r\n");
  EXPECT_THAT(early->heard(), EndsWith("answer\n"));
}

} // namespace
} // namespace weir::net::http_responder_test
