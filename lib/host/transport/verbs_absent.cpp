// SPDX-License-Identifier: BSD-3-Clause
#include "host/base/error.hpp"
#include "host/transport/nic.hpp"

#include <optional>

namespace weir::host {

std::shared_ptr<Nic> open_nic(const std::string& device) {
  throw Error(ErrorCode::transport_failure, std::nullopt,
              "device " + device + ": this build has no libibverbs");
}

} // namespace weir::host
