// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "jobs/loop.hpp"
#include "manager/standby.hpp"

#include <string>
#include <weir/v1/fabric.pb.h>

namespace weir::manager {

/// In Prometheus' text format.
std::string metrics_of(const v1::FabricPicture& picture, const jobs::Loop::Counts& counts);
std::string metrics_of(const Standby& standby);

} // namespace weir::manager
