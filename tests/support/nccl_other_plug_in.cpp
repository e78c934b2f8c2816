// SPDX-License-Identifier: BSD-3-Clause

/// Another plug-in for NCCL, of which Weir's passes the point-to-point on: it has version 10 alone
/// and two devices, and writes its table when it begins, as NVIDIA's does. Nothing else of it is
/// called.

#include "host/nccl/abi.hpp"

#include <cstdio>

namespace {

using namespace weir::nccl;

[[maybe_unused]] const int is_told = std::puts("the other plug-in is loaded");

Result devices(int* count) {
  *count = 2;
  return Result::success;
}

/// As of NICs that reach the memory of GPUs.
Result properties(int device, PropertiesV9* properties) {
  static char names[][6]{"other", "host1"};
  constexpr int of_hosts_and_gpus = 3;
  *properties = {};
  properties->name = names[device];
  properties->speed = 400000;
  properties->pointer_support = of_hosts_and_gpus;
  properties->most_receives = 1;
  return Result::success;
}

Result init(Logger, Profiler);

} // namespace

extern "C" {
extern NetV10 ncclNetPlugin_v10;
NetV10 ncclNetPlugin_v10{.start = {.name = "Other", .init = init}};
}

namespace {

Result init(Logger, Profiler) {
  std::puts("the other plug-in begins");
  ncclNetPlugin_v10.start = {"Other, begun", init, devices, properties, nullptr};
  return Result::success;
}

} // namespace
