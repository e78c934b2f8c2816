// SPDX-License-Identifier: BSD-3-Clause

/// ncclCollNetPlugin_vN. NCCL reads the names right after those of ncclNet, and calls init only if
/// that of ncclNet was a success.

#include "host/nccl/call.hpp"
#include "host/nccl/coll_net.hpp"
#include "host/nccl/net_in_use.hpp"
#include "host/nccl/own_net.hpp"
#include "host/nccl/properties.hpp"
#include "host/nccl/types.hpp"
#include "host/nccl/usage.hpp"

#include <fmt/format.h>

#include <memory>
#include <string_view>

namespace weir::nccl {
namespace {

Result coll_init_v8(Logger logger) {
  return begin_init(logger);
}

Result coll_init_v11(void** context, std::uint64_t, Logger logger) {
  *context = nullptr;
  return begin_init(logger);
}

Result coll_finalize(void*) {
  return Result::success;
}

Result coll_devices(int* count) {
  return net_in_use().devices(count);
}

/// The net's, so that NCCL sees one device. What CollNet reads and writes is host memory.
PropertiesV12 coll_properties_of(int device) {
  PropertiesV12 properties{};
  if (const Result result = net_in_use().properties(device, properties);
      result != Result::success) {
    throw Failure(result,
                  fmt::format("device {}: the point-to-point plug-in does not know it", device));
  }
  properties.base.pointer_support = kHostMemory;
  properties.base.device_type = 0;
  properties.base.device_version = 0;
  properties.base.most_collective_bytes = kMostBytes;
  properties.base.merged.count = 1;
  properties.base.merged.devices[0] = device;
  return properties;
}

template <typename Properties>
Result coll_properties(int device, Properties* properties) {
  return call([&] { copy_properties(coll_properties_of(device), *properties); });
}

bool is_same(const weir_device& device, const PropertiesV12& nets) {
  const std::string_view path = nets.base.pci_path != nullptr ? nets.base.pci_path : "";
  return nets.base.name == std::string_view(device.name) ||
         nets.base.name == std::string_view(device.interface) ||
         (!path.empty() && path == device.pci_path);
}

/// By the net's name for it, or its place; else the first of WEIR_DEVICE.
const weir_device& device_for(int number) {
  const PropertiesV12 nets = coll_properties_of(number);
  for (const weir_device& device : usage().devices) {
    if (is_same(device, nets)) {
      return device;
    }
  }
  return usage().devices.front();
}

Result coll_listen(int device, void* handle, void** listener) {
  return call([&] { *listener = new CollListener(device_for(device), handle); });
}

Result coll_listen_v11(void*, int device, void* handle, void** listener) {
  return coll_listen(device, handle, listener);
}

/// NCCL waits in it. It closes the listener after a success, and forgets it otherwise.
Result coll_connect(void** handles, int ranks, int rank, void* listener, void** comm) {
  return call([&] {
    *comm = nullptr;
    std::unique_ptr<CollListener> forgotten(static_cast<CollListener*>(listener));
    *comm = new CollComm(handles, ranks, rank, *forgotten);
    static_cast<void>(forgotten.release());
  });
}

Result coll_close_listener(void* listener) {
  delete static_cast<CollListener*>(listener);
  return Result::success;
}

Result reduce_support(int type, int operation, int* supported) {
  const auto data = data_type_of(type);
  const auto fold = operation_of(operation);
  *supported = data && fold && weir_is_reducible(data->type, *fold) != 0 ? 1 : 0;
  return Result::success;
}

Result coll_register_memory(void* comm, void* data, std::size_t bytes, int type, void** memory) {
  return call([&] {
    if (type != kHostMemory) {
      throw Failure(Result::invalid_argument,
                    fmt::format("CollNet: found memory of type {}; allowed: {}, the host's", type,
                                kHostMemory));
    }
    *memory = static_cast<CollComm*>(comm)->know(data, bytes);
  });
}

Result coll_register_dma_buf(void*, void*, std::size_t, int, std::uint64_t, int, void**) {
  return call([] {
    throw Failure(Result::invalid_usage, "CollNet: found a DMA-BUF; allowed: host memory");
  });
}

Result coll_deregister_memory(void* comm, void* memory) {
  return call([&] {
    if (memory != nullptr) {
      static_cast<CollComm*>(comm)->forget(static_cast<CollMemory*>(memory));
    }
  });
}

template <typename Count>
Result iallreduce(void* comm, void* in, void* out, Count count, int type, int operation,
                  void* in_memory, void* out_memory, void** request) {
  return call([&] {
    *request = nullptr;
    const auto data = data_type_of(type);
    const auto fold = operation_of(operation);
    if (!data || !fold || count < 0) {
      throw Failure(Result::invalid_argument,
                    fmt::format("iallreduce: found {} elements of type {} with operation {}; "
                                "reduceSupport tells what is allowed",
                                count, type, operation));
    }
    const auto elements = static_cast<std::size_t>(count);
    *request = static_cast<CollComm*>(comm)->start(
        in, out, elements, data->type, *fold, elements * data->bytes,
        static_cast<const CollMemory*>(in_memory), static_cast<const CollMemory*>(out_memory));
  });
}

Result coll_flush(void*, void*, int, void*, void** request) {
  *request = nullptr; // host memory has what came
  return Result::success;
}

Result coll_test(void* opaque, int* done, int* bytes) {
  return call([&] {
    auto* const request = static_cast<CollRequest*>(opaque);
    const std::size_t size = request->bytes;
    *done = request->comm->test(request) ? 1 : 0;
    if (*done == 1 && bytes != nullptr) {
      *bytes = static_cast<int>(size);
    }
  });
}

Result close_comm(void* comm) {
  return call([&] { delete static_cast<CollComm*>(comm); });
}

constexpr char kCollName[] = "Weir";
constexpr MemoryCalls kCollMemory{coll_register_memory, coll_register_dma_buf,
                                  coll_deregister_memory};

template <typename Count>
constexpr CollBody<Count> kBody{.connect = coll_connect,
                                .reduce_support = reduce_support,
                                .memory = kCollMemory,
                                .iallreduce = iallreduce,
                                .iflush = coll_flush,
                                .test = coll_test,
                                .close_comm = close_comm,
                                .close_listener = coll_close_listener};

template <typename Table>
constexpr Table kCollWithContext{
    .start = {kCollName, coll_init_v11, coll_devices, coll_properties, coll_listen_v11},
    .body = kBody<std::size_t>,
    .finalize = coll_finalize};

constexpr CollNetV9 kCollV9{
    .start = {kCollName, coll_init_v8, coll_devices, coll_properties, coll_listen},
    .body = kBody<std::size_t>};

} // namespace
} // namespace weir::nccl

