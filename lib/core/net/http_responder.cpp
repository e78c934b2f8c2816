// SPDX-License-Identifier: BSD-3-Clause
#include "net/http_responder.hpp"

#include "net/peer_address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <map>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace weir::net {

/// Of one request.
struct HttpAnswer {
  std::string header;
  HttpPage::Text text;
};

namespace {

using Clock = std::chrono::steady_clock;

/// From when a client comes until it has its answer.
constexpr std::chrono::seconds kPatience{10};
/// How often the time of the connections is looked at.
constexpr std::chrono::milliseconds kPeriod{500};
constexpr std::string_view kEndOfHeader = "\r\n\r\n";

HttpAnswer answer_of(std::string_view status, std::string_view more, HttpPage::Text text) {
  return {fmt::format("HTTP/1.1 {}\r\n{}Content-Length: {}\r\nConnection: close\r\n\r\n", status,
                      more, text->size()),
          std::move(text)};
}

HttpAnswer refusal(std::string_view status, std::string_view more, std::string sentence) {
  return answer_of(status, fmt::format("{}Content-Type: text/plain; charset=utf-8\r\n", more),
                   std::make_shared<const std::string>(std::move(sentence) + "\n"));
}

HttpAnswer without_text(HttpAnswer answer) {
  answer.text = std::make_shared<const std::string>();
  return answer;
}

std::string paths_of(const std::vector<HttpPage>& pages) {
  std::string paths;
  for (const HttpPage& page : pages) {
    paths += (paths.empty() ? "" : " or ") + page.path;
  }
  return paths;
}

HttpAnswer answer_with(const HttpPage& page) {
  HttpPage::Text text = page.text();
  if (text == nullptr) {
    return refusal("503 Service Unavailable", "", "no answer came in time; ask again");
  }
  return answer_of("200 OK", fmt::format("Content-Type: {}\r\n{}", page.content_type, page.more),
                   std::move(text));
}

/// Of the request's first line; the others are of no use here.
HttpAnswer answered(std::string_view line, const std::vector<HttpPage>& pages) {
  const std::size_t method_end = line.find(' ');
  const std::size_t target_end = line.rfind(' ');
  if (method_end == target_end || !line.substr(target_end + 1).starts_with("HTTP/1.")) {
    return refusal("400 Bad Request", "", "found no request of HTTP/1; allowed: GET or HEAD");
  }
  const std::string_view method = line.substr(0, method_end);
  const std::string_view target = line.substr(method_end + 1, target_end - method_end - 1);
  if (method != "GET" && method != "HEAD") {
    return refusal("405 Method Not Allowed", "Allow: GET, HEAD\r\n",
                   "found another method; allowed: GET or HEAD");
  }
  const auto page = std::ranges::find(pages, target.substr(0, target.find('?')), &HttpPage::path);
  HttpAnswer answer =
      page != pages.end()
          ? answer_with(*page)
          : refusal("404 Not Found", "",
                    fmt::format("found another path; allowed: {}", paths_of(pages)));
  return method == "HEAD" ? without_text(std::move(answer)) : answer;
}

} // namespace

/// A client's. It reads a request, writes the answer, and then reads until the client closes:
/// otherwise what the client still sends would have the kernel throw the answer away.
class HttpResponder::Connection {
 public:
  Connection(int descriptor, std::string address)
      : descriptor_(descriptor), address_(std::move(address)) {}

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  ~Connection() { close(descriptor_); }

  const std::string& address() const { return address_; }

  pollfd awaited() const {
    return {descriptor_, static_cast<short>(is_writing() ? POLLOUT : POLLIN), 0};
  }

  /// What poll() says of it as awaited(). False: it is over.
  bool use(const pollfd& polled, const std::vector<HttpPage>& pages) {
    if (Clock::now() >= due_) {
      return false;
    }
    if (polled.revents == 0) {
      return true;
    }
    return is_writing() ? write_on() : read_on(pages);
  }

 private:
  bool is_writing() const { return answer_.text && written_ < size(); }

  std::size_t size() const { return answer_.header.size() + answer_.text->size(); }

  bool read_on(const std::vector<HttpPage>& pages) {
    std::array<char, kMostRequestBytes> bytes;
    const ssize_t count = recv(descriptor_, bytes.data(), bytes.size(), 0);
    if (count <= 0) {
      return count < 0 && (errno == EAGAIN || errno == EINTR);
    }
    if (answer_.text) { // what comes after the request
      return true;
    }
    request_.append(bytes.data(), static_cast<std::size_t>(count));
    answer(pages);
    return true;
  }

