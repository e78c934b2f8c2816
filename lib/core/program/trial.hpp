// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "program/code.hpp"
#include "program/digest.hpp"
#include "program/fold_program.hpp"

#include <array>
#include <cstddef>
#include <vector>

namespace weir::program {

/// The fixed data of a trial, 64 KiB (docs/protocol.md §12.5): sets of payloads, half of them
/// random bytes, half of them numbers near 1 in the program's fields. The same on each machine.
class TrialData {
 public:
  static constexpr std::size_t kSets = 16;
  static constexpr std::size_t kInputs = 4; // of a set
  static constexpr std::size_t kBytes = 1024;

  explicit TrialData(const Code& code);

  const std::byte* input(std::size_t set, std::size_t rank) const {
    return bytes_.data() + (set * kInputs + rank) * kBytes;
  }

 private:
  std::vector<std::byte> bytes_;
};

/// What a fold takes: 1 KiB of each of eight ranks, of moderate numbers.
class Measurement {
 public:
  static constexpr unsigned kRanks = 8;

  /// With a kernel, it folds in the program's place. Both outlive it.
  explicit Measurement(const FoldProgram& program, op::ReduceKernel kernel = nullptr);

  /// For a KiB and rank: the least of so many folds, since in the others the thread may have
  /// waited.
  double least_ns(int folds);

 private:
  void fold();

  const FoldProgram& program_;
  op::ReduceKernel kernel_;
  TrialData data_;
  std::array<const std::byte*, kRanks> inputs_{};
  std::array<std::byte, TrialData::kBytes> out_{};
};

/// What a kernel makes of the data: for each set the fold of all inputs and of the first alone.
std::vector<std::byte> results_of(const TrialData& data, const FoldProgram& program);

/// The same, of a kernel that may stand for a program.
std::vector<std::byte> results_of(const TrialData& data, op::ReduceKernel kernel);

/// Throws std::invalid_argument when the program breaks a rule (docs/operators.md): its identity is
/// none, or a finished value that is finished again is another one.
void check_rules(const TrialData& data, const FoldProgram& program);

} // namespace weir::program
