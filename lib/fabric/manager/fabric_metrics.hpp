// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "jobs/loop.hpp"
#include "manager/certificate_ends.hpp"
#include "manager/gate_log.hpp"
#include "manager/standby.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <weir/v1/fabric.pb.h>

namespace weir::manager {

/// In Prometheus' text format.
std::string metrics_of(const v1::FabricPicture& picture, const jobs::Loop::Counts& counts);
std::string metrics_of(const Standby& standby);
std::string metrics_of(const GateLog& log);
std::string metrics_of(const std::vector<CertificateEnd>& ends);

/// Of a leader: how many others wait. Nothing where that is not known.
std::string metrics_of(const std::optional<std::uint64_t>& standbys);

} // namespace weir::manager
