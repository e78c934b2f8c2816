// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <string_view>
#include <system_error>

namespace weir::files {

/// Returns when the file has this text, and no other, on the disk. Who looks meanwhile, or after a
/// power failure, finds the former text or this one. An error: why the disk does not take it; the
/// former text stays. FILE.next is taken for it.
std::error_code replace(const std::filesystem::path& file, std::string_view text);

/// Else a power failure may take a new file, or bring a former one back.
std::error_code sync_entries(const std::filesystem::path& folder);

} // namespace weir::files
