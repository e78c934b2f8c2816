// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string_view>

namespace weir::app {

/// One line on stderr that tells how far a long piece of work is; nothing where stderr is no
/// terminal. Wipes itself at its end.
class ProgressBar {
 public:
  explicit ProgressBar(std::size_t pieces);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// The next piece begins; `about` names it.
  void next(std::string_view about);

 private:
  std::size_t pieces_;
  std::size_t begun_ = 0;
  enum class Place { terminal, elsewhere } place_;
};

} // namespace weir::app
