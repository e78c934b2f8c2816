// SPDX-License-Identifier: BSD-3-Clause

/// Who could put a file of theirs, or another folder, on the way to a file of the switch's.

#include "files/trusted_folder.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <gmock/gmock.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace weir::files::trusted_folder_test {
namespace {

using testing::HasSubstr;

class TrustedFolder : public testing::Test {
 protected:
  std::filesystem::path made(const std::string& name, mode_t mode) const {
    const std::filesystem::path folder = folder_.path() / name;
    mkdir(folder.c_str(), S_IRWXU);
    chmod(folder.c_str(), mode);
    return folder;
  }

  const test::TemporaryFolder folder_{"weir-trusted"};
};

TEST_F(TrustedFolder, IsOneThatOnlyItsUserCanChange) {
  EXPECT_EQ(why_not_trusted(made("own", 0700)), "");
  EXPECT_EQ(why_not_trusted(made("read", 0755)), "");
  EXPECT_EQ(why_not_trusted(made("own", 0700) / "not-there"), "");
  EXPECT_EQ(why_not_trusted("/"), "");
  EXPECT_THAT(why_not_trusted(made("all", 0777)),
              HasSubstr("may be written to by others (mode 777)"));
  EXPECT_THAT(why_not_trusted(made("sticky", 01777)), HasSubstr("(mode 1777)"));
}

/// In a sticky folder nobody can replace what is another's; in any other folder all can.
TEST_F(TrustedFolder, HasSuchAWayToIt) {
  const auto sticky = made("sticky", 01777) / "inner";
  mkdir(sticky.c_str(), S_IRWXU);
  EXPECT_EQ(why_not_trusted(sticky), "");
  const auto open = made("open", 0777) / "inner";
  mkdir(open.c_str(), S_IRWXU);
  EXPECT_THAT(why_not_trusted(open), HasSubstr("open may be written to by others"));
  const auto link = made("own", 0700) / "link";
  std::filesystem::create_directory_symlink(open, link);
  EXPECT_THAT(why_not_trusted(link), HasSubstr("open may be written to by others"));
}

TEST_F(TrustedFolder, BelongsToItsUserOrRoot) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "only root can give files away";
  }
  constexpr uid_t kNobody = 65534;
  const auto others = made("others", 0755);
  ASSERT_EQ(chown(others.c_str(), kNobody, kNobody), 0);
  EXPECT_THAT(why_not_trusted(others), HasSubstr("others belongs to user 65534"));
  const auto link = made("sticky", 01777) / "link";
  std::filesystem::create_directory_symlink(made("own", 0700), link);
  EXPECT_EQ(why_not_trusted(link), "");
  ASSERT_EQ(lchown(link.c_str(), kNobody, kNobody), 0);
  EXPECT_THAT(why_not_trusted(link), HasSubstr("link belongs to user 65534"));
  const auto group = made("group", 0770);
  ASSERT_EQ(chown(group.c_str(), 0, kNobody), 0);
  EXPECT_THAT(why_not_trusted(group), HasSubstr("group may be written to by others (mode 770)"));
}

} // namespace
} // namespace weir::files::trusted_folder_test
