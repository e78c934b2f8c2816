// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What NCCL and a network plug-in call each other by: the tables ncclNetPlugin_vN and
/// ncclCollNetPlugin_vN, for N from 8 on. The names are ours; order, types and numbers are those of
/// NCCL's headers src/include/plugin/net/net_v8.h … net_v12.h. NCCL 2.20 to 2.23 take version 8,
/// 2.24 and 2.25 version 9, 2.26 and 2.27 version 10, 2.28 and 2.29 version 11, 2.30 version 12.
/// All numbers of bytes that are asserted here were measured with these headers.

#include <cstddef>
#include <cstdint>

namespace weir::nccl {

/// ncclResult_t
enum class Result : int {
  success = 0,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
};

/// ncclDebugLogLevel
enum class LogLevel : int { warn = 2, info = 3 };

/// ncclDebugLogSubSys: whose messages NCCL_DEBUG_SUBSYS shows
inline constexpr unsigned long kInitAndNet = 1 | 16;

using Logger = void (*)(LogLevel level, unsigned long subsystems, const char* file, int line,
                        const char* format, ...);
using Profiler = Result (*)(void** event, int type, void* parent, std::int64_t plugin, void* data);

inline constexpr std::size_t kHandleBytes = 128;    // NCCL_NET_HANDLE_MAXSIZE
inline constexpr std::size_t kMostRequests = 32;    // NCCL_NET_MAX_REQUESTS, of a connection
inline constexpr int kHostMemory = 1;               // NCCL_PTR_HOST
inline constexpr std::size_t kMostBytes = 1U << 30; // of a transfer; NCCL allows up to 2^40

struct PropertiesV8 {
  char* name;
  char* pci_path;     // in sysfs; NULL: none
  std::uint64_t guid; // the same for ports of one chip
  int pointer_support;
  int registration_is_global;
  int speed; // Mbit/s
  int port;
  float latency; // µs
  int most_comms;
  int most_receives;
  int device_type; // 0: the host drives it
  int device_version;
};

static_assert(sizeof(PropertiesV8) == 64);

template <int kMost>
struct MergedDevices {
  int count;
  int devices[kMost];
};

template <int kMost>
struct PropertiesWithLimits {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int force_flush;
  int speed;
  int port;
  float latency;
  int most_comms;
  int most_receives;
  int device_type;
  int device_version;
  MergedDevices<kMost> merged;
  std::size_t most_point_to_point_bytes;
  std::size_t most_collective_bytes;
};

using PropertiesV9 = PropertiesWithLimits<4>; // and of version 10
static_assert(sizeof(PropertiesV9) == 104);

struct PropertiesV11 {
  PropertiesV9 base;
  int most_requests_in_one;
};

static_assert(sizeof(PropertiesV11) == 112);

struct PropertiesV12 {
  PropertiesWithLimits<8> base;
  int most_requests_in_one;
  std::int16_t rail; // -1: unknown
  std::int16_t plane;
};

static_assert(sizeof(PropertiesV12) == 128);

struct MemoryCalls {
  Result (*register_memory)(void* comm, void* data, std::size_t bytes, int type, void** memory);
  Result (*register_dma_buf)(void* comm, void* data, std::size_t bytes, int type,
                             std::uint64_t offset, int descriptor, void** memory);
  Result (*deregister_memory)(void* comm, void* memory);
};

// What begins a table, by what NCCL hands over.

template <typename Properties>
struct StartV8 {
  const char* name;
  Result (*init)(Logger logger);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, Properties* properties);
  Result (*listen)(int device, void* handle, void** listener);
};

struct NetStartV10 {
  const char* name;
  Result (*init)(Logger logger, Profiler profiler);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV9* properties);
  Result (*listen)(int device, void* handle, void** listener);
};

template <typename Properties>
struct NetStartV11 {
  const char* name;
  Result (*init)(void** context, std::uint64_t comm, void* config, Logger logger,
                 Profiler profiler);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, Properties* properties);
  Result (*listen)(void* context, int device, void* handle, void** listener);
};

template <typename Properties>
struct CollStartV11 {
  const char* name;
  Result (*init)(void** context, std::uint64_t comm, Logger logger);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, Properties* properties);
  Result (*listen)(void* context, int device, void* handle, void** listener);
};

