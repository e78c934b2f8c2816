// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/operator_seen.hpp"

#include <string>
#include <weir/v1/switch.pb.h>

namespace weir::rpc {

/// Throws WrongMessage unless it is 64 hexadecimal digits.
program::Digest digest_of(const std::string& text);

void write(const control::OperatorSeen& seen, v1::Operator& message);

} // namespace weir::rpc
