// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace weir::app {

enum class Use : std::uint8_t { read, write };

/// A file that a program's user has named. "-" is standard input or output.
struct FileUse {
  std::string name; // of the option, such as "--in"
  std::string file; // empty: not given
  Use use = Use::read;
};

/// To be called before the first of them is opened for writing. Links of both kinds are followed.
/// Errors: UsageError when a file that is written is another one of them as well. Devices such as
/// /dev/null may be: nothing on them can be lost.
void refuse_shared_files(std::span<const FileUse> uses);

} // namespace weir::app
