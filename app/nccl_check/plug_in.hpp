// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/nccl/abi.hpp"

#include <cstdio>
#include <dlfcn.h>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

namespace weir::nccl_check {

using nccl::Result;

inline void expect_success(const char* what, Result result) {
  if (result != Result::success) {
    throw std::runtime_error(std::string(what) + ": result " +
                             std::to_string(static_cast<int>(result)));
  }
}

/// The point-to-point of a plug-in, as NCCL sees it whatever version it took.
struct Net {
  std::string name;
  std::function<Result()> init;
  std::function<Result()> finalize;
  Result (*devices)(int*);
  std::function<Result(int, nccl::PropertiesV12&)> properties;
  std::function<Result(int, void*, void**)> listen;
  std::function<Result(int, void*, void**)> connect;
  nccl::Accept accept;
  nccl::MemoryCalls memory;
  std::function<Result(void*, void*, std::size_t, int, void*, void**)> isend;
  std::function<Result(void*, void*, std::size_t, int, void*, void**)> irecv;
  nccl::NetEnd end;
};

struct CollNet {
  std::string name;
  std::function<Result()> init;
  std::function<Result()> finalize;
  Result (*devices)(int*);
  std::function<Result(int, nccl::PropertiesV12&)> properties;
  std::function<Result(int, void*, void**)> listen;
  nccl::CollBody<std::size_t> body; // without iallreduce
  std::function<Result(void*, void*, void*, std::size_t, int, int, void*, void*, void**)>
      iallreduce;
};

/// Opens a plug-in as NCCL does, and takes the tables of one version, 8 to 12. What it says goes to
/// `log`. Throws std::runtime_error: there is no such file, or no such table in it.
class PlugIn {
 public:
  PlugIn(const char* file, int version, nccl::Logger log);
  PlugIn(const PlugIn&) = delete;
  PlugIn& operator=(const PlugIn&) = delete;

  ~PlugIn() { dlclose(library_); }

  /// Of the point-to-point; a plug-in may write its table only then.
  Result init_net();

  /// Nothing: it has none of this version.
  const std::optional<Net>& net() const { return net_; }

  const CollNet& coll() const { return *coll_; }

 private:
  template <typename NetTable, typename CollTable>
  void take();
  void take_version();

  int version_;
  nccl::Logger log_;
  void* library_;
  std::function<Net()>
      read_net_; // NCCL asks for the table's place once, and reads it again and again
  std::optional<Net> net_;
  std::optional<CollNet> coll_;
};

} // namespace weir::nccl_check
