// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "program/digest.hpp"
#include "program/loaded_operators.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace weir::control {

/// An operator's text on disk, and who loaded it.
struct StoredOperator {
  std::string text;
  std::vector<std::string> tenants; // empty name: an operator of the switch
  std::filesystem::path file;       // of all(): where it is
};

/// Texts of operators that were loaded while the switch ran, in a folder of the state directory: so
/// a restarted switch has them again. A file for each, named by the digest: a line "# for NAME" for
/// each who loaded it, NAME empty for everybody, then the text. The state directory is this
/// process's alone (RingJournal).
class OperatorStore {
 public:
  /// Throws JournalError if the folder cannot be made or read.
  explicit OperatorStore(const std::filesystem::path& state_directory);

  /// In the order of their names. Files that cannot be read are left out.
  std::vector<StoredOperator> all() const;

  /// Returns when it is on the disk. Throws JournalError.
  void keep(const program::Digest& digest, const StoredOperator& stored) const;

  void remove(const program::Digest& digest) const;

  /// Of all(): what lies under another name than that of this digest.
  void remove_if_elsewhere(const StoredOperator& stored, const program::Digest& digest) const;

 private:
  std::filesystem::path file_of(const program::Digest& digest) const;

  std::filesystem::path folder_;
};

} // namespace weir::control
