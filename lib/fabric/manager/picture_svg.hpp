// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <weir/v1/fabric.pb.h>

namespace weir::manager {

/// The fabric as a picture: hosts below their switches, links as thick as they are loaded, each
/// job's trees in a colour of its own, what is drained or not reached in grey and red.
std::string svg_of(const v1::FabricPicture& picture);

} // namespace weir::manager
