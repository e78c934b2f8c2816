// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "files/descriptor.hpp"

#include <filesystem>
#include <stdexcept>

namespace weir::control {

/// Another process has what only one may have, or nobody can tell. what() has its number.
class InUse : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A folder that no other process uses so while this object lives, not even this one a second time.
/// The kernel's lock ends with its process, however that ends. It is on the file `lock` there,
/// which has the process's number, and which only the process's user may open: others could lock
/// what they can open.
class SoleUse {
 public:
  /// Throws InUse.
  explicit SoleUse(const std::filesystem::path& folder);

 private:
  files::Descriptor file_;
};

} // namespace weir::control
