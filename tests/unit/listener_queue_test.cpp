// SPDX-License-Identifier: BSD-3-Clause
#include "control/listener_queue.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

namespace weir::control::listener_queue_test {
namespace {

/// Listens, and accepts nobody unless asked.
class ListenerQueue : public testing::Test {
 protected:
  ListenerQueue() {
    const std::string file = path();
    std::memcpy(address_.sun_path, file.c_str(), file.size());
    unlink(file.c_str());
  }

  ~ListenerQueue() override {
    for (const int one : open_) {
      close(one);
    }
    unlink(path().c_str());
  }

  static std::string path() {
    return testing::TempDir() + "/weir-listener-" + std::to_string(getpid()) + ".sock";
  }

  int make() {
    open_.push_back(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    return open_.back();
  }

  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&address_); }

  int listen_there() {
    const int server = make();
    EXPECT_EQ(bind(server, address(), sizeof address_), 0);
    EXPECT_EQ(listen(server, 4), 0);
    return server;
  }

  void call() { EXPECT_EQ(connect(make(), address(), sizeof address_), 0); }

 private:
  sockaddr_un address_{.sun_family = AF_UNIX, .sun_path = {}};
  std::vector<int> open_;
};

TEST_F(ListenerQueue, HasWhoeverIsNotAccepted) {
  const int server = listen_there();
  EXPECT_EQ(waiting_callers(path()), 0u);
  call();
  EXPECT_EQ(waiting_callers(path()), 1u);
  call();
  EXPECT_EQ(waiting_callers(path()), 2u);
  close(accept(server, nullptr, nullptr));
  EXPECT_EQ(waiting_callers(path()), 1u);
}

TEST_F(ListenerQueue, HasNobodyWhereNobodyListens) {
  EXPECT_EQ(waiting_callers(path()), 0u) << "no such file";
  EXPECT_EQ(bind(make(), address(), sizeof(sockaddr_un)), 0);
  EXPECT_EQ(waiting_callers(path()), 0u);
}

} // namespace
} // namespace weir::control::listener_queue_test
