// SPDX-License-Identifier: BSD-3-Clause

/// Whether what was written has been read, as seen from the end where it was written.

#include "files/unread_bytes.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weir::files::unread_bytes_test {
namespace {

using namespace std::chrono_literals;

constexpr std::array kWords{'w', 'h', 'y'};

/// Two descriptors; what is written to the second one is read from the first.
class Ends {
 public:
  explicit Ends(int (*make)(int*)) { EXPECT_EQ(make(ends_.data()), 0); }

  ~Ends() {
    close(ends_[0]);
    close(ends_[1]);
  }

  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;

  [[nodiscard]] int writers() const { return ends_[1]; }

  void write_words() const { EXPECT_EQ(write(writers(), kWords.data(), kWords.size()), 3); }

  void read_one() const {
    char letter = 0;
    EXPECT_EQ(read(ends_[0], &letter, 1), 1);
  }

 private:
  std::array<int, 2> ends_{};
};

int make_pipe(int* ends) {
  return pipe(ends);
}

int make_sockets(int* ends) {
  return socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
}

class UnreadBytes : public testing::TestWithParam<int (*)(int*)> {
 protected:
  const Ends ends_{GetParam()};
};

TEST_P(UnreadBytes, AreThereUntilTheLastIsRead) {
  EXPECT_EQ(unread_bytes(ends_.writers()), 0);
  ends_.write_words();
  for (std::size_t at = 0; at < kWords.size(); ++at) {
    EXPECT_GE(unread_bytes(ends_.writers()), kWords.size() - at);
    ends_.read_one();
  }
  EXPECT_EQ(unread_bytes(ends_.writers()), 0);
}

TEST_P(UnreadBytes, OfASlowReaderAreWaitedFor) {
  ends_.write_words();
  std::atomic<bool> reads = false;
  std::thread reader([&] {
    std::this_thread::sleep_for(20ms);
    reads = true;
    for (std::size_t at = 0; at < kWords.size(); ++at) {
      ends_.read_one();
    }
  });
  EXPECT_TRUE(wait_until_read(ends_.writers(), 60s));
  EXPECT_TRUE(reads);
  reader.join();
}

TEST_P(UnreadBytes, OfAReaderThatHasStoppedAreNotWaitedForLonger) {
  ends_.write_words();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(wait_until_read(ends_.writers(), 20ms));
  EXPECT_GE(std::chrono::steady_clock::now() - start, 20ms);
}

INSTANTIATE_TEST_SUITE_P(OfAPipeAndOfASocket, UnreadBytes,
                         testing::Values(make_pipe, make_sockets));

TEST(UnreadBytes, AreInNoFileAndInNothingThatIsClosed) {
  const test::TemporaryFolder folder("weir-unread");
  const int file = open((folder.path() / "log").c_str(), O_CREAT | O_RDWR, S_IRUSR | S_IWUSR);
  ASSERT_EQ(write(file, kWords.data(), kWords.size()), 3);
  ASSERT_EQ(lseek(file, 0, SEEK_SET), 0); // FIONREAD would tell three bytes from here
  EXPECT_EQ(unread_bytes(file), 0);
  close(file);
  EXPECT_EQ(unread_bytes(file), 0);
}

} // namespace
} // namespace weir::files::unread_bytes_test
