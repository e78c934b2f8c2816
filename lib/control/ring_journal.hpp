// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ring/ring_spec.hpp"

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weir::control {

/// The journal cannot be read or written. what() names the file and the reason.
class JournalError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Remembers on disk which hosts were neighbours in rings that were made while the switch ran, so
/// that a restarted switch does not let raw data of these jobs pass (docs/protocol.md §2a). One
/// line of addresses for each ring, in rank order.
class RingJournal {
 public:
  /// Reads the journal in this directory, which it creates if need be. A last line without an end
  /// is of a ring that was never added. Throws JournalError.
  explicit RingJournal(const std::filesystem::path& directory);

  /// The rings that were remembered, each once: members, and an id that means nothing.
  const std::vector<ring::RingSpec>& remembered() const { return remembered_; }

  /// Returns when the ring is on the disk. Throws JournalError.
  void remember(const ring::RingSpec& ring);

 private:
  void read();
  void read_line(std::string_view line, std::size_t number);
  bool knows(const ring::RingSpec& ring) const;
  void append(const std::string& line) const;

  std::filesystem::path file_;
  std::vector<ring::RingSpec> remembered_;
};

} // namespace weir::control
