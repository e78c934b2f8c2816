// SPDX-License-Identifier: BSD-3-Clause

/// Frames with codes, over a link whose owner changes them.

#include "host/base/stream.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace weir::host::sealed_stream_test {
namespace {

void seal_something() {
  const std::array<std::uint8_t, 16> key{1};
  mac_of(key, {key});
}

/// Made before libcrypto is first used, so it goes after all that libcrypto has registered.
struct LastToGo {
  ~LastToGo() {
    try {
      seal_something();
    } catch (const std::exception&) {
      _exit(1);
    }
  }
};

/// As for a group that is a global object.
TEST(SealDeathTest, SealsWhileTheProcessExits) {
  EXPECT_EXIT(
      {
        static const LastToGo last;
        seal_something();
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

constexpr std::size_t kHeaderBytes = 9;
constexpr std::size_t kCodeBytes = 32;

std::pair<Socket, Socket> socket_pair() {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  return {Socket([&] { return ends[0]; }), Socket([&] { return ends[1]; })};
}

Mac key(std::uint8_t byte) {
  Mac key;
  key.fill(byte);
  return key;
}

/// Two ends with keys, and between them the one who forwards what he likes.
class Attacked {
 public:
  Attacked() : Attacked(socket_pair(), socket_pair()) {}

  FramedStream& sender() { return sender_; }

  FramedStream& receiver() { return receiver_; }

  /// What the sender has sent since the last time.
  std::string taken() {
    std::string bytes(65536, '\0');
    const ssize_t count = recv(sender_side_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return bytes;
  }

  void forward(const std::string& bytes) {
    EXPECT_EQ(send(receiver_side_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  void reflect(const std::string& bytes) {
    EXPECT_EQ(send(sender_side_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

 private:
  Attacked(std::pair<Socket, Socket> left, std::pair<Socket, Socket> right)
      : sender_(std::move(left.first)), sender_side_(std::move(left.second)),
        receiver_side_(std::move(right.first)), receiver_(std::move(right.second)) {
    sender_.seal(key(1), key(2));
    receiver_.seal(key(2), key(1));
  }

  FramedStream sender_;
  Socket sender_side_;
  Socket receiver_side_;
  FramedStream receiver_;
};

/// Two frames: kind 5 with "abc", and kind 6 with nothing.
std::pair<std::string, std::string> two_frames(Attacked& link) {
  const std::array<std::uint8_t, 3> body{'a', 'b', 'c'};
  link.sender().send(5, body);
  std::string first = link.taken();
  link.sender().send(6, {});
  return {std::move(first), link.taken()};
}

/// The kinds that the receiver reads until it closes.
std::vector<int> kinds_read(FramedStream& stream) {
  std::vector<int> kinds;
  while (const std::optional<ControlFrame> frame = stream.receive()) {
    kinds.push_back(frame->kind);
  }
  return kinds;
}

TEST(SealedStream, PassesWhatNobodyChanged) {
  Attacked link;
  const auto [first, second] = two_frames(link);
  EXPECT_EQ(first.size(), kHeaderBytes + 3 + kCodeBytes);
  EXPECT_EQ(second.size(), kHeaderBytes + kCodeBytes);
  link.forward(first + second);
  EXPECT_EQ(kinds_read(link.receiver()), (std::vector<int>{5, 6}));
  EXPECT_TRUE(link.receiver().is_open());
}

TEST(SealedStream, ClosesAtTheFirstFrameThatSomebodyChanged) {
  struct Row {
    const char* text;
    std::function<std::string(std::string, std::string)> change;
    std::vector<int> read;
  };

  const auto flipped = [](std::string bytes, std::size_t at) {
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    return bytes;
  };
  const std::vector<Row> rows{
      {"the kind", [&](auto a, auto b) { return flipped(a, 4) + b; }, {}},
      {"the body", [&](auto a, auto b) { return flipped(a, kHeaderBytes) + b; }, {}},
      {"the code's last byte", [&](auto a, auto b) { return flipped(a, a.size() - 1) + b; }, {}},
      {"the second's kind", [&](auto a, auto b) { return a + flipped(b, 4); }, {5}},
      {"the first repeated", [](auto a, auto) { return a + a; }, {5}},
      {"the first left out", [](auto, auto b) { return b; }, {}},
      {"the order", [](auto a, auto b) { return b + a; }, {}},
      {"the code cut short", [](auto a, auto b) { return a.substr(0, a.size() - 1) + b; }, {}},
      {"no code at all", [](auto a, auto b) { return a.substr(0, kHeaderBytes + 3) + b; }, {}},
      {"a shorter body, the code in its place",
       [](auto a, auto b) {
         a[8] = 0;
         return a + b;
       },
       {}},
  };
  for (const Row& row : rows) {
    Attacked link;
    const auto [first, second] = two_frames(link);
    link.forward(row.change(first, second));
    EXPECT_EQ(kinds_read(link.receiver()), row.read) << row.text;
    EXPECT_FALSE(link.receiver().is_open()) << row.text;
    EXPECT_NE(link.receiver().why_closed().find("wrong authentication code"), std::string::npos)
        << row.text << ": " << link.receiver().why_closed();
  }
}

TEST(SealedStream, WaitsForACodeThatIsNotThereYet) {
  Attacked link;
  const std::string first = two_frames(link).first;
  link.forward(first.substr(0, first.size() - 1));
  EXPECT_TRUE(kinds_read(link.receiver()).empty());
  EXPECT_TRUE(link.receiver().is_open());
  link.forward(first.substr(first.size() - 1));
  EXPECT_EQ(kinds_read(link.receiver()), (std::vector<int>{5}));
}

TEST(SealedStream, TakesNoFrameOfItsOwn) {
  Attacked link;
  link.reflect(two_frames(link).first);
  EXPECT_TRUE(kinds_read(link.sender()).empty());
  EXPECT_FALSE(link.sender().is_open());
}

/// The limit of a body leaves room for its code. The stream reads in blocks of 16 KiB: here the
/// header and the body fill two.
TEST(SealedStream, ReadsTheLongestBodyThatIsAllowed) {
  Attacked link;
  const std::vector<std::uint8_t> body(2 * 16384 - kHeaderBytes);
  link.receiver().allow_bodies_up_to(static_cast<std::uint32_t>(body.size()));
  link.sender().send(5, body);
  link.forward(link.taken());
  EXPECT_EQ(kinds_read(link.receiver()), (std::vector<int>{5}));
}

} // namespace
} // namespace weir::host::sealed_stream_test
