// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/packet_socket.hpp"

#include "host/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23 // Linux 4.20
#endif

namespace weir::host {
namespace {

constexpr std::size_t kBurst = BurstMemory::kFrames;
constexpr int kBufferBytes = 8 << 20; // several windows of frames, so that a burst is not lost

[[noreturn]] void fail(const std::string& interface, std::string_view what, int error) {
  throw Error(ErrorCode::transport_failure, std::nullopt,
              fmt::format("interface {}: {}: {}", interface, what, std::strerror(error)));
}

} // namespace

PacketSocket::PacketSocket(const std::string& interface) : interface_(interface) {
  const unsigned index = if_nametoindex(interface.c_str());
  if (index == 0) {
    fail(interface, "not found", errno);
  }
  socket_ = Socket([] { return socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
  if (!socket_) {
    fail(interface, "no packet socket (CAP_NET_RAW is needed)", errno);
  }
  const int on = 1;
  if (setsockopt(socket_.get(), SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) != 0) {
    fail(interface, "PACKET_IGNORE_OUTGOING", errno);
  }
  // The kernel reduces values over its limit, which is good enough.
  for (const int option : {SO_RCVBUF, SO_SNDBUF}) {
    setsockopt(socket_.get(), SOL_SOCKET, option, &kBufferBytes, sizeof(kBufferBytes));
  }
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  if (ioctl(socket_.get(), SIOCGIFHWADDR, &request) != 0) {
    fail(interface, "no hardware address", errno);
  }
  std::memcpy(mac_.bytes.data(), request.ifr_hwaddr.sa_data, mac_.bytes.size());
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(index);
  if (bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    fail(interface, "cannot be bound", errno);
  }
  packet_mreq membership{};
  membership.mr_ifindex = static_cast<int>(index);
  membership.mr_type = PACKET_MR_PROMISC; // our MAC may differ from the interface's
  setsockopt(socket_.get(), SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership, sizeof(membership));
}

bool PacketSocket::has_link() const {
  ifreq request{};
  interface_.copy(request.ifr_name, IFNAMSIZ - 1);
  return ioctl(socket_.get(), SIOCGIFFLAGS, &request) != 0 ||
         (request.ifr_flags & IFF_RUNNING) != 0;
}

/// What has come already stays. A socket that the kernel gives no filter receives what it did
/// before: the transport looks at each queue pair itself.
void PacketSocket::keep_only(QueuePairRange queue_pairs) {
  QueuePairFilter program = filter_for(queue_pairs);
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  setsockopt(socket_.get(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
}

std::size_t PacketSocket::receive(FrameReader& reader) {
  const BurstMemory incoming = BurstMemory::take();
  std::array<mmsghdr, kBurst> messages{};
  std::array<iovec, kBurst> vectors{};
  for (std::size_t i = 0; i < kBurst; ++i) {
    vectors[i] = {incoming.frame(i), BurstMemory::kFrameBytes};
    messages[i].msg_hdr.msg_iov = &vectors[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  const int count = recvmmsg(socket_.get(), messages.data(), kBurst, MSG_DONTWAIT, nullptr);
  if (count < 0) {
    if (errno == EAGAIN || errno == EINTR || errno == ENETDOWN) {
      return 0;
    }
    fail(interface_, "receiving failed", errno);
  }
  for (int i = 0; i < count; ++i) {
    const auto index = static_cast<std::size_t>(i);
    reader.accept({incoming.frame(index), messages[index].msg_len});
  }
  return static_cast<std::size_t>(count);
}

std::span<std::uint8_t> PacketSocket::reserve(std::size_t bytes) {
  if (lengths_.size() == kBurst) {
    flush();
  }
  if (lengths_.size() == kBurst || bytes > BurstMemory::kFrameBytes) {
    return {};
  }
  if (!outgoing_) {
    outgoing_ = BurstMemory::take();
  }
  return {outgoing_.frame(lengths_.size()), bytes};
}

void PacketSocket::commit(std::size_t frame_bytes) {
  assert(lengths_.size() < kBurst && frame_bytes <= BurstMemory::kFrameBytes);
  lengths_.push_back(frame_bytes);
}

/// A frame that the kernel does not take is lost as on a wire; the transport sends it again.
void PacketSocket::flush() {
  std::array<mmsghdr, kBurst> messages{};
  std::array<iovec, kBurst> vectors{};
  for (std::size_t i = 0; i < lengths_.size(); ++i) {
    vectors[i] = {outgoing_.frame(i), lengths_[i]};
    messages[i].msg_hdr.msg_iov = &vectors[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  std::size_t done = 0;
  while (done < lengths_.size()) {
    const int count = sendmmsg(socket_.get(), messages.data() + done,
                               static_cast<unsigned>(lengths_.size() - done), MSG_DONTWAIT);
    if (count > 0) {
      done += static_cast<std::size_t>(count);
      continue;
    }
    if (errno == EMSGSIZE) {
      fail(interface_, fmt::format("its MTU does not hold a frame of {} bytes", lengths_[done]),
           errno);
    }
    if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS && errno != ENETDOWN) {
      fail(interface_, "sending failed", errno);
    }
    pollfd entry{socket_.get(), POLLOUT, 0};
    if (errno == ENETDOWN || poll(&entry, 1, 1) != 1) {
      break;
    }
  }
  lengths_.clear();
  outgoing_ = BurstMemory();
}

} // namespace weir::host