extern "C" {
extern const weir::nccl::CollNetV8 ncclCollNetPlugin_v8;
extern const weir::nccl::CollNetV9 ncclCollNetPlugin_v9;
extern const weir::nccl::CollNetV9 ncclCollNetPlugin_v10;
extern const weir::nccl::CollNetV11 ncclCollNetPlugin_v11;
extern const weir::nccl::CollNetV12 ncclCollNetPlugin_v12;

const weir::nccl::CollNetV8 ncclCollNetPlugin_v8{
    .start = {weir::nccl::kCollName, weir::nccl::coll_init_v8, weir::nccl::coll_devices,
              weir::nccl::coll_properties, weir::nccl::coll_listen},
    .body = weir::nccl::kBody<int>};
const weir::nccl::CollNetV9 ncclCollNetPlugin_v9 = weir::nccl::kCollV9;
const weir::nccl::CollNetV9 ncclCollNetPlugin_v10 = weir::nccl::kCollV9;
const weir::nccl::CollNetV11 ncclCollNetPlugin_v11 =
    weir::nccl::kCollWithContext<weir::nccl::CollNetV11>;
const weir::nccl::CollNetV12 ncclCollNetPlugin_v12 =
    weir::nccl::kCollWithContext<weir::nccl::CollNetV12>;
}
