// SPDX-License-Identifier: BSD-3-Clause
#include "control/listener_queue.hpp"

#include "files/descriptor.hpp"

#include <array>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <optional>
#include <span>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace weir::control {
namespace {

struct Question {
  nlmsghdr header{.nlmsg_len = sizeof(Question),
                  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP};
  unix_diag_req listeners{.sdiag_family = AF_UNIX,
                          .udiag_states = 1u << TCP_LISTEN,
                          .udiag_show = UDIAG_SHOW_VFS | UDIAG_SHOW_RQLEN};
};

/// What the kernel says of one listener.
struct Listener {
  unix_diag_vfs file{};
  std::uint32_t waiting = 0;
};

Listener listener_in(const nlmsghdr& message) {
  Listener listener;
  const auto* bytes = reinterpret_cast<const char*>(&message);
  std::size_t at = NLMSG_LENGTH(NLMSG_ALIGN(sizeof(unix_diag_msg)));
  while (at + sizeof(nlattr) <= message.nlmsg_len) {
    const auto* attribute = reinterpret_cast<const nlattr*>(bytes + at);
    const char* value = bytes + at + NLA_HDRLEN;
    if (attribute->nla_type == UNIX_DIAG_VFS) {
      listener.file = *reinterpret_cast<const unix_diag_vfs*>(value);
    } else if (attribute->nla_type == UNIX_DIAG_RQLEN) {
      listener.waiting = reinterpret_cast<const unix_diag_rqlen*>(value)->udiag_rqueue;
    }
    at += NLA_ALIGN(attribute->nla_len);
  }
  return listener;
}

/// The kernel's own numbers of devices have 20 bits for the minor one.
bool is_file(const unix_diag_vfs& file, const struct stat& status) {
  return file.udiag_vfs_ino == static_cast<std::uint32_t>(status.st_ino) &&
         file.udiag_vfs_dev == (major(status.st_dev) << 20 | minor(status.st_dev));
}

/// nullopt: the answer goes on.
std::optional<std::uint32_t> found_in(std::span<const char> answer, const struct stat& status) {
  auto left = static_cast<unsigned>(answer.size());
  const auto* message = reinterpret_cast<const nlmsghdr*>(answer.data());
  for (; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
    if (message->nlmsg_type != SOCK_DIAG_BY_FAMILY) {
      return 0; // it is the end, or an error
    }
    const Listener listener = listener_in(*message);
    if (is_file(listener.file, status)) {
      return listener.waiting;
    }
  }
  return std::nullopt;
}

} // namespace

std::uint32_t waiting_callers(const std::filesystem::path& socket) {
  struct stat status {};

  const files::Descriptor kernel(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  const Question question;
  if (stat(socket.c_str(), &status) != 0 ||
      send(kernel.get(), &question, sizeof question, 0) != sizeof question) {
    return 0;
  }
  alignas(nlmsghdr) std::array<char, 16384> answer{};
  while (true) {
    const ssize_t bytes = recv(kernel.get(), answer.data(), answer.size(), 0);
    if (bytes <= 0) {
      return 0;
    }
    if (const auto waiting = found_in({answer.data(), static_cast<std::size_t>(bytes)}, status)) {
      return *waiting;
    }
  }
}

} // namespace weir::control
