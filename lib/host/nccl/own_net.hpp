// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/nccl/abi.hpp"

namespace weir::nccl {

/// Point-to-point by our sockets, for each version.
extern const NetV8 kOwnNetV8;
extern const NetV9 kOwnNetV9;
extern const NetV10 kOwnNetV10;
extern const NetV11 kOwnNetV11;
extern const NetV12 kOwnNetV12;

/// How any init begins: logs, once, whether Weir is used. Not success: NCCL is to go on with its
/// own nets.
Result begin_init(Logger logger);

} // namespace weir::nccl
