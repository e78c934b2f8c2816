// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "store/store.hpp"

#include <filesystem>
#include <memory>
#include <stdexcept>

namespace weir::store {

/// A store cannot be opened. what() says which and why.
class StoreError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One file on a local disk, for one manager. A transaction is on the disk when it is done; a
/// second process that opens the file is refused.
class SqliteStore : public Store {
 public:
  /// Throws StoreError: the file cannot be opened or made, another process has it, or it is no such
  /// store.
  explicit SqliteStore(const std::filesystem::path& file);
  ~SqliteStore() override;

  std::optional<std::vector<Item>> read_all() override;
  std::optional<std::string> read(const std::string& key) override;
  Written write(std::span<const Change> changes) override;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace weir::store