  void answer(const std::vector<HttpPage>& pages) {
    const bool is_whole = request_.find(kEndOfHeader) < kMostRequestBytes;
    if (is_whole) {
      answer_ = answered(std::string_view(request_).substr(0, request_.find("\r\n")), pages);
    } else if (request_.size() >= kMostRequestBytes) {
      answer_ = refusal("431 Request Header Fields Too Large", "",
                        fmt::format("found a longer header; allowed: {} bytes", kMostRequestBytes));
    }
  }

  bool write_on() {
    const bool in_header = written_ < answer_.header.size();
    const std::string_view part = in_header ? answer_.header : *answer_.text;
    const std::string_view rest =
        part.substr(in_header ? written_ : written_ - answer_.header.size());
    const ssize_t count = send(descriptor_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0) {
      return errno == EAGAIN || errno == EINTR;
    }
    written_ += static_cast<std::size_t>(count);
    if (!is_writing()) {
      shutdown(descriptor_, SHUT_WR);
    }
    return true;
  }

  const int descriptor_;
  const std::string address_;
  const Clock::time_point due_ = Clock::now() + kPatience;
  std::string request_;
  HttpAnswer answer_; // without a text: the request is not whole
  std::size_t written_ = 0;
};

HttpResponder::HttpResponder(ListeningSocket listening, HttpPage page)
    : HttpResponder(std::move(listening), std::vector{std::move(page)}) {}

HttpResponder::HttpResponder(ListeningSocket listening, std::vector<HttpPage> pages)
    : listening_(std::move(listening)), pages_(std::move(pages)), end_(eventfd(0, EFD_CLOEXEC)),
      thread_([this] { serve(); }) {}

HttpResponder::~HttpResponder() {
  const std::uint64_t one = 1;
  if (write(end_, &one, sizeof one) == sizeof one) {
    thread_.join();
  }
  close(end_);
}

void HttpResponder::serve() {
  for (bool is_over = false; !is_over;) {
    try {
      std::vector<pollfd> waited = awaited();
      const int ready = poll(waited.data(), waited.size(), static_cast<int>(kPeriod.count()));
      is_over = ready > 0 && waited[0].revents != 0;
      if (ready >= 0 && !is_over) {
        serve_once(waited);
      }
    } catch (const std::exception&) { // no memory: those who have most of it go
      connections_.clear();
    }
  }
}

void HttpResponder::serve_once(const std::vector<pollfd>& awaited) {
  use(awaited);
  if (awaited[1].revents != 0) {
    let_in();
  }
}

/// The end, newcomers, and the connections in their order.
std::vector<pollfd> HttpResponder::awaited() const {
  std::vector<pollfd> awaited{{end_, POLLIN, 0}, {listening_.descriptor(), POLLIN, 0}};
  for (const Connection& connection : connections_) {
    awaited.push_back(connection.awaited());
  }
  return awaited;
}

void HttpResponder::use(const std::vector<pollfd>& awaited) {
  std::size_t place = 2;
  std::erase_if(connections_,
                [&](Connection& connection) { return !connection.use(awaited[place++], pages_); });
}

void HttpResponder::let_in() {
  const int descriptor = listening_.accept();
  if (descriptor < 0) {
    if (errno != EAGAIN && errno != ECONNABORTED) { // it would come back at once
      std::this_thread::sleep_for(kPeriod);
    }
    return;
  }
  std::string address = network_of(address_of_peer(descriptor));
  make_room(address);
  connections_.emplace_back(descriptor, std::move(address));
}

void HttpResponder::make_room(const std::string& address) {
  const auto count =
      static_cast<std::size_t>(std::ranges::count(connections_, address, &Connection::address));
  if (count >= kMostOfAnAddress) {
    end_oldest_of(address);
  } else if (connections_.size() >= kMostConnections) {
    end_oldest_of(address_with_most());
  }
}

void HttpResponder::end_oldest_of(const std::string& address) {
  connections_.erase(std::ranges::find(connections_, address, &Connection::address));
}

std::string HttpResponder::address_with_most() const {
  std::map<std::string, std::size_t> counts;
  for (const Connection& connection : connections_) {
    ++counts[connection.address()];
  }
  return std::ranges::max_element(counts, {}, &std::pair<const std::string, std::size_t>::second)
      ->first;
}

} // namespace weir::net
