// SPDX-License-Identifier: BSD-3-Clause

/// RingJournal: what a switch remembers of its rings across restarts, and files that it cannot use.

#include "control/ring_journal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace weir::control {
namespace {

using Addresses = std::vector<std::string>;

class RingJournalTest : public testing::Test {
 protected:
  RingJournalTest() : directory_(testing::TempDir() + "weir-journal-" + std::to_string(getpid())) {
    std::filesystem::remove_all(directory_);
  }

  ~RingJournalTest() override { std::filesystem::remove_all(directory_); }

  std::string text() const {
    std::ifstream stream(directory_ / "rings");
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  void write(const std::string& text) const {
    std::filesystem::create_directories(directory_);
    std::ofstream(directory_ / "rings") << text;
  }

  std::string error_of_start() const {
    try {
      const RingJournal journal(directory_);
      return "none";
    } catch (const JournalError& error) {
      return error.what();
    }
  }

  std::filesystem::path directory_;
};

ring::RingSpec ring_of(const Addresses& addresses) {
  ring::RingSpec ring{.id = 7, .window = 4, .max_message_bytes = 4096};
  for (const std::string& address : addresses) {
    ring.members.push_back({*wire::parse_ip(address), 3});
  }
  return ring;
}

std::vector<Addresses> remembered_by(const RingJournal& journal) {
  std::vector<Addresses> rings;
  for (const ring::RingSpec& ring : journal.remembered()) {
    Addresses& addresses = rings.emplace_back();
    for (const ring::Member& member : ring.members) {
      addresses.push_back(wire::to_string(member.ip));
    }
  }
  return rings;
}

const Addresses kFour{"10.0.0.1", "10.0.0.2", "10.0.0.3"};
const Addresses kSix{"fd00::1", "fd00::2"};

TEST_F(RingJournalTest, RemembersEachRingOnce) {
  {
    RingJournal journal(directory_ / ""); // makes the directory
    EXPECT_TRUE(journal.remembered().empty());
    journal.remember(ring_of(kFour));
    journal.remember(ring_of(kSix));
    journal.remember(ring_of(kFour));
  }
  EXPECT_EQ(text(), "10.0.0.1 10.0.0.2 10.0.0.3\nfd00::1 fd00::2\n");
  EXPECT_EQ(remembered_by(RingJournal(directory_)), (std::vector{kFour, kSix}));
}

TEST_F(RingJournalTest, AnotherOrderHasOtherNeighbours) {
  RingJournal journal(directory_);
  journal.remember(ring_of(kFour));
  journal.remember(ring_of({kFour[1], kFour[0], kFour[2]}));
  EXPECT_EQ(journal.remembered().size(), 2u);
}

/// However many rings a caller makes of the same hosts.
TEST_F(RingJournalTest, RemembersNoRingWithoutNewNeighbours) {
  RingJournal journal(directory_);
  Addresses hosts{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"};
  do {
    journal.remember(ring_of(hosts));
  } while (std::ranges::next_permutation(hosts).found);
  EXPECT_LE(journal.remembered().size(), 5u * 4u) << "each line has neighbours that are new";
  EXPECT_EQ(RingJournal(directory_).remembered().size(), journal.remembered().size());
}

TEST_F(RingJournalTest, RemembersWhoseRingItWas) {
  ring::RingSpec ring = ring_of(kFour);
  ring.tenant = "red@dc1";
  RingJournal(directory_).remember(ring);
  EXPECT_EQ(text(), "10.0.0.1 10.0.0.2 10.0.0.3 tenant=red@dc1\n");
  EXPECT_EQ(RingJournal(directory_).remembered()[0].tenant, "red@dc1");
  write("10.0.0.1 10.0.0.2 tenant=red tenant=blue\n");
  EXPECT_NE(error_of_start().find(":1: found 'tenant=blue'; allowed: IP addresses, then tenant="),
            std::string::npos)
      << error_of_start();
}

TEST_F(RingJournalTest, TakesHalfALineForARingThatWasNeverAdded) {
  write("10.0.0.1 10.0.0.2 10.0.0.3\nfd00::1 fd0");
  RingJournal journal(directory_);
  EXPECT_EQ(remembered_by(journal), std::vector<Addresses>{kFour});
  journal.remember(ring_of(kSix));
  EXPECT_EQ(text(), "10.0.0.1 10.0.0.2 10.0.0.3\nfd00::1 fd00::2\n");
}

TEST_F(RingJournalTest, NamesWhatItCannotRead) {
  const std::string file = (directory_ / "rings").string();
  write("10.0.0.1 10.0.0.2\n10.0.0.1 ten\n");
  EXPECT_EQ(error_of_start().find(file + ":2: found 'ten'; allowed: IP addresses"), 0u)
      << error_of_start();
  write("10.0.0.1\n");
  EXPECT_EQ(error_of_start(), file + ":1: found 1 addresses; allowed: 2 to 256");
  write("");
  std::filesystem::remove(directory_ / "rings");
  std::filesystem::create_directory(directory_ / "rings");
  EXPECT_NE(error_of_start().find("Is a directory"), std::string::npos) << error_of_start();
}

TEST_F(RingJournalTest, NamesADirectoryThatCannotBe) {
  write("");
  directory_ /= "rings"; // a file
  EXPECT_EQ(error_of_start().find("state_directory: "), 0u) << error_of_start();
  directory_ = directory_.parent_path();
}

/// A disk that is full takes half a line; the file stays as it was, and the ring is not remembered.
TEST_F(RingJournalTest, LeavesTheFileWholeWhenTheDiskIsFull) {
  RingJournal journal(directory_);
  journal.remember(ring_of(kSix));
  const std::string before = text();
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit full{before.size() + 5, limit.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &full);
  EXPECT_THROW(journal.remember(ring_of(kFour)), JournalError);
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(text(), before);
  EXPECT_EQ(remembered_by(journal), std::vector<Addresses>{kSix});
}

} // namespace
} // namespace weir::control
