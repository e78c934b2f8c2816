// SPDX-License-Identifier: BSD-3-Clause
#include "host/nccl/own_net.hpp"

#include "host/nccl/call.hpp"
#include "host/nccl/net_in_use.hpp"
#include "host/nccl/properties.hpp"
#include "host/nccl/socket_net.hpp"
#include "host/nccl/usage.hpp"

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <utility>

namespace weir::nccl {
namespace {

NetInUse nccls_net{};

const weir_device& own_device(int number) {
  const auto& devices = usage().devices;
  if (number < 0 || static_cast<std::size_t>(number) >= devices.size()) {
    throw Failure(Result::invalid_argument,
                  fmt::format("device: found {}; there are {}", number, devices.size()));
  }
  return devices[static_cast<std::size_t>(number)];
}

Result own_devices(int* count) {
  *count = static_cast<int>(usage().devices.size());
  return Result::success;
}

template <typename Properties>
Result own_properties(int device, Properties* properties) {
  return call([&] { copy_properties(properties_of(own_device(device), device), *properties); });
}

Result own_properties_v12(int device, PropertiesV12& properties) {
  return own_properties(device, &properties);
}

Result init_v8(Logger logger) {
  const Result result = begin_init(logger);
  set_net_in_use({own_devices, own_properties_v12});
  return result;
}

Result init_v10(Logger logger, Profiler) {
  return init_v8(logger);
}

Result init_v11(void** context, std::uint64_t, void*, Logger logger, Profiler) {
  *context = nullptr; // communicators share what there is
  return init_v8(logger);
}

Result finalize(void*) {
  return Result::success;
}

Result listen(int device, void* handle, void** listener) {
  return call([&] {
    *listener =
        new SocketListener(own_device(device).interface, *static_cast<SocketHandle*>(handle));
  });
}

Result listen_v11(void*, int device, void* handle, void** listener) {
  return listen(device, handle, listener);
}

/// NCCL calls again with the same handle until there is a comm.
Result connect(int, void* opaque, void** comm, void**) {
  return call([&] {
    *comm = nullptr;
    auto& handle = *static_cast<SocketHandle*>(opaque);
    std::unique_ptr<SendConnection> made(std::exchange(handle.connecting, nullptr));
    if (!made) {
      made = SendConnection::begin(handle);
    }
    if (made->is_ready()) {
      *comm = static_cast<SocketConnection*>(made.release());
    } else {
      handle.connecting = made.release();
    }
  });
}

Result connect_v10(int device, void*, void* handle, void** comm, void** device_comm) {
  return connect(device, handle, comm, device_comm);
}

Result accept(void* listener, void** comm, void**) {
  return call([&] {
    std::unique_ptr<SocketConnection> made = static_cast<SocketListener*>(listener)->accept();
    *comm = made.release();
  });
}

Result register_memory(void* comm, void*, std::size_t, int type, void** memory) {
  return call([&] {
    if (type != kHostMemory) {
      throw Failure(Result::invalid_argument,
                    fmt::format("point-to-point: found memory of type {}; allowed: {}, the host's",
                                type, kHostMemory));
    }
    *memory = comm; // sockets know no memory; NULL would look like a failure
  });
}

Result register_dma_buf(void*, void*, std::size_t, int, std::uint64_t, int, void**) {
  return call([] {
    throw Failure(Result::invalid_usage, "point-to-point: found a DMA-BUF; allowed: host memory");
  });
}

Result deregister_memory(void*, void*) {
  return Result::success;
}

/// What NCCL holds as a request.
struct Started {
  SocketConnection* connection;
  SocketRequest* request;
};

Result start(void* comm, const SocketRequest& wanted, void** started) {
  return call([&] {
    *started = nullptr;
    auto* const connection = static_cast<SocketConnection*>(comm);
    if (SocketRequest* const request = connection->start(wanted); request != nullptr) {
      *started = new Started{connection, request};
    }
  });
}

template <typename Size>
Result isend(void* comm, void* data, Size bytes, int tag, void*, void** request) {
  return start(
      comm, {.header = {static_cast<std::uint64_t>(bytes), tag}, .data = static_cast<char*>(data)},
      request);
}

Result isend_v10(void* comm, void* data, std::size_t bytes, int tag, void* memory, void*,
                 void** request) {
  return isend(comm, data, bytes, tag, memory, request);
}

template <typename Size>
Result irecv(void* comm, int count, void** data, Size* bytes, int* tags, void**, void** request) {
  if (count != 1) {
    return call([&] {
      throw Failure(Result::invalid_argument,
                    fmt::format("irecv: found {} receives in one; allowed: 1", count));
    });
  }
  return start(comm,
               {.header = {0, tags[0]},
                .data = static_cast<char*>(data[0]),
                .room = static_cast<std::size_t>(bytes[0])},
               request);
}

Result irecv_v10(void* comm, int count, void** data, std::size_t* bytes, int* tags, void** memory,
                 void**, void** request) {
  return irecv(comm, count, data, bytes, tags, memory, request);
}

Result iflush(void*, int, void**, int*, void**, void** request) {
  *request = nullptr; // host memory has what came
  return Result::success;
}

Result test(void* request, int* done, int* bytes) {
  return call([&] {
    *done = 0;
    auto* const started = static_cast<Started*>(request);
    if (const auto moved = started->connection->test(*started->request)) {
      *done = 1;
      if (bytes != nullptr) {
        *bytes = static_cast<int>(*moved);
      }
      delete started;
    }
  });
}

Result close_connection(void* comm) {
  delete static_cast<SocketConnection*>(comm);
  return Result::success;
}

Result close_listener(void* listener) {
  delete static_cast<SocketListener*>(listener);
  return Result::success;
}

// For nets that a GPU drives.
Result no_device_memory(void*, void*, void**) {
  return Result::internal_error;
}

Result no_device_receive(void*, int, void*) {
  return Result::internal_error;
}

constexpr char kName[] = "Weir";
constexpr MemoryCalls kMemory{register_memory, register_dma_buf, deregister_memory};
constexpr NetEnd kEnd{iflush,           test,           close_connection,
                      close_connection, close_listener, no_device_memory,
                      no_device_receive};

/// NCCL hands these no configuration of the communicator.
template <typename Table>
constexpr Table kBeforeConfigurations{
    .start = {kName, init_v8, own_devices, own_properties, listen},
    .connect = connect,
    .accept = accept,
    .memory = kMemory,
    .isend = isend,
    .irecv = irecv,
    .end = kEnd};

template <typename Table>
constexpr Table kWithContext{
    .start = {kName, init_v11, own_devices, own_properties, listen_v11},
    .connect = [](void*, int device, void* handle, void** comm,
                  void** device_comm) { return connect(device, handle, comm, device_comm); },
    .accept = accept,
    .memory = kMemory,
    .isend = isend_v10,
    .irecv = irecv_v10,
    .end = kEnd,
    .finalize = finalize};

} // namespace

const NetV8 kOwnNetV8 = kBeforeConfigurations<NetV8>;
const NetV9 kOwnNetV9 = kBeforeConfigurations<NetV9>;
const NetV10 kOwnNetV10{.start = {kName, init_v10, own_devices, own_properties, listen},
                        .connect = connect_v10,
                        .accept = accept,
                        .memory = kMemory,
                        .isend = isend_v10,
                        .irecv = irecv_v10,
                        .end = kEnd};
const NetV11 kOwnNetV11 = kWithContext<NetV11>;
const NetV12 kOwnNetV12 = kWithContext<NetV12>;

Result begin_init(Logger logger) {
  static std::once_flag is_told;
  set_logger(logger);
  std::call_once(is_told, [] { log_line(usage().level, usage().why); });
  return usage().is_used ? Result::success : Result::system_error;
}

void set_net_in_use(const NetInUse& net) {
  nccls_net = net;
}

const NetInUse& net_in_use() {
  return nccls_net;
}

} // namespace weir::nccl
