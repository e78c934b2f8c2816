// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/api/group.hpp"
#include "worker/call_buffers.hpp"
#include "worker/fold_tree.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::app {

enum class Verification : std::uint8_t { every_element, none };

/// "every_element", "no".
std::string_view name_of(Verification verification);

enum class Progress : std::uint8_t { quiet, lines };

struct JobOptions {
  host::Call call;
  Placement placement = Placement::in_place;
  std::uint32_t repetitions = 1;
  Verification verification = Verification::every_element;
  Progress progress = Progress::quiet;
  double density = 0.01;                   // of a sparse all-reduce
  std::vector<FoldTree> trees{FoldTree()}; // of each ring that carries calls
};

/// One call, made again and again with other values: a rank's part. Times are this rank's own.
class SingleJob {
 public:
  /// `options`, `group` and the buffers must outlive it.
  SingleJob(const JobOptions& options, host::Group& group, CallBuffers buffers);

  /// Prints what --progress asks for. Throws WrongResult after the first wrong result, and
  /// host::Error.
  void run();

  /// What it was: a line for stdout.
  std::string summary() const;
  std::string json() const;

 private:
  using Clock = std::chrono::steady_clock;

  void call_once(std::uint32_t repetition);
  void show_progress(std::uint32_t repetition, std::size_t done, Clock::time_point start) const;
  void verify(std::uint32_t repetition) const;

  std::uint64_t bytes() const { return bytes_of(options_.call, group_.world()); }

  double mean_seconds() const { return seconds_ / options_.repetitions; }

  double cpu_per_gb() const;

  const JobOptions& options_;
  host::Group& group_;
  CallBuffers buffers_;
  double seconds_ = 0;     // of all repetitions, without verification
  double cpu_seconds_ = 0; // likewise
};

} // namespace weir::app
