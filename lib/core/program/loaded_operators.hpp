// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "program/operator.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::program {

/// Who may fold by an operator.
struct OperatorOwner {
  std::string tenant;                     // empty: everybody, unless there is a ring
  std::optional<std::uint32_t> ring = {}; // with whose id it came, and goes

  bool operator==(const OperatorOwner&) const = default;

  bool grants(std::string_view to_tenant, std::uint32_t to_ring) const {
    return ring ? *ring == to_ring : tenant.empty() || tenant == to_tenant;
  }
};

struct LoadedOperator {
  std::shared_ptr<const Operator> loaded;
  std::vector<OperatorOwner> owners;
};

/// Those that a switch has. Few, so they are searched one by one: when hellos come.
class LoadedOperators {
 public:
  LoadedOperators() = default;

  explicit LoadedOperators(std::vector<LoadedOperator> rows) : rows_(std::move(rows)) {}

  const std::vector<LoadedOperator>& rows() const { return rows_; }

  const LoadedOperator* find(const Digest& digest) const {
    const auto found = std::ranges::find(rows_, digest, digest_of);
    return found == rows_.end() ? nullptr : &*found;
  }

  /// False: this one had it already.
  bool add(const std::shared_ptr<const Operator>& loaded, const OperatorOwner& owner) {
    auto row = std::ranges::find(rows_, loaded->digest(), digest_of);
    if (row == rows_.end()) {
      row = rows_.insert(rows_.end(), {loaded, {}});
    }
    if (std::ranges::find(row->owners, owner) != row->owners.end()) {
      return false;
    }
    row->owners.push_back(owner);
    return true;
  }

  /// Takes it from all of whom `leaves(row, owner)` holds; it goes when it is nobody's any more.
  /// False: there were none.
  template <typename Leaves>
  bool take_from(Leaves&& leaves) {
    bool had_some = false;
    for (LoadedOperator& row : rows_) {
      had_some |= std::erase_if(row.owners, [&](const OperatorOwner& owner) {
                    return leaves(row, owner);
                  }) != 0;
    }
    std::erase_if(rows_, [](const LoadedOperator& row) { return row.owners.empty(); });
    return had_some;
  }

  /// nullptr if it is not there, or not for this tenant's ring.
  const Operator* granted(const Digest& digest, std::string_view tenant, std::uint32_t ring) const {
    const LoadedOperator* row = find(digest);
    const bool is_granted =
        row != nullptr && std::ranges::any_of(row->owners, [&](const OperatorOwner& owner) {
          return owner.grants(tenant, ring);
        });
    return is_granted ? row->loaded.get() : nullptr;
  }

 private:
  static const Digest& digest_of(const LoadedOperator& row) { return row.loaded->digest(); }

  std::vector<LoadedOperator> rows_;
};

} // namespace weir::program
