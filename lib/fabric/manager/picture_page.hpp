// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <weir/v1/fabric.pb.h>

namespace weir::manager {

/// A page with the picture and the list of jobs, which browsers ask for again every two seconds. It
/// needs nothing from elsewhere, and runs no script.
std::string page_of(const v1::FabricPicture& picture);

} // namespace weir::manager
