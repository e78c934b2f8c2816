// SPDX-License-Identifier: BSD-3-Clause
#include "host/node/node_meeting.hpp"

#include "host/base/control_note.hpp"
#include "host/base/error.hpp"
#include "host/base/stall_timer.hpp"
#include "random/random_bytes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace weir::host {
namespace {

constexpr std::size_t kNameBytes = 16;
constexpr std::size_t kMostAtOnce = 250; // descriptors in a message; the kernel's limit is 253

struct InvitationBody {
  std::array<std::uint8_t, kNameBytes> name;
  Mac token;
};

/// What a rank says first.
struct RequestBody {
  Mac token;
  wire::be16 place;
};

static_assert(sizeof(InvitationBody) == 48 && sizeof(RequestBody) == 34);

struct Address {
  sockaddr_un name{};
  socklen_t bytes = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

/// Its first byte is 0, so it is no file's.
Address address_of(const std::array<std::uint8_t, kNameBytes>& name) {
  const std::string text = fmt::format("weir-node-{:02x}", fmt::join(name, ""));
  Address address;
  address.name.sun_family = AF_UNIX;
  text.copy(address.name.sun_path + 1, sizeof(address.name.sun_path) - 1);
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return address;
}

Error failure(std::uint16_t rank, std::string_view what) {
  return {ErrorCode::transport_failure, rank,
          fmt::format("rank {}: ranks of one NIC: {}: {}", rank, what, std::strerror(errno))};
}

/// A socket whose messages keep their bounds.
Socket local_socket(std::uint16_t rank) {
  Socket made([] { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
  if (!made) {
    throw failure(rank, "no socket");
  }
  return made;
}

/// The user at the other end: who listens, or who has connected.
std::optional<uid_t> user_of(const Socket& connection) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  const bool is_known = getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0;
  return is_known ? std::optional(peer.uid) : std::nullopt;
}

/// Until one of them is readable, or some time has passed. Throws at the deadline what `late`
/// gives.
template <typename Late>
void wait_for(std::vector<pollfd> entries, const NodeWait& wait, Late late) {
  wait.meanwhile();
  const Deadline now = Clock::now();
  if (now >= wait.deadline) {
    throw late();
  }
  const Deadline look = std::min(wait.deadline, now + StallTimer::kLookPeriod);
  poll(entries.data(), entries.size(), milliseconds_left(look));
}

Error is_late(std::uint16_t rank, const NodeWait& wait) {
  return {
      ErrorCode::rendezvous_timeout, rank,
      fmt::format("ranks of one NIC: rank {} did not come to rank {} in time", rank, wait.leader)};
}

union ControlSpace {
  cmsghdr aligned;
  std::array<char, CMSG_SPACE(kMostAtOnce * sizeof(int))> bytes;
};

/// A byte, and descriptors beside it.
class DescriptorMessage {
 public:
  explicit DescriptorMessage(std::size_t descriptors) {
    header_.msg_iov = &data_;
    header_.msg_iovlen = 1;
    header_.msg_control = space_.bytes.data();
    header_.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
  }

  DescriptorMessage(const DescriptorMessage&) = delete;
  DescriptorMessage& operator=(const DescriptorMessage&) = delete;

  msghdr& header() { return header_; }

 private:
  char byte_ = 0;
  iovec data_{&byte_, 1};
  msghdr header_{};
  ControlSpace space_{}; // ends in an array of any length
};

/// False when the other end is gone.
bool send_descriptors(const Socket& connection, std::span<const int> descriptors) {
  DescriptorMessage message(descriptors.size());
  cmsghdr* const header = CMSG_FIRSTHDR(&message.header());
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  return sendmsg(connection.get(), &message.header(), MSG_NOSIGNAL) == 1;
}

bool hand_over(const Socket& connection, const NodeDescriptors& descriptors) {
  std::vector<int> all{descriptors.memory.get()};
  for (const Socket& bell : descriptors.bells) {
    all.push_back(bell.get());
  }
  for (std::size_t begin = 0; begin < all.size(); begin += kMostAtOnce) {
    const std::size_t count = std::min(kMostAtOnce, all.size() - begin);
    if (!send_descriptors(connection, std::span(all).subspan(begin, count))) {
      return false;
    }
  }
  return true;
}

/// Those of one message; none when there is none yet. Throws Error when the leader is gone.
std::vector<Socket> receive_descriptors(const Socket& connection, const NodeWait& wait) {
  DescriptorMessage message(kMostAtOnce);
  const ssize_t bytes = recvmsg(connection.get(), &message.header(), MSG_CMSG_CLOEXEC);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) {
    return {};
  }
  std::vector<Socket> found;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message.header()); bytes > 0 && header != nullptr;
       header = CMSG_NXTHDR(&message.header(), header)) {
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; header->cmsg_type == SCM_RIGHTS && i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      found.emplace_back([descriptor] { return descriptor; });
    }
  }
  if (found.empty()) {
    errno = bytes < 0 ? errno : ECONNRESET;
    throw failure(wait.rank, fmt::format("rank {} hands over no memory (is there room for its "
                                         "descriptors, ulimit -n?)",
                                         wait.leader));
  }
  return found;
}

/// What a caller wants.
struct PlaceRequest {
  enum class State : std::uint8_t { not_there_yet, of_a_stranger, of_a_rank };

