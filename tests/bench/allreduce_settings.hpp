// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "allreduce_job.hpp"
#include "measurement.hpp"

#include <vector>

namespace weir::bench {

/// One case of the part `allreduce`.
struct Setting {
  Case parameters;
  AllReduce wanted;
};

/// The cases that are wanted, with these hosts.
std::vector<Setting> settings_of(const Options& options, const HostTraits& hosts);

} // namespace weir::bench
