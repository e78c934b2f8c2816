// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/call_copy.hpp"

#include <algorithm>
#include <cstddef>

namespace weir::host {

/// In place, as each call may be made: a share lies where it is in the ranks' shares.
CallBuffers copy_call(const Call& call, const Place& place, const CallBuffers& buffers,
                      std::vector<std::uint8_t>& memory) {
  const CallRow& row = call.row();
  const std::size_t share = call.has_data() ? call.count * bytes_of_element(call.type) : 0;
  memory.resize(call.shares(place.world) * share);
  std::uint8_t* const own = memory.data() + place.rank * (memory.size() == share ? 0 : share);
  const bool brings_all = row.brings == Amount::share_of_each;
  std::uint8_t* const in = brings_all ? memory.data() : own;
  const bool brings_nothing = row.contributes == op::Who::root && place.rank != call.root;
  if (buffers.list != nullptr) {
    buffers.list->gather(0, memory);
  } else if (!brings_nothing) {
    std::copy_n(buffers.in, brings_all ? memory.size() : share, in);
  }
  return {.in = in,
          .out = row.gets == Amount::share_of_each ? memory.data() : own,
          .in_owner = Owner::library,
          .out_owner = Owner::library,
          .cut = buffers.cut};
}

} // namespace weir::host
