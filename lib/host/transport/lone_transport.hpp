// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/transport/transport.hpp"

#include <memory>

namespace weir::host {

/// Of a group of one rank, which has nobody to send to: no device, no address, no queue pairs.
/// Throws Error when the process can open no more descriptors.
std::unique_ptr<Transport> make_lone_transport();

} // namespace weir::host
