// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/work.hpp"
#include "host/base/error.hpp"
#include "wire/address.hpp"

#include <string_view>

namespace weir::host {

/// Why a member's connection to the region at `ip` has failed; `words` are of who says so.
Error region_failure(endpoint::Status status, const wire::IpAddress& ip, std::string_view words);

} // namespace weir::host
