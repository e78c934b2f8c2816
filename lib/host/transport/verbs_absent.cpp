// SPDX-License-Identifier: BSD-3-Clause
#include "host/bootstrap/error.hpp"
#include "host/transport/verbs_transport.hpp"

namespace weir::host {

std::unique_ptr<Transport> open_verbs(const TransportPlan& /*plan*/, const VerbsOptions& options) {
  throw Error(ErrorCode::transport_failure, std::nullopt,
              "device " + options.device + ": this build has no libibverbs");
}

} // namespace weir::host
