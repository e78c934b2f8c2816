// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rte_lcore.h>
#include <rte_mempool.h>

#include <stdexcept>
#include <vector>

namespace weir::load {

/// Takes all of the switch's mbufs, except those in its lcores' caches, and keeps them. For the
/// main lcore.
class MempoolDrainer {
 public:
  MempoolDrainer() : pool_(rte_mempool_lookup("weir_frames")) {
    if (pool_ == nullptr) {
      throw std::runtime_error("the switch has no pool of frames");
    }
  }

  ~MempoolDrainer() {
    rte_mempool_put_bulk(pool_, taken_.data(), static_cast<unsigned>(taken_.size()));
    rte_mempool_cache_flush(rte_mempool_default_cache(pool_, rte_lcore_id()), pool_);
  }

  MempoolDrainer(const MempoolDrainer&) = delete;
  MempoolDrainer& operator=(const MempoolDrainer&) = delete;

  /// Takes the mbufs that are free now; returns how many it has.
  std::size_t grab() {
    void* mbuf = nullptr; // not used
    while (rte_mempool_get(pool_, &mbuf) == 0) {
      taken_.push_back(mbuf);
    }
    return taken_.size();
  }

 private:
  rte_mempool* pool_;
  std::vector<void*> taken_;
};

} // namespace weir::load
