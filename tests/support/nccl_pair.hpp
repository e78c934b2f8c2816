// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "nccl_check/plug_in.hpp"

#include <filesystem>

namespace weir::nccl_test {

/// Two ranks talk by a plug-in's point-to-point: rank 1 sends to rank 0, many messages at once, as
/// many as a connection may have; and then one that is too long, which both hear of. Throws at a
/// byte, a size or an order that is wrong.
void talk(const nccl_check::Net& net, int rank, const std::filesystem::path& folder);

} // namespace weir::nccl_test
