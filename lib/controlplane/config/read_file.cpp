// SPDX-License-Identifier: BSD-3-Clause
#include "config/config.hpp"
#include "yaml/reader.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace weir::config {
namespace {

constexpr std::size_t kLargestFile = 16U << 20;
constexpr int kPatienceMs = 5000; // for what comes by a pipe

/// Opened without waiting for the other end of a pipe.
class OpenFile {
 public:
  explicit OpenFile(const std::filesystem::path& file)
      : number_(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}

  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  ~OpenFile() {
    if (number_ >= 0) {
      close(number_);
    }
  }

  int number() const { return number_; }

  bool is_folder() const {
    struct stat status {};

    return fstat(number_, &status) == 0 && S_ISDIR(status.st_mode);
  }

  /// Whether there is something to read, or the end, in time.
  bool is_ready() const {
    pollfd wanted{number_, POLLIN, 0};
    int ready = -1;
    do {
      ready = poll(&wanted, 1, kPatienceMs);
    } while (ready < 0 && errno == EINTR);
    return ready != 0;
  }

 private:
  int number_;
};

[[noreturn]] void refuse_file(const std::filesystem::path& file, std::string_view found) {
  yaml::Reader::fail_file(file.string(), found, "a readable YAML file of at most 16 MiB");
}

} // namespace

std::string read_file(const std::filesystem::path& file) {
  const OpenFile opened(file);
  if (opened.number() < 0) {
    refuse_file(file, errno == ENOENT ? "no such file" : std::strerror(errno));
  }
  if (opened.is_folder()) {
    refuse_file(file, "a directory");
  }
  std::string text;
  std::array<char, 65536> chunk{};
  for (;;) {
    if (!opened.is_ready()) {
      refuse_file(file, "a pipe or device from which nothing has come for 5 s");
    }
    const ssize_t bytes = read(opened.number(), chunk.data(), chunk.size());
    if (bytes < 0) {
      refuse_file(file, std::strerror(errno));
    }
    if (bytes == 0) {
      return text;
    }
    text.append(chunk.data(), static_cast<std::size_t>(bytes));
    if (text.size() > kLargestFile) {
      refuse_file(file, "more than 16 MiB");
    }
  }
}

} // namespace weir::config
