// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <infiniband/verbs.h>

#include <memory>

namespace weir::host::verbs {

/// An ibverbs object and the call that destroys it.
template <auto Destroy>
struct Destroyer {
  template <typename Object>
  void operator()(Object* object) const {
    Destroy(object);
  }
};

using DeviceList = std::unique_ptr<ibv_device*, Destroyer<ibv_free_device_list>>;
using Context = std::unique_ptr<ibv_context, Destroyer<ibv_close_device>>;
using ProtectionDomain = std::unique_ptr<ibv_pd, Destroyer<ibv_dealloc_pd>>;
using CompletionChannel = std::unique_ptr<ibv_comp_channel, Destroyer<ibv_destroy_comp_channel>>;
using CompletionQueue = std::unique_ptr<ibv_cq, Destroyer<ibv_destroy_cq>>;
using QueuePair = std::unique_ptr<ibv_qp, Destroyer<ibv_destroy_qp>>;
using MemoryRegion = std::unique_ptr<ibv_mr, Destroyer<ibv_dereg_mr>>;

} // namespace weir::host::verbs
