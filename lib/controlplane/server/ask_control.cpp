// SPDX-License-Identifier: BSD-3-Clause
#include "server/asks.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace weir::server {
namespace {

/// The switch starts without its control service, and tries again every ten seconds.
Finding socket_at(const SocketPlace& place) {
  const std::string folder = std::filesystem::path(place.path).parent_path().string();
  if (place.has_listener) {
    return {Rank::unknown, fmt::format("{}: a process listens there already", place.path)};
  }
  if (!place.has_folder) {
    return {Rank::warning, fmt::format("{}: its folder is not there", place.path),
            fmt::format("install -d -o weir -g weir {}", folder)};
  }
  if (!place.flaw.empty()) {
    return {Rank::warning, fmt::format("{}: {}", place.path, place.flaw),
            fmt::format("chmod go-w {}", folder)};
  }
  if (!place.may_write) {
    return {Rank::warning, fmt::format("{}: this user may not write to its folder", place.path),
            fmt::format("chown weir {}", folder)};
  }
  return {Rank::fine, place.path};
}

} // namespace

std::vector<Finding> ask_sockets(const Case& given) {
  std::vector<Finding> findings;
  for (const SocketPlace& place : given.facts.sockets) {
    findings.push_back(socket_at(place));
  }
  return findings;
}

} // namespace weir::server
