// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace weir::fabric {

/// A violated invariant of docs/protocol.md §8.
class Violation : public std::runtime_error {
 public:
  Violation(std::string invariant, const std::string& text)
      : std::runtime_error(text), invariant_(std::move(invariant)) {}

  const std::string& invariant() const { return invariant_; }

 private:
  std::string invariant_;
};

} // namespace weir::fabric
