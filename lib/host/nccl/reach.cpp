// SPDX-License-Identifier: BSD-3-Clause
#include "host/nccl/reach.hpp"

#include "host/nccl/call.hpp"
#include "host/nccl/descriptor.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace weir::nccl {
namespace {

using std::chrono::steady_clock;

/// Why not; "" if somebody took the connection.
std::string problem_of_connection(const sockaddr* address, socklen_t length,
                                  steady_clock::time_point deadline) {
  const Descriptor socket(
      ::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), address, length) == 0) {
    return {};
  }
  if (errno != EINPROGRESS) {
    return std::strerror(errno);
  }
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now()).count();
  pollfd waiting{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left)) != 1) {
    return fmt::format("no answer within {} ms", kPatience.count());
  }
  const int error = error_of_socket(socket.get());
  return error == 0 ? std::string() : std::strerror(error);
}

std::string problem_of_path(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return fmt::format("a path has 1 to {} bytes", sizeof(address.sun_path) - 1);
  }
  path.copy(address.sun_path, path.size());
  return problem_of_connection(reinterpret_cast<const sockaddr*>(&address), sizeof(address),
                               steady_clock::now() + kPatience);
}

std::string problem_of_host(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) {
    return "allowed: unix:/PATH or HOST:PORT";
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found)) {
    return gai_strerror(error);
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  const auto deadline = steady_clock::now() + kPatience;
  std::string problem = "no address";
  for (const addrinfo* each = found; each != nullptr && !problem.empty(); each = each->ai_next) {
    problem = problem_of_connection(each->ai_addr, each->ai_addrlen, deadline);
  }
  return problem;
}

} // namespace

void reach(const std::string& address) {
  constexpr std::string_view unix_form = "unix:";
  const std::string problem = address.starts_with(unix_form)
                                  ? problem_of_path(address.substr(unix_form.size()))
                                  : problem_of_host(address);
  if (!problem.empty()) {
    throw Failure(Result::system_error,
                  fmt::format("no switch answers at WEIR_SWITCH={}: {}", address, problem));
  }
}

} // namespace weir::nccl
