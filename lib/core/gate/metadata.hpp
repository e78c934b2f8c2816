// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace weir::gate {

/// What the gate tells the service of who calls, as metadata of the call. It forwards none of the
/// caller's own. Who calls by a Unix socket is an operator, and may say of himself what he likes.
///
/// The bytes of the address that the caller has come from.
inline constexpr const char* kByNetwork = "weir-by-network-bin";
/// Once for each common name of the caller's certificate.
inline constexpr const char* kCommonName = "weir-common-name-bin";

} // namespace weir::gate
