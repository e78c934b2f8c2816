// SPDX-License-Identifier: BSD-3-Clause

/// The manager's calls to switches.

#include "manager/switch_calls.hpp"
#include "net/listening_socket.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace weir::manager::switch_calls_test {
namespace {

/// gRPC's threads are its own. None of them may be the last that has a channel.
TEST(SwitchCalls, MayEndWhenTheirAnswersCome) {
  const test::TemporaryFolder folder("weir-silent");
  const std::string path = folder.path() / "socket";
  const auto silent = net::ListeningSocket::at_path(path); // takes connections and says nothing
  Config config{.site = jobs::Site(plan::Topology({"host"}, {"leaf"}))};
  config.site.control = {"unix:" + path};
  unsigned answers = 0;
  const SwitchEvents events{
      .claimed = [&](auto, const auto&, const auto&) { ++answers; },
      .ordered = [](auto, auto, const auto&) {},
      .seen = [](auto, const auto&) {},
      .watch_ended = [&](auto, const auto&) { ++answers; },
  };
  constexpr unsigned rounds = 1500;
  for (unsigned round = 0; round < rounds; ++round) {
    Mailbox mailbox;
    const auto work = [&] {
      for (const Mailbox::Work& work : mailbox.take(std::chrono::milliseconds(1))) {
        work();
      }
    };
    std::thread worker([&] {
      while (!mailbox.is_closed()) {
        work();
      }
      work();
    });
    std::optional<SwitchCalls> calls(std::in_place, config, mailbox, events);
    calls->claim(0, {});
    calls->watch(0, {});
    std::this_thread::sleep_for(std::chrono::microseconds(round % 300));
    calls.reset();
    mailbox.close();
    worker.join();
  }
  EXPECT_EQ(answers, 2 * rounds);
}

} // namespace
} // namespace weir::manager::switch_calls_test
