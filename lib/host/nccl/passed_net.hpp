// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/nccl/abi.hpp"

#include <string>

namespace weir::nccl {

/// Another plug-in's point-to-point, which WEIR_NCCL_NET names and NCCL gets in place of ours: of
/// the newest version that NCCL asks for and the other plug-in has. The first of these calls loads
/// it.

/// Whether WEIR_NCCL_NET is set, and the library that it names can be loaded and has a table.
bool is_net_passed();
/// Why not, though WEIR_NCCL_NET is set; "" if it is not, or all is well.
std::string problem_of_passed_net();
/// For a log, also of our own.
std::string name_of_passed_net();
/// Its ncclNetPlugin_vN; NULL: it has none of this version.
const void* passed_table(int version);

} // namespace weir::nccl