  State state = State::of_a_stranger;
  std::uint16_t place = 0;
};

PlaceRequest request_of(const Socket& connection, const Mac& token) {
  RequestBody body{};
  const ssize_t bytes = recv(connection.get(), &body, sizeof(body), 0);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) {
    return {PlaceRequest::State::not_there_yet};
  }
  if (bytes != sizeof(body) || !is_same_mac(token, body.token)) {
    return {PlaceRequest::State::of_a_stranger};
  }
  return {PlaceRequest::State::of_a_rank, body.place.get()};
}

/// Who has come to the leader and not said the token yet. Another user's are closed at once.
class Callers {
 public:
  explicit Callers(const Socket& door) : door_(door) {}

  void let_in() {
    for (Socket caller = accepted(); caller; caller = accepted()) {
      if (user_of(caller) == geteuid()) {
        callers_.push_back(std::move(caller));
      }
    }
  }

  std::vector<pollfd> entries() const {
    std::vector<pollfd> entries{{door_.get(), POLLIN, 0}};
    for (const Socket& caller : callers_) {
      entries.push_back({caller.get(), POLLIN, 0});
    }
    return entries;
  }

  /// Calls serve(connection, place) for each that says the token, and keeps who has said nothing.
  template <typename Serve>
  void hear(const Mac& token, Serve serve) {
    std::erase_if(callers_, [&](const Socket& caller) {
      const PlaceRequest request = request_of(caller, token);
      if (request.state == PlaceRequest::State::of_a_rank) {
        serve(caller, request.place);
      }
      return request.state != PlaceRequest::State::not_there_yet;
    });
  }

 private:
  Socket accepted() const {
    return Socket(
        [&] { return accept4(door_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); });
  }

  const Socket& door_;
  std::vector<Socket> callers_;
};

} // namespace

NodeDoor::NodeDoor(std::uint16_t leader)
    : name_(random_bytes<kNameBytes>()), token_(random_bytes<sizeof(Mac)>()),
      socket_(local_socket(leader)) {
  const Address address = address_of(name_);
  if (bind(socket_.get(), address.get(), address.bytes) != 0 ||
      listen(socket_.get(), SOMAXCONN) != 0) {
    throw failure(leader, "cannot listen");
  }
}

std::vector<std::uint8_t> NodeDoor::invitation() const {
  const InvitationBody body{name_, token_};
  const auto bytes = bytes_of(body);
  return {bytes.begin(), bytes.end()};
}

void NodeDoor::hand_out(const NodeDescriptors& descriptors, const std::vector<std::uint16_t>& ranks,
                        const NodeWait& wait) const {
  std::vector<std::uint16_t> missing(ranks.begin() + 1, ranks.end());
  Callers callers(socket_);
  while (!missing.empty()) {
    wait_for(callers.entries(), wait, [&] { return is_late(missing.front(), wait); });
    callers.let_in();
    callers.hear(token_, [&](const Socket& caller, std::uint16_t place) {
      if (place < ranks.size() && hand_over(caller, descriptors)) {
        std::erase(missing, ranks[place]);
      }
    });
  }
}

namespace {

/// Connected, once the leader has room for one more that waits.
Socket connected_to(const InvitationBody& invitation, const NodeWait& wait) {
  const Address address = address_of(invitation.name);
  Socket connection = local_socket(wait.rank);
  while (connect(connection.get(), address.get(), address.bytes) != 0) {
    if (errno != EAGAIN && errno != EINTR) {
      throw failure(wait.rank, fmt::format("rank {} is not reached", wait.leader));
    }
    wait_for({}, wait, [&] { return is_late(wait.rank, wait); });
  }
  if (user_of(connection) != geteuid()) {
    throw Error(ErrorCode::transport_failure, wait.leader,
                fmt::format("ranks of one NIC: found another user as rank {}; allowed: user {}",
                            wait.leader, geteuid()));
  }
  return connection;
}

} // namespace

NodeDescriptors come_to_node(std::span<const std::uint8_t> invitation, std::uint16_t place,
                             std::uint16_t ranks, const NodeWait& wait) {
  if (invitation.size() != sizeof(InvitationBody)) {
    throw Error(ErrorCode::mismatch, wait.leader,
                fmt::format("ranks of one NIC: rank {} sent an invitation of {} bytes; due are {}",
                            wait.leader, invitation.size(), sizeof(InvitationBody)));
  }
  const auto& body = wire::view_as<InvitationBody>(invitation.data());
  const Socket connection = connected_to(body, wait);
  const RequestBody request{body.token, wire::be16(place)};
  if (send(connection.get(), &request, sizeof(request), MSG_NOSIGNAL) != sizeof(request)) {
    throw failure(wait.rank, fmt::format("rank {} is gone", wait.leader));
  }
  std::vector<Socket> found;
  while (found.size() < ranks + std::size_t{1}) {
    wait_for({{connection.get(), POLLIN, 0}}, wait, [&] { return is_late(wait.rank, wait); });
    for (Socket& descriptor : receive_descriptors(connection, wait)) {
      found.push_back(std::move(descriptor));
    }
  }
  NodeDescriptors descriptors;
  descriptors.memory = std::move(found.front());
  for (std::size_t bell = 1; bell <= ranks; ++bell) {
    descriptors.bells.push_back(std::move(found[bell]));
  }
  return descriptors;
}

} // namespace weir::host
