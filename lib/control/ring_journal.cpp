// SPDX-License-Identifier: BSD-3-Clause
#include "control/ring_journal.hpp"

#include "weir/ina.hpp"
#include "weir/limits.hpp"
#include "wire/address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <unistd.h>

namespace weir::control {
namespace {

using Neighbours = RingJournal::Neighbours;

constexpr std::string_view kTenant = "tenant=";

std::string line_of(const ring::RingSpec& ring) {
  std::string line;
  for (const ring::Member& member : ring.members) {
    line += (line.empty() ? "" : " ") + wire::to_string(member.ip);
  }
  return line + (ring.tenant.empty() ? "" : fmt::format(" {}{}", kTenant, ring.tenant)) + "\n";
}

/// <A member, its successor>, for each member.
std::vector<Neighbours> neighbours_in(const ring::RingSpec& ring) {
  std::vector<Neighbours> neighbours;
  for (std::size_t rank = 0; rank < ring.members.size(); ++rank) {
    neighbours.emplace_back(ring.members[rank].ip,
                            ring.members[(rank + 1) % ring.members.size()].ip);
  }
  return neighbours;
}

/// A file's descriptor, closed at the end.
class Descriptor {
 public:
  Descriptor(const std::filesystem::path& file, int flags)
      : number_(open(file.c_str(), flags | O_CLOEXEC, 0600)) {}

  ~Descriptor() {
    if (number_ >= 0) {
      close(number_);
    }
  }

  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return number_; }

 private:
  int number_;
};

} // namespace

RingJournal::RingJournal(const std::filesystem::path& directory) : file_(directory / "rings") {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    throw JournalError(
        fmt::format("state_directory: {}: {}; allowed: a directory that the switch may write to",
                    directory.string(), error.message()));
  }
  append(""); // now, rather than when the first ring is added
  read();
}

void RingJournal::read() {
  std::ifstream stream(file_, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  std::size_t number = 1;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n', begin)) {
    read_line(std::string_view(text).substr(begin, end - begin), number++);
    begin = end + 1;
  }
  std::error_code error;
  std::filesystem::resize_file(file_, begin, error);
  if (error) {
    throw JournalError(fmt::format("{}: {}", file_.string(), error.message()));
  }
}

void RingJournal::read_line(std::string_view line, std::size_t number) {
  ring::RingSpec ring{.window = 1, .max_message_bytes = kInaHeaderBytes};
  std::istringstream words{std::string(line)};
  for (std::string word; words >> word;) {
    if (const auto address = wire::parse_ip(word)) {
      ring.members.push_back({*address, std::nullopt});
    } else if (word.starts_with(kTenant) && ring.tenant.empty()) {
      ring.tenant = word.substr(kTenant.size());
    } else {
      throw JournalError(fmt::format("{}:{}: found '{}'; allowed: IP addresses, then tenant=NAME "
                                     "if it was a tenant's. To start without what the switch "
                                     "remembered, move the file away; raw data of earlier jobs can "
                                     "pass then",
                                     file_.string(), number, word));
    }
  }
  if (ring.members.size() < kMinWorld || ring.members.size() > kMaxWorld) {
    throw JournalError(fmt::format("{}:{}: found {} addresses; allowed: {} to {}", file_.string(),
                                   number, ring.members.size(), kMinWorld, kMaxWorld));
  }
  if (!knows(ring)) {
    note(ring);
  }
}

bool RingJournal::knows(const ring::RingSpec& ring) const {
  return std::ranges::all_of(neighbours_in(ring), [this](const Neighbours& neighbours) {
    return neighbours_.contains(neighbours);
  });
}

void RingJournal::note(const ring::RingSpec& ring) {
  remembered_.push_back(ring);
  for (const Neighbours& neighbours : neighbours_in(ring)) {
    neighbours_.insert(neighbours);
  }
}

void RingJournal::remember(const ring::RingSpec& ring) {
  if (!knows(ring)) {
    append(line_of(ring));
    note(ring);
  }
}

/// Leaves the file as it was if the disk does not take the whole line.
void RingJournal::append(const std::string& line) const {
  const Descriptor file(file_, O_WRONLY | O_CREAT);
  const off_t end = file.get() < 0 ? -1 : lseek(file.get(), 0, SEEK_END);
  const bool is_written =
      end >= 0 &&
      write(file.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
      fsync(file.get()) == 0;
  if (is_written) {
    return;
  }
  const int error = errno;
  if (end >= 0 && ftruncate(file.get(), end) != 0) {
    fmt::print(stderr, "weir: {}: half a line is at its end\n", file_.string());
  }
  throw JournalError(fmt::format("{}: {}; allowed: a file that the switch may write to",
                                 file_.string(), std::strerror(error)));
}

} // namespace weir::control
