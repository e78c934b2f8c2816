// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/inline_data.hpp"

#include <cerrno>

namespace weir::host {
namespace {

bool is_too_much(int error) {
  return error == EINVAL || error == ENOMEM || error == EOPNOTSUPP || error == E2BIG;
}

} // namespace

InlineTrial try_inline(std::uint32_t wanted,
                       const std::function<int(std::uint32_t bytes)>& attempt) {
  InlineTrial trial{.bytes = wanted, .error = attempt(wanted)};
  while (trial.bytes != 0 && is_too_much(trial.error)) {
    trial.bytes /= 2;
    trial.error = attempt(trial.bytes);
  }
  return trial;
}

} // namespace weir::host
