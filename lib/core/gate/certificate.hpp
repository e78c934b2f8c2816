// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace weir::gate {

/// All common names of the subject of a certificate in PEM, as UTF-8; none if it is no certificate.
/// gRPC tells the first one alone.
std::vector<std::string> common_names_in(const std::string& pem);

} // namespace weir::gate
