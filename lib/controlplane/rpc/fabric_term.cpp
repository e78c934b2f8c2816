// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/fabric_term.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace weir::rpc {
namespace {

/// Closes itself.
class Descriptor {
 public:
  Descriptor(const std::filesystem::path& file, int flags)
      : descriptor_(open(file.c_str(), flags | O_CLOEXEC, 0600)) {}

  ~Descriptor() {
    if (descriptor_ >= 0) {
      close(descriptor_);
    }
  }

  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool write(std::string_view text) const {
    return descriptor_ >= 0 &&
           ::write(descriptor_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }

  bool sync() const { return descriptor_ >= 0 && fsync(descriptor_) == 0; }

 private:
  const int descriptor_;
};

/// Returns when the disk has the text, and not half of it.
bool replace(const std::filesystem::path& file, std::string_view text) {
  std::filesystem::path next = file;
  next += ".next";
  const Descriptor written(next, O_WRONLY | O_CREAT | O_TRUNC);
  std::error_code failure;
  if (!written.write(text) || !written.sync()) {
    return false;
  }
  std::filesystem::rename(next, file, failure);
  return !failure && Descriptor(file.parent_path(), O_RDONLY | O_DIRECTORY).sync();
}

} // namespace

std::string to_string(const LeaderTerm& term) {
  return fmt::format("{}.{}", term.epoch, term.number);
}

FabricTerm::FabricTerm(const std::filesystem::path& directory) : file_(directory / "fabric") {
  std::ifstream stream(file_);
  std::string line;
  if (!std::filesystem::exists(file_)) {
    return;
  }
  std::getline(stream, line);
  std::istringstream words(line);
  if (!(words >> highest_.fabric >> highest_.term.epoch >> highest_.term.number >>
        highest_.manager)) {
    throw WrongFabric(fmt::format("{}: found '{}'; allowed: a fabric's name, its epoch, a number "
                                  "and a manager's name, as the switch has written them",
                                  file_.string(), line));
  }
}

void FabricTerm::claim(const Claim& claim) {
  const bool is_same_fabric = claim.fabric == highest_.fabric;
  if (is_same_fabric && claim.term < highest_.term) {
    check(claim.fabric, claim.term);
  }
  const std::string line = fmt::format("{} {} {} {}\n", claim.fabric, claim.term.epoch,
                                       claim.term.number, claim.manager);
  if (!replace(file_, line)) {
    throw WrongFabric(fmt::format("{}: {}; allowed: a file that the switch can write",
                                  file_.string(), std::strerror(errno)));
  }
  highest_ = claim;
}

void FabricTerm::check(const std::string& fabric, const LeaderTerm& term) const {
  if (fabric != highest_.fabric || term != highest_.term) {
    throw TermOver(fmt::format("term {} is over: {} ({}) has claimed this switch", to_string(term),
                               to_string(highest_.term), highest_.manager));
  }
}

} // namespace weir::rpc
