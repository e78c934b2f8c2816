// SPDX-License-Identifier: BSD-3-Clause
#include "gate/channel.hpp"

#include <array>
#include <cstring>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace weir::gate {
namespace {

/// Room for one descriptor, and for the padding behind it, which a receiver must not offer: a
/// second one would fit there.
union Control {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

int descriptor_in(msghdr& header) {
  int descriptor = -1;
  const cmsghdr* const part = CMSG_FIRSTHDR(&header);
  if (part != nullptr && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS &&
      part->cmsg_len == CMSG_LEN(sizeof(int))) {
    std::memcpy(&descriptor, CMSG_DATA(part), sizeof descriptor);
  }
  return descriptor;
}

} // namespace

bool send(int channel, const Message& message) {
  auto news = static_cast<std::uint8_t>(message.news);
  std::string text = message.text.substr(0, kMostTextBytes);
  std::array<iovec, 2> parts{{{&news, 1}, {text.data(), text.size()}}};
  Control control{};
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = parts.size();
  if (message.descriptor >= 0) {
    header.msg_control = &control;
    header.msg_controllen = sizeof control;
    cmsghdr* const part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(part), &message.descriptor, sizeof message.descriptor);
  }
  return sendmsg(channel, &header, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

std::optional<Message> receive(int channel) {
  std::uint8_t news = 0;
  std::array<char, kMostTextBytes> text;
  std::array<iovec, 2> parts{{{&news, 1}, {text.data(), text.size()}}};
  Control control{};
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = parts.size();
  header.msg_control = &control;
  header.msg_controllen = CMSG_LEN(sizeof(int));
  const ssize_t count = recvmsg(channel, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count <= 0) {
    return std::nullopt;
  }
  const Message message{static_cast<News>(news),
                        {text.data(), static_cast<std::size_t>(count - 1)},
                        descriptor_in(header)};
  if ((message.news == News::connection) != (message.descriptor >= 0)) {
    close(message.descriptor);
    return std::nullopt;
  }
  return message;
}

} // namespace weir::gate
