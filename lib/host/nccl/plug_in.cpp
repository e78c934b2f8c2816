// SPDX-License-Identifier: BSD-3-Clause

/// The names of ncclNet that NCCL asks the library for, the newest version first. They are found
/// out when it asks: with WEIR_NCCL_NET, if Weir is used, there are those that the other plug-in
/// has, so that NCCL itself turns to an older version.

#include "host/nccl/net_in_use.hpp"
#include "host/nccl/own_net.hpp"
#include "host/nccl/passed_net.hpp"
#include "host/nccl/properties.hpp"
#include "host/nccl/usage.hpp"

#include <cstring>
#include <tuple>

namespace weir::nccl {
namespace {

template <typename Properties>
Properties described_by(Result (*)(int, Properties*));

/// Another plug-in's table, with our decision before its init.
template <typename Table>
struct Passed {
  static inline const Table* other;
  static inline Table table;

  static Result devices(int* count) { return other->start.devices(count); }

  static Result properties(int device, PropertiesV12& wanted) {
    decltype(described_by(table.start.get_properties)) given{};
    const Result result = other->start.get_properties(device, &given);
    if (result == Result::success) {
      copy_properties(given, wanted);
    }
    return result;
  }

  /// As the version has it: the arguments hold a Logger.
  template <typename... Arguments>
  static Result init(Arguments... arguments) {
    const Result begun = begin_init(std::get<Logger>(std::tuple(arguments...)));
    if (begun != Result::success) {
      return begun;
    }
    set_net_in_use({devices, properties});
    const Result result = other->start.init(arguments...);
    take();
    return result;
  }

  /// Also after init, which writes the table in some plug-ins. Later inits, for more communicators,
  /// find nothing to change in a table that other threads read.
  static void take() {
    Table taken = *other;
    taken.start.init = init;
    if (std::memcmp(&taken, &table, sizeof(table)) != 0) {
      table = taken;
    }
  }
};

template <typename Table>
const Table* table_of(const Table& own, int version) {
  if (!usage().is_used || !is_net_passed()) {
    return &own;
  }
  const auto* const other = static_cast<const Table*>(passed_table(version));
  if (other == nullptr) {
    return nullptr;
  }
  Passed<Table>::other = other;
  Passed<Table>::take();
  return &Passed<Table>::table;
}

using Name = void (*)();

template <typename Table>
Name name_of(const Table& own, int version) {
  return reinterpret_cast<Name>(const_cast<Table*>(table_of(own, version)));
}

} // namespace
} // namespace weir::nccl

extern "C" {

weir::nccl::Name weir_nccl_net_v8() {
  return weir::nccl::name_of(weir::nccl::kOwnNetV8, 8);
}

weir::nccl::Name weir_nccl_net_v9() {
  return weir::nccl::name_of(weir::nccl::kOwnNetV9, 9);
}

weir::nccl::Name weir_nccl_net_v10() {
  return weir::nccl::name_of(weir::nccl::kOwnNetV10, 10);
}

weir::nccl::Name weir_nccl_net_v11() {
  return weir::nccl::name_of(weir::nccl::kOwnNetV11, 11);
}

weir::nccl::Name weir_nccl_net_v12() {
  return weir::nccl::name_of(weir::nccl::kOwnNetV12, 12);
}

// dlsym calls the function that is named here, and returns what it returns.
void ncclNetPlugin_v8() __attribute__((ifunc("weir_nccl_net_v8")));
void ncclNetPlugin_v9() __attribute__((ifunc("weir_nccl_net_v9")));
void ncclNetPlugin_v10() __attribute__((ifunc("weir_nccl_net_v10")));
void ncclNetPlugin_v11() __attribute__((ifunc("weir_nccl_net_v11")));
void ncclNetPlugin_v12() __attribute__((ifunc("weir_nccl_net_v12")));
}
