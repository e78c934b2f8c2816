// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "manager/config.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace weir::manager {

/// Of a file of the configuration's that has certificates: when the first of them ends.
struct CertificateEnd {
  std::string key; // in the configuration
  std::string path;
  std::int64_t seconds_left; // negative: it has ended
};

/// As the files are now. One that cannot be read, or has no certificate, is left out.
std::vector<CertificateEnd> certificate_ends(const Config& config);

/// A sentence for each that ends within 30 days, or has ended.
std::vector<std::string> warnings_of(const std::vector<CertificateEnd>& ends);

} // namespace weir::manager
