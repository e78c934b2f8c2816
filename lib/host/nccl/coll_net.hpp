// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/nccl/abi.hpp"
#include "weir/weir.h"

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>

namespace weir::nccl {

struct ListenerCloser {
  void operator()(weir_listener* listener) const { weir_listener_close(listener); }
};

/// What NCCL holds between listen and closeListen.
class CollListener {
 public:
  /// Writes 128 bytes to `handle`.
  CollListener(const weir_device& device, void* handle);

  weir_context* context() const { return context_; }

  const weir_device& device() const { return device_; }

  /// NULL when it was closed.
  weir_listener* get() const { return listener_.get(); }

  void close() { listener_.reset(); }

 private:
  const weir_device& device_;
  weir_context* context_;
  std::unique_ptr<weir_listener, ListenerCloser> listener_;
};

class CollComm;

/// What registerMr gave.
struct CollMemory {
  const std::byte* data;
  std::size_t bytes;
  weir_memory* known;
};

struct CollRequest {
  CollComm* comm;
  weir_request* call;
  const CollMemory* in;
  const CollMemory* out;
  std::size_t bytes;
};

/// A communicator of CollNet: one group, so one ring. NCCL makes one for each communicator, NIC and
/// rank that has this NIC, and all channels of the communicator use it. The thread of NCCL's that
/// makes progress calls start() and test(), and another of its threads the rest.
class CollComm {
 public:
  /// Waits until all ranks have met, or the group's form_timeout_ms is over. Closes the listener.
  CollComm(void* const* handles, int ranks, int rank, CollListener& listener);
  CollComm(const CollComm&) = delete;
  CollComm& operator=(const CollComm&) = delete;
  /// At any time: calls under way end on all ranks, and nothing is written afterwards.
  ~CollComm();

  CollMemory* know(void* data, std::size_t bytes);
  /// NCCL frees the memory next, so calls that use it end first.
  void forget(CollMemory* memory);
  CollRequest* start(const void* in, void* out, std::size_t count, weir_data_type type,
                     weir_operation operation, std::size_t bytes, const CollMemory* in_memory,
                     const CollMemory* out_memory);
  /// Whether it is done; then it is gone.
  bool test(CollRequest* request);

 private:
  bool is_under_way(const CollRequest& request) const;
  void end_all(const std::string& why);

  weir_context* context_;
  weir_group* group_ = nullptr;
  std::mutex mutex_; // of what follows
  std::list<CollRequest> requests_;
  std::list<CollMemory> memory_;
};

} // namespace weir::nccl
