// SPDX-License-Identifier: BSD-3-Clause
#include "net/listening_socket.hpp"

#include "files/trusted_folder.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace weir::net {
namespace {

constexpr int kBacklog = 512; // many may come again at once, when a service is back

[[noreturn]] void fail(const std::string& address, std::string_view cause) {
  throw ListenError(fmt::format("cannot listen at {}: {}", address, cause));
}

[[noreturn]] void fail_with_errno(const std::string& address) {
  fail(address, std::strerror(errno));
}

int new_socket(int family) {
  return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/// Keeps other switches from looking at the same path until it is gone. The lock's file is one that
/// no other user may open, or they could hold it: not the socket's folder, which all may.
class PathLock {
 public:
  explicit PathLock(const std::string& path) {
    const std::string file = path + ".lock";
    descriptor_ = open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                       S_IRUSR | S_IWUSR);
    if (descriptor_ < 0) {
      fail_with_errno("unix:" + path);
    }
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      close(descriptor_);
      fail("unix:" + path, "another process is about to listen there");
    }
  }

  PathLock(const PathLock&) = delete;
  PathLock& operator=(const PathLock&) = delete;

  ~PathLock() { close(descriptor_); }

 private:
  int descriptor_;
};

void refuse_shared_folder(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  if (const std::string flaw = files::why_not_trusted(folder); !flaw.empty()) {
    fail("unix:" + path,
         flaw + "; allowed: a folder that only this program's user and root can change");
  }
}

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    fail("unix:" + path, "the path is longer than 107 bytes");
  }
  path.copy(address.sun_path, path.size());
  return address;
}

bool somebody_listens(const sockaddr_un& address) {
  const int caller = new_socket(AF_UNIX);
  const bool connects =
      connect(caller, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
      errno == EAGAIN; // its backlog is full
  close(caller);
  return connects;
}

/// Removes a socket file at which nobody listens.
void make_room(const std::string& path, const sockaddr_un& address) {
  struct stat status {};

  if (lstat(path.c_str(), &status) != 0) {
    return;
  }
  if (!S_ISSOCK(status.st_mode)) {
    fail("unix:" + path, "there is a file that is no socket");
  }
  if (somebody_listens(address)) {
    fail("unix:" + path, "another process listens there");
  }
  unlink(path.c_str());
}

bool may_call(int connection) {
  ucred caller{};
  socklen_t length = sizeof caller;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &caller, &length) == 0 &&
         (caller.uid == 0 || caller.uid == geteuid());
}

/// "ADDRESS:PORT" without the brackets of IPv6.
std::pair<std::string, std::string> parts_of(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  const bool has_brackets = address.starts_with('[');
  return {has_brackets ? address.substr(1, colon - 2) : address.substr(0, colon),
          address.substr(colon + 1)};
}

using AddressInfo = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressInfo resolved(const std::string& address) {
  if (address.find(':') == std::string::npos) {
    fail(address, "it has no port"); // a number alone is an address, too (inet_aton(3))
  }
  const auto [host, port] = parts_of(address);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    fail(address, gai_strerror(error));
  }
  return {found, &freeaddrinfo};
}

} // namespace

void check_address(const std::string& address) {
  resolved(address);
}

ListeningSocket ListeningSocket::at_path(const std::string& path) {
  const sockaddr_un address = unix_address(path);
  refuse_shared_folder(path);
  const PathLock lock(path);
  make_room(path, address);
  ListeningSocket listening(new_socket(AF_UNIX));
  if (bind(listening.descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
      0) {
    fail_with_errno("unix:" + path);
  }
  listening.path_ = path;
  // Nobody can connect before listen().
  if (chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0 || listen(listening.descriptor_, kBacklog) != 0) {
    fail_with_errno("unix:" + path);
  }
  return listening;
}

ListeningSocket ListeningSocket::at_address(const std::string& address) {
  const AddressInfo found = resolved(address);
  ListeningSocket listening(new_socket(found->ai_family));
  const int on = 1;
  setsockopt(listening.descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listening.descriptor_, found->ai_addr, found->ai_addrlen) != 0 ||
      listen(listening.descriptor_, kBacklog) != 0) {
    fail_with_errno(address);
  }
  return listening;
}

ListeningSocket::ListeningSocket(ListeningSocket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {
  other.path_.clear();
}

ListeningSocket::~ListeningSocket() {
  if (!path_.empty()) {
    unlink(path_.c_str());
  }
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

int ListeningSocket::accept() const {
  const int connection = accept4(descriptor_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (connection < 0) {
    return -1;
  }
  if (!path_.empty() && !may_call(connection)) {
    close(connection);
    errno = EACCES;
    return -1;
  }
  const int on = 1;
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); // not for a Unix socket
  return connection;
}

} // namespace weir::net
