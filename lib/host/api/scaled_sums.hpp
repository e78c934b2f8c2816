// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/collective/scaling.hpp"

#include <map>
#include <mutex>
#include <optional>

namespace weir::host {

/// The operations that a group's caller has made: sums with a factor, by number. Any thread.
class ScaledSums {
 public:
  struct ScaledSum {
    DataType type = DataType::f32;
    Factor factor{};
  };

  // Numbers that the C enumeration's type can hold, behind those with a name.
  static constexpr unsigned kFirst = 257;
  static constexpr unsigned kLast = 511;

  /// Its number. Throws std::invalid_argument when all numbers are taken.
  unsigned add(const ScaledSum& sum);
  /// Throws std::invalid_argument for a number that is not in use.
  void remove(unsigned number);
  std::optional<ScaledSum> find(unsigned number) const;

 private:
  mutable std::mutex mutex_;
  std::map<unsigned, ScaledSum> sums_;
};

} // namespace weir::host
