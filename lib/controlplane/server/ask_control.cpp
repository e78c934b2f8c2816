// SPDX-License-Identifier: BSD-3-Clause
#include "server/asks.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace weir::server {
namespace {

constexpr std::int64_t kDay = 86400; // seconds
constexpr std::int64_t kSoon = 30 * kDay;
constexpr std::string_view kKey = "control.tls.key";

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

std::string days_of(std::int64_t seconds) {
  return fmt::format("{} days", seconds / kDay);
}

Finding certificate_in(const PemFile& file) {
  const std::string what = fmt::format("{}: {}", file.key, file.path);
  const std::string renew =
      fmt::format("openssl x509 -noout -enddate -in {} # a new one there holds at once", file.path);
  if (!file.is_readable) {
    return {Rank::warning, what + " cannot be read by this user",
            fmt::format("chgrp weir {0} && chmod g+r {0}", file.path)};
  }
  if (file.key == kKey) {
    return {Rank::fine, what};
  }
  if (!file.seconds_left) {
    return {Rank::warning, what + " has no certificate", renew};
  }
  if (*file.seconds_left < 0) {
    return {Rank::warning, fmt::format("{} has ended {} ago", what, days_of(-*file.seconds_left)),
            renew};
  }
  const std::string found = fmt::format("{} ends in {}", what, days_of(*file.seconds_left));
  return *file.seconds_left < kSoon ? Finding{Rank::warning, found, renew}
                                    : Finding{Rank::fine, found, ""};
}

} // namespace

std::vector<Finding> ask_sockets(const Case& given) {
  std::vector<Finding> findings;
  for (const SocketPlace& place : given.facts.sockets) {
    findings.push_back(socket_at(place));
  }
  return findings;
}

std::vector<Finding> ask_certificates(const Case& given) {
  std::vector<Finding> findings;
  for (const PemFile& file : given.facts.pem_files) {
    findings.push_back(certificate_in(file));
  }
  return findings;
}

} // namespace weir::server
