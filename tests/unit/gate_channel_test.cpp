// SPDX-License-Identifier: BSD-3-Clause

/// What weir-gate, perhaps taken over, can say to the switch, and how it can end.

#include "gate/channel.hpp"
#include "gate/process.hpp"
#include "support/comes_true.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace weir::gate::gate_channel_test {
namespace {

/// Both ends, as Process makes them.
class Channel {
 public:
  Channel() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_.data()), 0); }

  ~Channel() {
    close(ends_[0]);
    close(ends_[1]);
  }

  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  int of_switch() const { return ends_[0]; }

  int of_gate() const { return ends_[1]; }

  /// Says what send() would not.
  void say(std::string_view bytes, const std::vector<int>& descriptors) {
    std::string said(bytes);
    iovec part{said.data(), said.size()};
    std::vector<char> control(CMSG_SPACE(descriptors.size() * sizeof(int)));
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (!descriptors.empty()) {
      header.msg_control = control.data();
      header.msg_controllen = control.size();
      cmsghdr* const first = CMSG_FIRSTHDR(&header);
      first->cmsg_level = SOL_SOCKET;
      first->cmsg_type = SCM_RIGHTS;
      first->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
      std::memcpy(CMSG_DATA(first), descriptors.data(), descriptors.size() * sizeof(int));
    }
    ASSERT_EQ(sendmsg(of_gate(), &header, 0), static_cast<ssize_t>(said.size()));
  }

 private:
  std::array<int, 2> ends_{};
};

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

constexpr std::string_view kConnection = "\x01";
constexpr std::string_view kEnded = "\x02";

TEST(GateChannel, BringsAConnection) {
  Channel channel;
  ASSERT_TRUE(send(channel.of_gate(), {News::connection, "", STDIN_FILENO}));
  const auto message = receive(channel.of_switch());
  ASSERT_TRUE(message);
  EXPECT_EQ(message->news, News::connection);
  EXPECT_GE(message->descriptor, 0);
  close(message->descriptor);
}

TEST(GateChannel, BringsWords) {
  Channel channel;
  ASSERT_TRUE(send(channel.of_gate(), {News::files, std::string(3000, 'x')}));
  const auto message = receive(channel.of_switch());
  ASSERT_TRUE(message);
  EXPECT_EQ(message->text, std::string(kMostTextBytes, 'x'));
  EXPECT_FALSE(receive(channel.of_switch())) << "nothing more was said";
}

/// The switch has room for so many descriptors, and would serve nobody without.
TEST(GateChannel, LeavesNoDescriptorsBehind) {
  Channel channel;
  const std::vector<std::pair<std::string_view, std::size_t>> lies{
      {kEnded, 1}, {kConnection, 0}, {kConnection, 2}, {kConnection, 3}, {kEnded, 2}, {"\x63", 1}};
  const std::ptrdiff_t before = open_descriptors();
  for (const auto& [bytes, count] : lies) {
    channel.say(bytes, std::vector<int>(count, STDIN_FILENO));
    const auto message = receive(channel.of_switch());
    if (message && message->descriptor >= 0) {
      EXPECT_EQ(message->news, News::connection);
      close(message->descriptor); // as its taker does
    }
    EXPECT_EQ(open_descriptors(), before) << count << " descriptors";
  }
}

/// A program that Process takes for weir-gate, because it is beside this one.
class FalseGate {
 public:
  explicit FalseGate(std::string_view script) {
    std::ofstream(path_) << "#!/bin/sh\n" << script << '\n';
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }

  ~FalseGate() { std::filesystem::remove(path_); }

  FalseGate(const FalseGate&) = delete;
  FalseGate& operator=(const FalseGate&) = delete;

 private:
  const std::filesystem::path path_ =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "weir-gate";
};

/// Its child has the channel, which so does not hang up.
TEST(GateProcess, ThatLeavesItsChannelToAChildIsSeenToEnd) {
  const FalseGate gate("sleep 5 & exit 0");
  std::vector<Incident> told;
  Process process({}, {&kOfSwitch, Certificates::required, {}},
                  [&](Incident incident, const std::string&) { told.push_back(incident); });
  EXPECT_TRUE(test::comes_true(
      [&] {
        process.look_after(Process::Clock::now());
        return !told.empty();
      },
      std::chrono::seconds(3)));
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.front(), Incident::acceptor_ended);
}

TEST(GateOrders, AreReadAsTheyWereGiven) {
  for (const Profile* const profile : {&kOfSwitch, &kOfManager}) {
    for (const Certificates certificates : {Certificates::required, Certificates::asked_for}) {
      const auto read = orders_in(words_of({profile, certificates, {"a.pem", "a.key", "b.pem"}}));
      ASSERT_TRUE(read);
      EXPECT_EQ(read->profile, profile);
      EXPECT_EQ(read->certificates, certificates);
      EXPECT_EQ(read->files.certificate, "a.pem");
      EXPECT_EQ(read->files.key, "a.key");
      EXPECT_EQ(read->files.client_authority, "b.pem");
    }
  }
}

TEST(GateOrders, OfNobodyAreNone) {
  const std::vector<std::string> good = words_of({&kOfSwitch, Certificates::required, {}});
  EXPECT_TRUE(orders_in(good));
  EXPECT_FALSE(orders_in({}));
  EXPECT_FALSE(orders_in(std::span(good).first(kOrderWords - 1)));
  for (const std::size_t word : {0, 1}) {
    std::vector<std::string> bad = good;
    bad[word] = "another";
    EXPECT_FALSE(orders_in(bad)) << word;
  }
}

} // namespace
} // namespace weir::gate::gate_channel_test
