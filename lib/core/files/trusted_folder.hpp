// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <string>

namespace weir::files {

/// How users other than this one and root could put a file of theirs into this folder, or another
/// folder into its place: "/tmp may be written to by others (mode 1777)". Empty when they cannot,
/// and for a folder that is not there.
std::string why_not_trusted(const std::filesystem::path& folder);

} // namespace weir::files
