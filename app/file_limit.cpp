// SPDX-License-Identifier: BSD-3-Clause
#include "file_limit.hpp"

#include <algorithm>

namespace weir::app {

rlim_t raise_file_limit() {
  constexpr rlim_t most = 65536; // LimitNOFILE
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, most));
  setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

} // namespace weir::app
