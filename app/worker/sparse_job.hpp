// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/api/group.hpp"
#include "worker/single_job.hpp"
#include "worker/sparse_values.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace weir::app {

/// A sparse all-reduce, made again and again with other values: a rank's part. Times are this
/// rank's own, each from a barrier on.
class SparseJob {
 public:
  /// `options` and `group` must outlive it.
  SparseJob(const JobOptions& options, host::Group& group) : options_(options), group_(group) {}

  /// Throws WrongResult after the first wrong result, and host::Error.
  void run();

  /// What it was: a line for stdout.
  std::string summary() const;
  std::string json() const;

 private:
  void call_once(std::uint32_t repetition);
  void verify(const host::SparseResult& result, const SparseValues& values) const;

  double dense_bytes() const {
    return static_cast<double>(options_.call.count * element_size(options_.call.type));
  }

  double mean_seconds() const { return seconds_ / options_.repetitions; }

  const JobOptions& options_;
  host::Group& group_;
  double seconds_ = 0; // of all repetitions, without verification
  // Of the last repetition.
  std::uint64_t own_units_ = 0;
  std::uint64_t blocks_ = 0; // of the union
  std::uint64_t block_ = 1;
  std::uint64_t exchanged_bytes_ = 0;
  host::SparseForm form_ = host::SparseForm::dense;
};

} // namespace weir::app
