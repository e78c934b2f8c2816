// SPDX-License-Identifier: BSD-3-Clause
#include "host/nccl/descriptor.hpp"

#include "host/nccl/call.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <unistd.h>

namespace weir::nccl {

Descriptor::Descriptor(int number) : number_(number) {
  if (number_ < 0) {
    throw Failure(Result::system_error, fmt::format("socket: {}", std::strerror(errno)));
  }
}

Descriptor::~Descriptor() {
  if (number_ >= 0) {
    close(number_);
  }
}

int error_of_socket(int socket) {
  int error = 0;
  socklen_t length = sizeof(error);
  return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

} // namespace weir::nccl
