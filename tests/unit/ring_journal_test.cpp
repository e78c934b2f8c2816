// SPDX-License-Identifier: BSD-3-Clause

/// RingJournal: what a switch remembers of its rings across restarts, and files that it cannot use.

#include "control/forgotten_rings.hpp"
#include "control/ring_journal.hpp"
#include "text/printable.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <iterator>
#include <random>
#include <string>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace weir::control::ring_journal_test {
namespace {

using Addresses = std::vector<std::string>;

class RingJournalTest : public testing::Test {
 protected:
  RingJournalTest() : directory_(testing::TempDir() + "weir-journal-" + std::to_string(getpid())) {
    std::filesystem::remove_all(directory_);
  }

  ~RingJournalTest() override { std::filesystem::remove_all(directory_); }

  std::string file_text() const {
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
  EXPECT_EQ(file_text(), "10.0.0.1 10.0.0.2 10.0.0.3\nfd00::1 fd00::2\n");
  EXPECT_EQ(remembered_by(RingJournal(directory_)), (std::vector{kFour, kSix}));
}

/// Ranks 1 and 2 of five are this switch's: it is between rank 0 and them, and between them and
/// rank 3. No other two ranks' packets pass it.
TEST_F(RingJournalTest, RemembersOfATreeWhomTheSwitchIsBetween) {
  ring::RingSpec ring = ring_of({"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"});
  for (ring::Member& member : ring.members) {
    member.port.reset();
  }
  ring.tenant = "red";
  ring.parent = {.port = 3, .name = "spine"};
  ring.children = {{.ranks = {1, 1}, .port = {}, .name = {}},
                   {.ranks = {2, 1}, .port = {}, .name = {}}};
  {
    RingJournal journal(directory_);
    journal.remember(ring);
    journal.remember(ring);
    EXPECT_EQ(journal.remembered().size(), 3u);
  }
  EXPECT_EQ(file_text(), "10.0.0.2 10.0.0.3 tenant=red\n10.0.0.3 10.0.0.4 tenant=red\n"
                         "10.0.0.1 10.0.0.2 tenant=red\n");
  {
    RingJournal journal(directory_);
    EXPECT_EQ(remembered_by(journal),
              (std::vector<Addresses>{
                  {"10.0.0.2", "10.0.0.3"}, {"10.0.0.3", "10.0.0.4"}, {"10.0.0.1", "10.0.0.2"}}));
    journal.remember(ring);
    EXPECT_EQ(journal.remembered().size(), 3u) << "known";
    ring.children.push_back({.ranks = {3, 1}, .port = {}, .name = {}});
    journal.remember(ring);
  }
  EXPECT_EQ(remembered_by(RingJournal(directory_)).back(), (Addresses{"10.0.0.4", "10.0.0.5"}))
      << "only what is new";
  EXPECT_EQ(forget_rings_of("red", directory_), 4u);
  EXPECT_EQ(file_text(), "");
}

TEST_F(RingJournalTest, AnotherOrderHasOtherNeighbours) {
  RingJournal journal(directory_);
  journal.remember(ring_of(kFour));
  journal.remember(ring_of({kFour[1], kFour[0], kFour[2]}));
  EXPECT_EQ(journal.remembered().size(), 2u);
}

/// However many rings a caller makes of the same hosts.
TEST_F(RingJournalTest, RemembersNoRingWithoutNewNeighbours) {
  std::size_t remembered = 0;
  {
    RingJournal journal(directory_);
    Addresses hosts{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"};
    do {
      journal.remember(ring_of(hosts));
    } while (std::ranges::next_permutation(hosts).found);
    remembered = journal.remembered().size();
    EXPECT_LE(remembered, 5u * 4u) << "each line has neighbours that are new";
  }
  EXPECT_EQ(RingJournal(directory_).remembered().size(), remembered);
}

TEST_F(RingJournalTest, RemembersWhoseRingItWas) {
  ring::RingSpec ring = ring_of(kFour);
  ring.tenant = "red@dc1";
  RingJournal(directory_).remember(ring);
  EXPECT_EQ(file_text(), "10.0.0.1 10.0.0.2 10.0.0.3 tenant=red@dc1\n");
  EXPECT_EQ(RingJournal(directory_).remembered()[0].tenant, "red@dc1");
  write("10.0.0.1 10.0.0.2 tenant=red tenant=blue\n");
  EXPECT_NE(error_of_start().find(":1: found 'tenant=blue'; allowed: IP addresses, then tenant="),
            std::string::npos)
      << error_of_start();
}

/// Whatever a configuration or a certificate has for a name.
TEST_F(RingJournalTest, ReadsEveryNameBackByteForByte) {
  std::mt19937 random(7);
  std::vector<std::string> names{"my team", "tenant=red", "10.0.0.1", " ",    "%",
                                 "%41",     "a\nb",       "é",        "\\x41"};
  for (int byte = 1; byte < 256; ++byte) {
    names.emplace_back(1, static_cast<char>(byte));
  }
  for (int i = 0; i < 200; ++i) {
    std::string& name = names.emplace_back(1 + random() % 64, '\0');
    std::ranges::generate(name, [&random] { return static_cast<char>(random()); });
  }
  std::vector<std::string> written;
  {
    RingJournal journal(directory_);
    for (const std::string& name : names) {
      ring::RingSpec ring =
          ring_of({"10.1.0.1", "10.1." + std::to_string(written.size() / 200 + 1) + "." +
                                   std::to_string(written.size() % 200 + 1)});
      ring.tenant = name;
      journal.remember(ring);
      written.push_back(name);
    }
  }
  const RingJournal journal(directory_);
  ASSERT_EQ(journal.remembered().size(), written.size());
  for (std::size_t i = 0; i < written.size(); ++i) {
    EXPECT_EQ(journal.remembered()[i].tenant, written[i]) << i;
  }
}

TEST_F(RingJournalTest, TakesHalfALineForARingThatWasNeverAdded) {
  const std::string zeros(3, '\0');
  for (const std::string& half :
       {std::string("fd00::1 fd0"), std::string("f"), std::string("10.0.0.4 10.0.0.5 "),
        std::string("10.0.0.4 10.0.0.5 ten"), std::string("10.0.0.4 10.0.0.5 tenant=r"),
        std::string("10.0.0.4 10.0.0.5 tenant-escaped=my%2"), "fd00::1 fd0" + zeros, zeros}) {
    write("10.0.0.1 10.0.0.2 10.0.0.3\n" + half);
    RingJournal journal(directory_);
    EXPECT_EQ(remembered_by(journal), std::vector<Addresses>{kFour}) << half;
    journal.remember(ring_of(kSix));
    EXPECT_EQ(file_text(), "10.0.0.1 10.0.0.2 10.0.0.3\nfd00::1 fd00::2\n") << half;
  }
}

/// Whatever is no line of the journal's is somebody's data, or damaged memory.
TEST_F(RingJournalTest, LeavesADamagedFileAsItIsAndPrintsItsBytesPrintable) {
  for (const std::string& damaged :
       {std::string("no end and no address"), std::string("\x1b[2J"),
        std::string("10.0.0.1 10.0.0.2\n\x1b]0;owned\x07"),
        std::string("10.0.0.1 10.0.0.2\n\xff\xfe\n"), std::string("10.0.0.1\0 10.0.0.2\n", 19),
        std::string("10.0.0.1 x 10.0"), std::string("10.0.0.1 10.0.0.2 tenant-escaped=%zz\n"),
        std::string("10.0.0.1 10.0.0.2 tenant=\n"),
        std::string("\0\0"
                    "10.0.0.1",
                    10)}) {
    write(damaged);
    const std::string error = error_of_start();
    EXPECT_NE(error.find("; allowed: "), std::string::npos)
        << error << " of " << text::printable(damaged);
    EXPECT_TRUE(text::is_printable(error));
    EXPECT_EQ(file_text(), damaged);
  }
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

TEST_F(RingJournalTest, ForgetsTheRingsOfATenant) {
  const std::string text = "10.0.0.1 10.0.0.2 tenant=red\n10.0.0.3 10.0.0.4\n10.0.0.5 10.0.0.6 "
                           "tenant-escaped=red%20\n10.0.0.7 10.0.0.8 10.0.0.9 tenant=red\n";
  write(text);
  EXPECT_EQ(forget_rings_of("blue", directory_), 0u);
  EXPECT_EQ(file_text(), text);
  EXPECT_EQ(forget_rings_of("red", directory_), 2u);
  EXPECT_EQ(file_text(), "10.0.0.3 10.0.0.4\n10.0.0.5 10.0.0.6 tenant-escaped=red%20\n");
  EXPECT_EQ(forget_rings_of("red ", directory_), 1u);
  EXPECT_EQ(forget_rings_of("", directory_), 1u);
  EXPECT_EQ(file_text(), "");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "rings.next"));
}

TEST_F(RingJournalTest, ForgetsNothingBesideASwitchOrOfADamagedFile) {
  const std::string text = "10.0.0.1 10.0.0.2 tenant=red\n";
  write(text);
  {
    const RingJournal journal(directory_);
    EXPECT_THROW(forget_rings_of("red", directory_), JournalError);
  }
  write(text + "damaged\n");
  EXPECT_THROW(forget_rings_of("red", directory_), JournalError);
  EXPECT_EQ(file_text(), text + "damaged\n");
}

/// Runs in a process of its own, without root's right to read everything.
void as_nobody(const std::function<void()>& test) {
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    if (geteuid() == 0 && setresuid(nobody, nobody, nobody) != 0) {
      _exit(1);
    }
    test();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(RingJournalTest, IsNotEmptyBecauseItCannotBeRead) {
  write("10.0.0.1 10.0.0.2\n");
  constexpr uid_t nobody = 65534;
  ASSERT_EQ(chown(directory_.c_str(), nobody, nobody), 0);
  ASSERT_EQ(chmod(directory_.c_str(), 0700), 0);
  ASSERT_EQ(chmod((directory_ / "rings").c_str(), 0222), 0);
  as_nobody([this] {
    EXPECT_EQ(error_of_start().find((directory_ / "rings").string() +
                                    ": cannot be read: Permission denied; allowed: "),
              0u)
        << error_of_start();
  });
  ASSERT_EQ(chmod((directory_ / "rings").c_str(), 0600), 0);
  EXPECT_EQ(file_text(), "10.0.0.1 10.0.0.2\n");
}

/// Reading a process's memory at address 0 is an error of the medium (EIO).
TEST_F(RingJournalTest, IsNotEmptyBecauseTheDiskFails) {
  write("");
  const std::string journal = directory_ / "rings";
  const std::string memory = "/proc/" + std::to_string(getpid()) + "/mem";
  if (mount(memory.c_str(), journal.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    GTEST_SKIP() << "only root can put another file in its place";
  }
  const std::string error = error_of_start();
  umount(journal.c_str());
  EXPECT_NE(error.find("cannot be read: Input/output error"), std::string::npos) << error;
}

/// For each descriptor that the start takes, once when there is none.
TEST_F(RingJournalTest, IsNotEmptyBecauseNoDescriptorIsLeft) {
  write("10.0.0.1 10.0.0.2\n");
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const int next = dup(0);
  close(next);
  bool has_started = false;
  for (rlim_t left = 0; left < 8 && !has_started; ++left) {
    const rlimit few{static_cast<rlim_t>(next) + left, limit.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    const std::string error = error_of_start();
    setrlimit(RLIMIT_NOFILE, &limit);
    has_started = error == "none";
    EXPECT_TRUE(has_started || error.find("Too many open files") != std::string::npos) << error;
    EXPECT_EQ(file_text(), "10.0.0.1 10.0.0.2\n") << left;
  }
  EXPECT_TRUE(has_started);
}

TEST_F(RingJournalTest, HasOneSwitch) {
  {
    const RingJournal journal(directory_);
    const std::string lock = (directory_ / "lock").string();
    EXPECT_EQ(
        error_of_start(),
        "state_directory: " + lock + ": found that process " + std::to_string(getpid()) +
            " has it; allowed: a folder that no other switch uses, and that this one may write to");

    struct stat status {};

    ASSERT_EQ(stat(lock.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U) << "who may open it could lock it";
  }
  EXPECT_EQ(error_of_start(), "none") << "the lock goes with its holder";
}

/// A file of the same name that was there before.
TEST_F(RingJournalTest, TrustsNoLockOfOthers) {
  write("");
  std::ofstream(directory_ / "lock") << "x";
  ASSERT_EQ(chmod((directory_ / "lock").c_str(), 0666), 0);
  EXPECT_EQ(error_of_start(), "none");

  struct stat status {};

  ASSERT_EQ(stat((directory_ / "lock").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  std::filesystem::remove(directory_ / "lock");
  std::filesystem::create_symlink("/etc/passwd", directory_ / "lock");
  EXPECT_NE(error_of_start().find("Too many levels of symbolic links"), std::string::npos)
      << error_of_start();
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
  const std::string before = file_text();
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit full{before.size() + 5, limit.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &full);
  try {
    journal.remember(ring_of(kFour));
    ADD_FAILURE() << "the ring is remembered";
  } catch (const JournalError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("No space left on device"));
  }
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(file_text(), before);
  EXPECT_EQ(remembered_by(journal), std::vector<Addresses>{kSix});
}

/// What another user can put into a folder that all may write to, and where such a folder is.
TEST_F(RingJournalTest, TakesNoFileOfOthers) {
  using testing::HasSubstr;
  std::filesystem::create_directories(directory_);
  ASSERT_EQ(mkfifo((directory_ / "rings").c_str(), 0666), 0);
  EXPECT_THAT(error_of_start(), HasSubstr("rings: No such device or address; allowed: a file"))
      << "nobody waits for the other end of a pipe";
  const std::filesystem::path precious = directory_ / "precious";
  std::ofstream(precious) << "text";
  std::filesystem::remove(directory_ / "rings");
  std::filesystem::create_symlink(precious, directory_ / "rings");
  EXPECT_THAT(error_of_start(),
              HasSubstr("rings: cannot be read: Too many levels of symbolic links"));
  std::filesystem::remove(directory_ / "rings");
  chmod(directory_.c_str(), 01777);
  EXPECT_THAT(error_of_start(), HasSubstr(directory_.string() + " may be written to by others"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "rings"));
}

} // namespace
} // namespace weir::control::ring_journal_test
