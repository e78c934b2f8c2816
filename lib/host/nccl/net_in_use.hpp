// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/nccl/abi.hpp"

namespace weir::nccl {

/// The point-to-point that NCCL has of us. Its devices are CollNet's as well: NCCL knows a device
/// by one number for both, and before 2.26 counts CollNet's alone.
struct NetInUse {
  Result (*devices)(int* count);
  Result (*properties)(int device, PropertiesV12& properties);
};

/// Set by init of the table that NCCL took.
void set_net_in_use(const NetInUse& net);
const NetInUse& net_in_use();

} // namespace weir::nccl
