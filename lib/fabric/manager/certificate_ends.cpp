// SPDX-License-Identifier: BSD-3-Clause
#include "manager/certificate_ends.hpp"

#include "files/certificate_end.hpp"
#include "files/whole_file.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace weir::manager {
namespace {

constexpr std::int64_t kDay = 86400;
constexpr std::int64_t kSoon = 30 * kDay;

using NamedFile = std::pair<std::string, std::string>; // key and path

std::vector<NamedFile> files_of(const Config& config) {
  std::vector<NamedFile> files;
  if (config.tls) {
    files = {{"tls.certificate", config.tls->certificate},
             {"tls.client_authority", config.tls->client_authority},
             {"tls.switch_authority", config.tls->switch_authority}};
  }
  if (config.etcd) {
    files.emplace_back("store.certificate", config.etcd->certificate);
    files.emplace_back("store.authority", config.etcd->authority);
  }
  return files;
}

} // namespace

std::vector<CertificateEnd> certificate_ends(const Config& config) {
  std::vector<CertificateEnd> ends;
  for (const auto& [key, path] : files_of(config)) {
    const std::optional<std::string> text = path.empty() ? std::nullopt : files::read_pem(path);
    if (const auto left = text ? files::seconds_until_end(*text) : std::nullopt) {
      ends.push_back({key, path, *left});
    }
  }
  return ends;
}

std::vector<std::string> warnings_of(const std::vector<CertificateEnd>& ends) {
  std::vector<std::string> warnings;
  for (const CertificateEnd& end : ends) {
    if (end.seconds_left < 0) {
      warnings.push_back(
          fmt::format("{}: {} has ended {} days ago", end.key, end.path, -end.seconds_left / kDay));
    } else if (end.seconds_left < kSoon) {
      warnings.push_back(
          fmt::format("{}: {} ends in {} days", end.key, end.path, end.seconds_left / kDay));
    }
  }
  return warnings;
}

} // namespace weir::manager
