// SPDX-License-Identifier: BSD-3-Clause
#include "acceptor.hpp"

#include "gate/channel.hpp"
#include "net/peer_address.hpp"
#include "relay.hpp"
#include "rights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace weir::gate {
namespace {

constexpr std::chrono::milliseconds kPeriod{200};
/// An address whose process was killed does not come again at once.
constexpr std::chrono::seconds kBar{1};

} // namespace

Acceptor::Acceptor(int channel, std::vector<int> doors, Orders orders)
    : channel_(channel), doors_(std::move(doors)), orders_(std::move(orders)) {
  read_files();
}

void Acceptor::run() {
  std::vector<pollfd> awaited{{channel_, 0, 0}};
  for (const int door : doors_) {
    awaited.push_back({door, POLLIN, 0});
  }
  while (true) {
    const int ready = poll(awaited.data(), awaited.size(), static_cast<int>(kPeriod.count()));
    look_after_processes();
    if (ready <= 0) {
      continue;
    }
    if (awaited[0].revents != 0) {
      return;
    }
    for (const pollfd& door : awaited) {
      if (door.revents != 0) {
        let_in(door.fd);
      }
    }
  }
}

void Acceptor::let_in(int door) {
  const int client = accept4(door, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (client < 0) {
    if (errno != EAGAIN && errno != ECONNABORTED) { // it would come back at once
      std::this_thread::sleep_for(kPeriod);
    }
    return;
  }
  std::string address = net::address_of_peer(client);
  if (has_room(address)) {
    begin(client, std::move(address));
  }
  close(client);
}

bool Acceptor::has_room(const std::string& address) const {
  const Profile& profile = *orders_.profile;
  const auto count = [this](const std::string& of, const auto& whose) {
    return static_cast<std::size_t>(std::ranges::count(connections_, of, whose));
  };
  return connections_.size() < profile.most_connections && !barred_until_.contains(address) &&
         count(address, &Connection::address) < profile.most_of_an_address &&
         count(net::network_of(address), [](const Connection& connection) {
           return net::network_of(connection.address);
         }) < profile.most_of_a_network;
}

void Acceptor::begin(int client, std::string address) {
  read_files();
  std::array<int, 2> pair{};
  if (!texts_ ||
      socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    return;
  }
  const pid_t process = fork();
  if (process == 0) {
    close(pair[1]);
    serve(client, pair[0], address);
  }
  if (process > 0) {
    send(channel_, {News::connection, {}, pair[1]}); // not sent: both ends are closed, and it ends
    connections_.push_back({process, std::move(address)});
  }
  close(pair[0]);
  close(pair[1]);
}

void Acceptor::serve(int client, int to_service, const std::string& address) {
  close(channel_);
  for (const int door : doors_) {
    close(door);
  }
  const int on = 1;
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  bound_memory();
  relay({client, address}, to_service, orders_, *texts_);
}

void Acceptor::read_files() {
  try {
    texts_ = read_tls_files(orders_.files, orders_.profile->section);
    complaint_.clear();
  } catch (const TlsFileError& error) {
    if (std::exchange(complaint_, error.what()) != complaint_) {
      send(channel_, {News::files, complaint_});
    }
  }
}

void Acceptor::look_after_processes() {
  const auto now = Clock::now();
  std::erase_if(barred_until_, [now](const auto& entry) { return entry.second <= now; });
  int status = 0;
  for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
    const auto found = std::ranges::find(connections_, ended, &Connection::process);
    if (found != connections_.end()) {
      tell_end_of(*found, status);
      connections_.erase(found);
    }
  }
}

void Acceptor::tell_end_of(const Connection& connection, int status) {
  if (WIFSIGNALED(status)) {
    barred_until_[connection.address] = Clock::now() + kBar;
    send(channel_, {News::ended, fmt::format("{}", WTERMSIG(status))});
  }
}

} // namespace weir::gate
