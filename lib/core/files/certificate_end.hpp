// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace weir::files {

/// Seconds until the first of the certificates in a PEM text ends; negative: it has ended. Nothing:
/// the text has no certificate.
std::optional<std::int64_t> seconds_until_end(const std::string& pem);

} // namespace weir::files
