// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/nccl/abi.hpp"
#include "weir/weir.h"

#include <string>
#include <vector>

namespace weir::nccl {

/// Whether this process uses Weir.
struct Usage {
  bool is_used = false;
  LogLevel level = LogLevel::warn;  // of `why`: a warning if somebody has asked for Weir
  std::string why;                  // one line
  std::vector<weir_device> devices; // those of WEIR_DEVICE, in its order; not empty if it is used
};

/// Of the environment, where /etc/nccl.conf is by then. The first caller decides for the process's
/// life, within about two seconds. Where Weir is not used, nothing is opened or loaded, and no
/// thread started.
const Usage& usage();

} // namespace weir::nccl
