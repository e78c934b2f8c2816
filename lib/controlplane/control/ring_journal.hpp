// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/sole_use.hpp"
#include "ring/ring_spec.hpp"

#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::control {

/// The journal cannot be read or written. what() names the file and the reason.
class JournalError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Remembers on disk which hosts were neighbours in rings that were made while the switch ran, so
/// that a restarted switch does not let raw data of these jobs pass (docs/protocol.md §2a). One
/// line for each ring: addresses in rank order, and whose it was if it was a tenant's,
/// "10.0.0.1 10.0.0.2 tenant=red". Where other switches have a part in a ring, few of its members
/// are neighbours here: these have a line each, as if they were a ring of two. A name with other
/// bytes than graphic ASCII is escaped, and read back byte for byte: "tenant-escaped=my%20team". No
/// other switch uses the directory meanwhile.
class RingJournal {
 public:
  /// A member and its successor, between which this switch is.
  using Neighbours = std::pair<wire::IpAddress, wire::IpAddress>;

  /// Reads the journal in this directory, which it creates if need be. A last line without an end
  /// is of a ring that was never added, and is cut off. Throws JournalError for anything else that
  /// it cannot read, and for a directory that another process has; the file is then as it was.
  explicit RingJournal(const std::filesystem::path& directory);

  /// The rings that were remembered, without those whose neighbours earlier ones had: members,
  /// tenant, and an id that means nothing.
  const std::vector<ring::RingSpec>& remembered() const { return remembered_; }

  /// Returns when the ring is on the disk, unless all its neighbours are known: so the journal is
  /// never longer than what the switch can remember, however many rings come and go. Throws
  /// JournalError.
  void remember(const ring::RingSpec& ring);

 private:
  void read();
  std::string contents() const;
  void read_line(std::string_view line, std::size_t number);
  void cut_half_a_line(std::string_view half, std::size_t number, std::size_t begin);
  [[noreturn]] void fail_at(std::size_t number, std::string_view found) const;
  bool knows(const ring::RingSpec& ring) const;
  std::vector<ring::RingSpec> lines_for(const ring::RingSpec& ring) const;
  void note(const ring::RingSpec& ring);
  void append(const std::string& lines) const;

  std::filesystem::path file_;
  SoleUse sole_use_;
  std::vector<ring::RingSpec> remembered_;
  std::set<Neighbours> neighbours_; // of all of them
};

} // namespace weir::control