// What all versions of ncclNet have at the end.
struct NetEnd {
  Result (*iflush)(void* comm, int count, void** data, int* bytes, void** memory, void** request);
  Result (*test)(void* request, int* done, int* bytes);
  Result (*close_send)(void* comm);
  Result (*close_receive)(void* comm);
  Result (*close_listener)(void* listener);
  Result (*get_device_memory)(void* comm, void* memory, void** device_memory);
  Result (*receive_consumed)(void* comm, int count, void* request);
};

using Connect = Result (*)(int device, void* handle, void** comm, void** device_comm);
using Accept = Result (*)(void* listener, void** comm, void** device_comm);
using SendParent = Result (*)(void* comm, void* data, std::size_t bytes, int tag, void* memory,
                              void* parent, void** request);
using ReceiveParents = Result (*)(void* comm, int count, void** data, std::size_t* bytes, int* tags,
                                  void** memory, void** parents, void** request);

struct NetV8 {
  StartV8<PropertiesV8> start;
  Connect connect;
  Accept accept;
  MemoryCalls memory;
  Result (*isend)(void* comm, void* data, int bytes, int tag, void* memory, void** request);
  Result (*irecv)(void* comm, int count, void** data, int* bytes, int* tags, void** memory,
                  void** request);
  NetEnd end;
};

static_assert(sizeof(NetV8) == 152);

struct NetV9 {
  StartV8<PropertiesV9> start;
  Connect connect;
  Accept accept;
  MemoryCalls memory;
  Result (*isend)(void* comm, void* data, std::size_t bytes, int tag, void* memory, void** request);
  Result (*irecv)(void* comm, int count, void** data, std::size_t* bytes, int* tags, void** memory,
                  void** request);
  NetEnd end;
  void* merge_devices; // makeVDevice; NULL: there is none
};

static_assert(sizeof(NetV9) == 160);

struct NetV10 {
  NetStartV10 start;
  Result (*connect)(int device, void* config, void* handle, void** comm, void** device_comm);
  Accept accept;
  MemoryCalls memory;
  SendParent isend;
  ReceiveParents irecv;
  NetEnd end;
  void* merge_devices;
};

static_assert(sizeof(NetV10) == 160);

template <typename Properties>
struct NetWithContext {
  NetStartV11<Properties> start;
  Result (*connect)(void* context, int device, void* handle, void** comm, void** device_comm);
  Accept accept;
  MemoryCalls memory;
  SendParent isend;
  ReceiveParents irecv;
  NetEnd end;
  void* merge_devices;
  Result (*finalize)(void* context);
  void* set_attributes; // setNetAttr; NULL: none is of interest
};

using NetV11 = NetWithContext<PropertiesV11>;
using NetV12 = NetWithContext<PropertiesV12>;
static_assert(sizeof(NetV11) == 176 && sizeof(NetV12) == 176);

/// What all versions of ncclCollNet have behind their start, but for the type of `count`.
template <typename Count>
struct CollBody {
  Result (*connect)(void** handles, int ranks, int rank, void* listener, void** comm);
  Result (*reduce_support)(int type, int operation, int* supported);
  MemoryCalls memory;
  Result (*iallreduce)(void* comm, void* in, void* out, Count count, int type, int operation,
                       void* in_memory, void* out_memory, void** request);
  void* iallgather;     // NULL: NCCL gathers by point-to-point
  void* ireducescatter; // NULL: likewise
  Result (*iflush)(void* comm, void* data, int bytes, void* memory, void** request);
  Result (*test)(void* request, int* done, int* bytes);
  Result (*close_comm)(void* comm);
  Result (*close_listener)(void* listener);
};

struct CollNetV8 {
  StartV8<PropertiesV8> start;
  CollBody<int> body;
};

static_assert(sizeof(CollNetV8) == 136);

struct CollNetV9 { // and version 10
  StartV8<PropertiesV9> start;
  CollBody<std::size_t> body;
  void* merge_devices;
};

static_assert(sizeof(CollNetV9) == 144);

template <typename Properties>
struct CollNetWithContext {
  CollStartV11<Properties> start;
  CollBody<std::size_t> body;
  void* merge_devices;
  Result (*finalize)(void* context);
};

using CollNetV11 = CollNetWithContext<PropertiesV11>;
using CollNetV12 = CollNetWithContext<PropertiesV12>;
static_assert(sizeof(CollNetV11) == 152 && sizeof(CollNetV12) == 152);

} // namespace weir::nccl
