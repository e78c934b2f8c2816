// SPDX-License-Identifier: BSD-3-Clause
#include "host/nccl/passed_net.hpp"

#include "host/nccl/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <dlfcn.h>

namespace weir::nccl {
namespace {

constexpr std::array kVersions{12, 11, 10, 9, 8};

struct OtherPlugIn {
  std::string name;
  void* library = nullptr;
  std::string problem;
};

const void* table_in(void* library, int version) {
  return library != nullptr ? dlsym(library, fmt::format("ncclNetPlugin_v{}", version).c_str())
                            : nullptr;
}

OtherPlugIn load() {
  OtherPlugIn other{.name = value_of(variable("WEIR_NCCL_NET"))};
  if (other.name.empty()) {
    return other;
  }
  // For the process's life: it may have threads.
  other.library = dlopen(other.name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (other.library == nullptr) {
    other.problem = fmt::format("WEIR_NCCL_NET: {}", dlerror());
  } else if (std::ranges::none_of(kVersions, [&](int version) {
               return table_in(other.library, version) != nullptr;
             })) {
    other.problem =
        fmt::format("WEIR_NCCL_NET: {} has no ncclNetPlugin of version 8 to 12", other.name);
  }
  return other;
}

const OtherPlugIn& other_plug_in() {
  static const OtherPlugIn loaded = load();
  return loaded;
}

} // namespace

bool is_net_passed() {
  return other_plug_in().library != nullptr && other_plug_in().problem.empty();
}

std::string problem_of_passed_net() {
  return other_plug_in().problem;
}

std::string name_of_passed_net() {
  return is_net_passed() ? other_plug_in().name : "TCP sockets, which are slower than NCCL's own";
}

const void* passed_table(int version) {
  return table_in(other_plug_in().library, version);
}

} // namespace weir::nccl
