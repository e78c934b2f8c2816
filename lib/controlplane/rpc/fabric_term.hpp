// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>

namespace weir::rpc {

/// A manager's order is not for this switch, or not any more. what() says why.
class WrongFabric : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A manager with a higher term has claimed the switch. what() has both terms.
class TermOver : public std::runtime_error {
 public:
  explicit TermOver(const std::string& words, std::string details = {})
      : std::runtime_error(words), details_(std::move(details)) {}

  /// A ClaimFabricResponse, where it was a claim that is refused.
  const std::string& details() const { return details_; }

 private:
  std::string details_;
};

/// Of a fabric's managers the one with the higher term leads.
struct LeaderTerm {
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;

  auto operator<=>(const LeaderTerm&) const = default;
};

/// "1.204"
std::string to_string(const LeaderTerm& term);

/// The highest term that has claimed this switch, in the file `fabric` of its state directory, so
/// that a restarted switch refuses what the switch before has refused.
class FabricTerm {
 public:
  /// Who claimed last, and for which fabric.
  struct Claim {
    std::string fabric;
    LeaderTerm term;
    std::string manager; // its name
  };

  /// Reads the file. Throws WrongFabric for one that it cannot read.
  explicit FabricTerm(const std::filesystem::path& directory);

  const Claim& highest() const { return highest_; }

  /// Returns when the claim is on the disk. Throws TermOver for a lower term than the highest of
  /// this fabric, or for that one of another manager: two stores have counted up to it. 0.0
  /// is nobody's. Throws WrongFabric when the file cannot be written.
  void claim(const Claim& claim);

  /// Throws TermOver unless the term is the highest of this fabric.
  void check(const std::string& fabric, const LeaderTerm& term) const;

 private:
  TermOver over(const LeaderTerm& term) const;

  const std::filesystem::path file_;
  Claim highest_;
};

} // namespace weir::rpc
