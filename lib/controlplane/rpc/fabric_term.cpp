// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/fabric_term.hpp"

#include "files/replaced_file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <system_error>

namespace weir::rpc {

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

TermOver FabricTerm::over(const LeaderTerm& term) const {
  return TermOver(fmt::format("term {} is over: {} ({}) has claimed this switch", to_string(term),
                              to_string(highest_.term), highest_.manager));
}

void FabricTerm::claim(const Claim& claim) {
  const bool is_anothers = claim.term == highest_.term && claim.term != LeaderTerm() &&
                           claim.manager != highest_.manager;
  if (claim.fabric == highest_.fabric && (claim.term < highest_.term || is_anothers)) {
    throw over(claim.term);
  }
  const std::string line = fmt::format("{} {} {} {}\n", claim.fabric, claim.term.epoch,
                                       claim.term.number, claim.manager);
  if (const std::error_code error = files::replace(file_, line)) {
    throw WrongFabric(fmt::format("{}: {}; allowed: a file that the switch can write",
                                  file_.string(), error.message()));
  }
  highest_ = claim;
}

void FabricTerm::check(const std::string& fabric, const LeaderTerm& term) const {
  if (fabric != highest_.fabric || term != highest_.term) {
    throw over(term);
  }
}

} // namespace weir::rpc
