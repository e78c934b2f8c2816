// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

namespace weir::app {

/// One line on stderr with the progress of a long piece of work. Prints nothing when stderr is no
/// terminal. It is erased at the end.
class ProgressBar {
 public:
  explicit ProgressBar(std::size_t pieces);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// The next part begins; `about` is its name.
  void next(std::string_view about);
  /// Says something else about the same part.
  void show(std::string_view about);
  /// A person would see a change: on a terminal, five times a second.
  bool is_due() const;
  /// Until it is shown again. Before something else is printed.
  void wipe();

 private:
  using Clock = std::chrono::steady_clock;

  std::size_t pieces_;
  std::size_t begun_ = 0;
  Clock::time_point shown_;
  enum class Place { terminal, elsewhere } place_;
};

} // namespace weir::app
