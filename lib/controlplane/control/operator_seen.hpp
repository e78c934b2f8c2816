// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "program/loaded_operators.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace weir::control {

/// A text that is no operator, or inputs that it cannot fold. what() has line, found, allowed.
class OperatorError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// More operators, or a dearer one, than the caller may load. what() has price and limit.
class NoRoomForOperator : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// No operator that the caller may see has this digest.
class NoSuchOperator : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Rings fold by the operator. what() names them.
class OperatorInUse : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An operator as a caller sees it.
struct OperatorSeen {
  std::string name;
  program::Digest digest{};
  std::vector<program::OperatorOwner> owners; // of a tenant's own: the tenant alone
  double price = 0;                           // ns for a KiB and rank, at most
  std::vector<std::uint32_t> rings;           // whose incarnations have it now
  std::uint64_t packets = 0;                  // folded by it since it was loaded
  std::uint64_t flagged = 0;                  // those with a flag
  bool has_kernel = false;                    // that folds, and not its loops
  bool disagrees = false;                     // its kernel is off
};

} // namespace weir::control
