// SPDX-License-Identifier: BSD-3-Clause
#include "stage/loop_probes.hpp"

namespace weir::stage {

bool SentProbes::has_sent(const wire::LoopProbe& probe) const {
  const std::uint64_t token = probe.token.get();
  if (probe.sender.get() != sender || probe.port.get() >= tokens.size() || token == 0) {
    return false;
  }
  const Tokens& sent = tokens[probe.port.get()];
  return token == sent.newest || token == sent.former;
}

} // namespace weir::stage
