// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace weir::control {

/// Takes the rings of this tenant, or of no tenant if it is empty, out of the journal in this
/// directory. Returns how many there were. The next switch there may let raw data of their former
/// jobs pass, and of all jobs with the same neighbours: only an operator can know that their queue
/// pairs are gone (docs/protocol.md §3). Throws JournalError, also while a switch uses the
/// directory; the journal is then as it was.
std::size_t forget_rings_of(const std::string& tenant, const std::filesystem::path& directory);

} // namespace weir::control
