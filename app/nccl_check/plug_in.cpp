// SPDX-License-Identifier: BSD-3-Clause
#include "nccl_check/plug_in.hpp"

namespace weir::nccl_check {
namespace {

// Where NCCL's headers have what is called most; the same in all versions.

template <typename Table>
constexpr bool is_net_as_nccls() {
  return offsetof(Table, start.listen) == 32 && offsetof(Table, connect) == 40 &&
         offsetof(Table, accept) == 48 && offsetof(Table, memory.register_memory) == 56 &&
         offsetof(Table, memory.deregister_memory) == 72 && offsetof(Table, isend) == 80 &&
         offsetof(Table, irecv) == 88 && offsetof(Table, end.iflush) == 96 &&
         offsetof(Table, end.test) == 104 && offsetof(Table, end.close_listener) == 128;
}

template <typename Table>
constexpr bool is_coll_as_nccls() {
  return offsetof(Table, start.listen) == 32 && offsetof(Table, body.connect) == 40 &&
         offsetof(Table, body.reduce_support) == 48 &&
         offsetof(Table, body.memory.register_memory) == 56 &&
         offsetof(Table, body.iallreduce) == 80 && offsetof(Table, body.iallgather) == 88 &&
         offsetof(Table, body.iflush) == 104 && offsetof(Table, body.test) == 112 &&
         offsetof(Table, body.close_comm) == 120;
}

static_assert(is_net_as_nccls<nccl::NetV8>() && is_net_as_nccls<nccl::NetV9>() &&
              is_net_as_nccls<nccl::NetV10>() && is_net_as_nccls<nccl::NetV11>() &&
              is_net_as_nccls<nccl::NetV12>());
static_assert(offsetof(nccl::NetV10, merge_devices) == 152 &&
              offsetof(nccl::NetV12, finalize) == 160 &&
              offsetof(nccl::CollNetV12, finalize) == 144);
static_assert(is_coll_as_nccls<nccl::CollNetV8>() && is_coll_as_nccls<nccl::CollNetV9>() &&
              is_coll_as_nccls<nccl::CollNetV11>() && is_coll_as_nccls<nccl::CollNetV12>());
static_assert(offsetof(nccl::PropertiesV8, speed) == 32 &&
              offsetof(nccl::PropertiesV8, latency) == 40 &&
              offsetof(nccl::PropertiesV8, most_receives) == 48);
static_assert(offsetof(nccl::PropertiesV9, speed) == 36 &&
              offsetof(nccl::PropertiesV9, latency) == 44 &&
              offsetof(nccl::PropertiesV9, most_receives) == 52 &&
              offsetof(nccl::PropertiesV9, most_collective_bytes) == 96);
static_assert(offsetof(nccl::PropertiesV12, base.most_collective_bytes) == 112 &&
              offsetof(nccl::PropertiesV12, rail) == 124);

constexpr std::uint64_t kCommunicator = 1;

template <typename Start>
std::function<Result()> init_of(const Start& start, nccl::Logger log) {
  return [init = start.init, log] {
    static void* context;
    if constexpr (requires { init(log); }) {
      return init(log);
    } else if constexpr (requires { init(log, nullptr); }) {
      return init(log, nullptr);
    } else if constexpr (requires { init(&context, kCommunicator, log); }) {
      return init(&context, kCommunicator, log);
    } else {
      return init(&context, kCommunicator, nullptr, log, nullptr);
    }
  };
}

template <typename Table>
std::function<Result()> finalize_of(const Table& table) {
  if constexpr (requires { table.finalize; }) {
    return [finalize = table.finalize] { return finalize(nullptr); };
  } else {
    return [] { return Result::success; };
  }
}

template <typename Start>
std::function<Result(int, void*, void**)> listen_of(const Start& start) {
  return [listen = start.listen](int device, void* handle, void** listener) {
    if constexpr (requires { listen(device, handle, listener); }) {
      return listen(device, handle, listener);
    } else {
      return listen(nullptr, device, handle, listener);
    }
  };
}

template <typename Properties>
Properties described_by(Result (*)(int, Properties*));

/// Only what somebody here looks at.
template <typename Start>
std::function<Result(int, nccl::PropertiesV12&)> properties_of(const Start& start) {
  return [get = start.get_properties](int device, nccl::PropertiesV12& wanted) {
    decltype(described_by(get)) given{};
    const Result result = get(device, &given);
    const auto& base = [&]() -> const auto& {
      if constexpr (requires { given.base; }) {
        return given.base;
      } else {
        return given;
      }
    }
    ();
    wanted.base.name = base.name;
    wanted.base.pci_path = base.pci_path;
    wanted.base.speed = base.speed;
    wanted.base.pointer_support = base.pointer_support;
    wanted.base.most_receives = base.most_receives;
    if constexpr (requires { base.most_collective_bytes; }) {
      wanted.base.most_collective_bytes = base.most_collective_bytes;
    }
    return result;
  };
}

template <typename Table>
std::function<Result(int, void*, void**)> connect_of(const Table& table) {
  return [connect = table.connect](int device, void* handle, void** comm) {
    void* context = nullptr;
    if constexpr (requires { connect(device, handle, comm, nullptr); }) {
      return connect(device, handle, comm, nullptr);
    } else if constexpr (requires { connect(device, context, handle, comm, nullptr); }) {
      return connect(device, context, handle, comm, nullptr);
    } else {
      return connect(context, device, handle, comm, nullptr);
    }
  };
}

template <typename Table>
Net net_of(const Table& table, nccl::Logger log) {
  Net net{.name = table.start.name,
          .init = init_of(table.start, log),
          .finalize = finalize_of(table),
          .devices = table.start.devices,
          .properties = properties_of(table.start),
          .listen = listen_of(table.start),
          .connect = connect_of(table),
          .accept = table.accept,
          .memory = table.memory,
          .isend = {},
          .irecv = {},
          .end = table.end};
  net.isend = [isend = table.isend](void* comm, void* data, std::size_t bytes, int tag,
                                    void* memory, void** request) {
    if constexpr (requires { isend(comm, data, bytes, tag, memory, nullptr, request); }) {
      return isend(comm, data, bytes, tag, memory, nullptr, request);
    } else if constexpr (requires(int narrow) {
                           isend(comm, data, narrow, tag, memory, request);
                         }) {
      return isend(comm, data, static_cast<int>(bytes), tag, memory, request);
    }
  };
  net.irecv = [irecv = table.irecv](void* comm, void* data, std::size_t bytes, int tag,
                                    void* memory, void** request) {
    int narrow = static_cast<int>(bytes);
    if constexpr (requires { irecv(comm, 1, &data, &bytes, &tag, &memory, nullptr, request); }) {
      return irecv(comm, 1, &data, &bytes, &tag, &memory, nullptr, request);
    } else if constexpr (requires { irecv(comm, 1, &data, &bytes, &tag, &memory, request); }) {
      return irecv(comm, 1, &data, &bytes, &tag, &memory, request);
    } else {
      return irecv(comm, 1, &data, &narrow, &tag, &memory, request);
    }
  };
  return net;
}

template <typename Count>
Count count_of(Result (*)(void*, void*, void*, Count, int, int, void*, void*, void**));

template <typename Table>
CollNet coll_of(const Table& table, nccl::Logger log) {
  const auto& body = table.body;
  CollNet coll{.name = table.start.name,
               .init = init_of(table.start, log),
               .finalize = finalize_of(table),
               .devices = table.start.devices,
               .properties = properties_of(table.start),
               .listen = listen_of(table.start),
               .body = {body.connect, body.reduce_support, body.memory, nullptr, body.iallgather,
                        body.ireducescatter, body.iflush, body.test, body.close_comm,
                        body.close_listener},
               .iallreduce = {}};
  coll.iallreduce = [start = body.iallreduce](void* comm, void* in, void* out, std::size_t count,
                                              int type, int operation, void* in_memory,
                                              void* out_memory, void** request) {
    using Count = decltype(count_of(start));
    return start(comm, in, out, static_cast<Count>(count), type, operation, in_memory, out_memory,
                 request);
  };
  return coll;
}

template <typename Table>
const Table* table_in(void* library, const std::string& name) {
  return static_cast<const Table*>(dlsym(library, name.c_str()));
}

} // namespace

template <typename NetTable, typename CollTable>
void PlugIn::take() {
  const std::string number = std::to_string(version_);
  if (const auto* net = table_in<NetTable>(library_, "ncclNetPlugin_v" + number); net != nullptr) {
    read_net_ = [net, log = log_] { return net_of(*net, log); };
    net_ = read_net_();
  }
  const auto* const coll = table_in<CollTable>(library_, "ncclCollNetPlugin_v" + number);
  if (coll == nullptr) {
    throw std::runtime_error("no ncclCollNetPlugin_v" + number);
  }
  coll_ = coll_of(*coll, log_);
}

void PlugIn::take_version() {
  switch (version_) {
  case 8:
    return take<nccl::NetV8, nccl::CollNetV8>();
  case 9:
    return take<nccl::NetV9, nccl::CollNetV9>();
  case 10:
    return take<nccl::NetV10, nccl::CollNetV9>();
  case 11:
    return take<nccl::NetV11, nccl::CollNetV11>();
  case 12:
    return take<nccl::NetV12, nccl::CollNetV12>();
  default:
    throw std::runtime_error("versions are 8 to 12");
  }
}

PlugIn::PlugIn(const char* file, int version, nccl::Logger log)
    : version_(version), log_(log), library_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr) {
    throw std::runtime_error(dlerror());
  }
  take_version();
}

Result PlugIn::init_net() {
  const Result result = net_->init();
  net_ = read_net_();
  return result;
}

} // namespace weir::nccl_check
