// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/group.hpp"
#include "host/api/scaled_sums.hpp"
#include "host/collective/ring_blocks.hpp"
#include "weir/weir.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

using namespace weir;

/// What its groups need of a device.
struct weir_context {
  host::GroupOptions device;
};

struct weir_group {
  explicit weir_group(const host::GroupOptions& options)
      : group(options), fallback_reason(group.fallback_reason()) {}

  host::Group group;
  std::string fallback_reason;
  host::ScaledSums scaled_sums;
};

struct weir_request {
  host::Pending pending;
};

namespace {

struct LastError {
  std::string text;
  int rank = -1;
};

thread_local LastError last_error;

weir_status remember(weir_status status, const std::exception& error, int rank) {
  last_error = {error.what(), rank};
  return status;
}

weir_status still_pending(const std::string& waits_for) {
  last_error = {waits_for};
  return WEIR_PENDING;
}

weir_status status_of(host::ErrorCode code) {
  switch (code) {
  case host::ErrorCode::rendezvous_timeout:
    return WEIR_RENDEZVOUS_TIMEOUT;
  case host::ErrorCode::peer_died:
    return WEIR_PEER_DIED;
  case host::ErrorCode::retry_exceeded:
    return WEIR_RETRY_EXCEEDED;
  case host::ErrorCode::not_aggregated:
    return WEIR_NOT_AGGREGATED;
  case host::ErrorCode::mismatch:
    return WEIR_MISMATCH;
  case host::ErrorCode::timeout:
    return WEIR_TIMEOUT;
  case host::ErrorCode::transport_failure:
    return WEIR_TRANSPORT_FAILURE;
  case host::ErrorCode::aborted:
    return WEIR_ABORTED;
  }
  return WEIR_INTERNAL_ERROR;
}

/// Turns exceptions into error codes: none may pass into C.
template <typename Body>
weir_status guarded(Body body) {
  try {
    return body();
  } catch (const host::Error& error) {
    return remember(status_of(error.code()), error, error.rank() ? *error.rank() : -1);
  } catch (const std::invalid_argument& error) {
    return remember(WEIR_INVALID_ARGUMENT, error, -1);
  } catch (const std::exception& error) {
    return remember(WEIR_INTERNAL_ERROR, error, -1);
  }
}

std::string text_of(const char* text) {
  return text != nullptr ? text : "";
}

/// What a caller must not pass as NULL.
template <typename Object>
Object& object_at(Object* pointer, std::string_view what) {
  if (pointer == nullptr) {
    throw std::invalid_argument(fmt::format("{}: found NULL; allowed: one of this library", what));
  }
  return *pointer;
}

host::GroupOptions default_options() {
  return {};
}

weir_context_options default_context_options() {
  const host::GroupOptions defaults = default_options();
  weir_context_options options{};
  options.size = sizeof(options);
  options.gid_index = defaults.gid_index;
  return options;
}

weir_group_options default_group_options() {
  const host::GroupOptions defaults = default_options();
  weir_group_options options{};
  options.size = sizeof(options);
  options.world = defaults.world;
  options.window = defaults.window;
  options.message_bytes = defaults.message_bytes;
  options.path_mtu = defaults.path_mtu;
  options.form_timeout_ms = static_cast<std::uint32_t>(defaults.form_timeout.count());
  options.timeout_ms = static_cast<std::uint32_t>(defaults.timeout.count());
  options.ack_timeout_ms = static_cast<std::uint32_t>(defaults.ack_timeout.count());
  options.retry_count = defaults.retry_count;
  options.lateness_ms = static_cast<std::uint32_t>(defaults.lateness.count());
  return options;
}

/// Writes as much of the defaults as the caller's struct holds.
template <typename Options>
void write_defaults(Options* options, std::size_t size, Options defaults) {
  defaults.size = size;
  std::memcpy(options, &defaults, std::min(size, sizeof(Options)));
  if (size > sizeof(Options)) {
    std::memset(reinterpret_cast<std::uint8_t*>(options) + sizeof(Options), 0,
                size - sizeof(Options));
  }
}

/// The caller's options, with the defaults where its struct is shorter. A longer struct comes from
/// a newer header; what this library does not know must be 0 there.
template <typename Options>
Options read_options(const Options* given, Options defaults) {
  const std::size_t size = object_at(given, "options").size;
  if (size < sizeof(size)) {
    throw std::invalid_argument(
        fmt::format("options.size: found {}; allowed: what weir_..._options_init sets", size));
  }
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(given);
  const auto is_zero = [](std::uint8_t byte) { return byte == 0; };
  if (size > sizeof(Options) && !std::all_of(bytes + sizeof(Options), bytes + size, is_zero)) {
    throw std::invalid_argument(
        fmt::format("options: found a field behind byte {}, which version {} of the library does "
                    "not know; allowed: 0 there",
                    sizeof(Options), weir_version()));
  }
  std::memcpy(&defaults, given, std::min(size, sizeof(Options)));
  return defaults;
}

/// For an option whose values are 0 and 1. A C program may have stored any number, which C++ may
/// not load as the enumeration.
template <typename Kind, typename Option>
Kind kind_of(const Option& option, std::string_view name, std::string_view allowed) {
  unsigned number = 0;
  static_assert(sizeof(number) == sizeof(option));
  std::memcpy(&number, &option, sizeof(number));
  if (number > 1) {
    throw std::invalid_argument(fmt::format("{}: found {}; allowed: {}", name, number, allowed));
  }
  return static_cast<Kind>(number);
}

host::GroupOptions translate(const weir_context_options& options) {
  host::GroupOptions result;
  result.transport =
      kind_of<host::TransportKind>(options.transport, "transport", "WEIR_SOFTWARE, WEIR_VERBS");
  result.device = text_of(options.device);
  result.ip = text_of(options.ip);
  result.mac = text_of(options.mac);
  result.gid_index = options.gid_index;
  return result;
}

std::string secret_of(const weir_group_options& options) {
  if (options.secret == nullptr && options.secret_bytes != 0) {
    throw std::invalid_argument(fmt::format("secret: found NULL with secret_bytes {}; allowed: 0 "
                                            "there",
                                            options.secret_bytes));
  }
  if (options.secret == nullptr) {
    return {};
  }
  constexpr std::size_t kMost = std::size_t{1} << 16; // no secret has more; what follows says so
  if (options.secret_bytes == 0 || options.secret_bytes > kMost) {
    throw std::invalid_argument(fmt::format("secret_bytes: found {}; allowed: 16 .. 1024, or a "
                                            "secret that is NULL",
                                            options.secret_bytes));
  }
  return {static_cast<const char*>(options.secret), options.secret_bytes};
}

host::AllGather all_gather_of(const weir_group_options& options) {
  if (options.all_gather == nullptr) {
    return {};
  }
  return [function = options.all_gather,
          user = options.all_gather_user](const void* in, std::size_t bytes, void* out) {
    return function(user, in, bytes, out);
  };
}

host::GroupOptions translate(const weir_group_options& options, host::GroupOptions result) {
  if (options.reserved != 0) {
    throw std::invalid_argument(fmt::format("reserved: found {}; allowed: 0", options.reserved));
  }
  if (options.rings != nullptr) {
    result.rings.assign(options.rings, options.rings + options.ring_count);
  }
  result.rank = options.rank;
  result.world = options.world;
  result.rendezvous = text_of(options.rendezvous);
  result.form_timeout = std::chrono::milliseconds(options.form_timeout_ms);
  result.timeout = std::chrono::milliseconds(options.timeout_ms);
  result.window = options.window;
  result.message_bytes = options.message_bytes;
  result.path_mtu = options.path_mtu;
  result.epoch = options.epoch;
  result.fallback = kind_of<host::Fallback>(options.fallback, "fallback",
                                            "WEIR_FALLBACK_NONE, WEIR_FALLBACK_RING");
  result.ack_timeout = std::chrono::milliseconds(options.ack_timeout_ms);
  result.retry_count = options.retry_count;
  result.lateness = std::chrono::milliseconds(options.lateness_ms);
  result.job = text_of(options.job);
  result.secret = secret_of(options);
  result.all_gather = all_gather_of(options);
  result.keep_alive = std::chrono::milliseconds(options.keep_alive_ms);
  return result;
}

/// Numbers that are no type or operation stay so when they are cut to a byte.
template <typename Enum>
Enum from_number(unsigned number) {
  return static_cast<Enum>(std::min(number, 255U));
}

host::Call call_of(host::CallKind kind, std::size_t count, weir_data_type type,
                   weir_operation operation = WEIR_SUM, std::uint16_t root = 0) {
  const bool is_average = operation == WEIR_AVERAGE;
  return {.kind = kind,
          .count = count,
          .type = from_number<DataType>(type),
          .operation = from_number<Operation>(is_average ? WEIR_SUM : operation),
          .finish = is_average ? host::Finish::average : host::Finish::none,
          .root = root};
}

/// Hands out what `start_it` returns.
template <typename Start>
weir_status started(weir_request** request, Start start_it) {
  return guarded([&] {
    object_at(request, "request") = nullptr;
    *request = new weir_request{start_it()};
    return WEIR_OK;
  });
}

weir_status start(weir_group* group, const void* in, void* out, const host::Call& call,
                  weir_request** request) {
  return started(request, [&] { return object_at(group, "group").group.start(in, out, call); });
}

/// A reduction, by an operation that may be the group's own.
weir_status start_reduction(weir_group* group, const void* in, void* out, host::Call call,
                            weir_operation operation, weir_request** request) {
  return started(request, [&] {
    const auto scaled = object_at(group, "group").scaled_sums.find(operation);
    if (!scaled) {
      return group->group.start(in, out, call);
    }
    if (scaled->type != call.type) {
      throw std::invalid_argument(fmt::format("operation: found a scaled sum of {}; allowed: of {}",
                                              name_of(scaled->type), name_of(call.type)));
    }
    call.operation = Operation::sum;
    return group->group.start_scaled(in, out, call, scaled->factor);
  });
}

/// Starts a call and waits for it.
template <typename... Parameters, typename... Arguments>
weir_status call(weir_status (*start_it)(Parameters...), Arguments... arguments) {
  weir_request* request = nullptr;
  const weir_status status = start_it(arguments..., &request);
  return status == WEIR_OK ? weir_wait(request) : status;
}

} // namespace

void weir_context_options_init_sized(weir_context_options* options, size_t size) {
  write_defaults(options, size, default_context_options());
}

void weir_group_options_init_sized(weir_group_options* options, size_t size) {
  write_defaults(options, size, default_group_options());
}

weir_status weir_context_open(const weir_context_options* options, weir_context** context) {
  return guarded([&] {
    object_at(context, "context") = nullptr;
    const host::GroupOptions device = translate(read_options(options, default_context_options()));
    if (const std::string defect = host::find_device_defect(device); !defect.empty()) {
      throw std::invalid_argument(defect);
    }
    *context = new weir_context{device};
    return WEIR_OK;
  });
}

void weir_context_close(weir_context* context) {
  delete context;
}

weir_status weir_group_form(weir_context* context, const weir_group_options* options,
                            weir_group** group) {
  return guarded([&] {
    object_at(group, "group") = nullptr;
    const weir_group_options read = read_options(options, default_group_options());
    *group = new weir_group(translate(read, object_at(context, "context").device));
    return WEIR_OK;
  });
}

weir_status weir_group_abort(weir_group* group) {
  return guarded([&] {
    object_at(group, "group").group.abort();
    return WEIR_OK;
  });
}

weir_status weir_group_read_statistics(weir_group* group, weir_group_statistics* statistics) {
  return guarded([&] {
    const std::size_t size = object_at(statistics, "statistics").size;
    if (size < sizeof(size)) {
      throw std::invalid_argument(
          fmt::format("statistics.size: found {}; allowed: sizeof(weir_group_statistics)", size));
    }
    const host::GroupStatistics counted = object_at(group, "group").group.statistics();
    const weir_group_statistics known{size,
                                      counted.messages_sent,
                                      counted.results_received,
                                      counted.retransmitted_packets.value_or(UINT64_MAX),
                                      counted.ack_timeouts.value_or(UINT64_MAX),
                                      counted.callers_turned_away};
    std::memcpy(statistics, &known, std::min(size, sizeof(known)));
    return WEIR_OK;
  });
}

void weir_group_close(weir_group* group) {
  delete group;
}

uint16_t weir_group_rank(const weir_group* group) {
  return group->group.rank();
}

uint16_t weir_group_world(const weir_group* group) {
  return group->group.world();
}

uint32_t weir_group_epoch(const weir_group* group) {
  return group->group.epoch();
}

const char* weir_group_algorithm(const weir_group* group) {
  return host::name_of(group->group.algorithm()).data();
}

const char* weir_group_fallback_reason(const weir_group* group) {
  return group->fallback_reason.c_str();
}

const char* weir_ring_schedule(weir_data_type type) {
  return host::name_of(host::ring_schedule(from_number<DataType>(type))).data();
}

int weir_is_reducible(weir_data_type type, weir_operation operation) {
  const host::Call call = call_of(host::CallKind::all_reduce, 0, type, operation);
  return is_reducible(call.type, call.operation) ? 1 : 0;
}

weir_status weir_make_scaled_sum(weir_group* group, weir_data_type type, const void* factor,
                                 weir_operation* operation) {
  return guarded([&] {
    object_at(operation, "operation");
    host::ScaledSums::ScaledSum sum{.type = from_number<DataType>(type)};
    const std::size_t bytes = element_size(sum.type);
    if (bytes == 0) {
      throw std::invalid_argument(fmt::format("type: found {}; allowed: 0 .. {}",
                                              static_cast<unsigned>(type), kDataTypes - 1));
    }
    std::memcpy(sum.factor.data(), &object_at(static_cast<const char*>(factor), "factor"), bytes);
    *operation = static_cast<weir_operation>(object_at(group, "group").scaled_sums.add(sum));
    return WEIR_OK;
  });
}

weir_status weir_drop_operation(weir_group* group, weir_operation operation) {
  return guarded([&] {
    object_at(group, "group").scaled_sums.remove(operation);
    return WEIR_OK;
  });
}

weir_status weir_start_all_reduce(weir_group* group, const void* in, void* out, size_t count,
                                  weir_data_type type, weir_operation operation,
                                  weir_request** request) {
  const host::Call call = call_of(host::CallKind::all_reduce, count, type, operation);
  return start_reduction(group, in, out, call, operation, request);
}

weir_status weir_start_all_reduce_coalesced(weir_group* group, const weir_tensor* tensors,
                                            size_t tensor_count, weir_data_type type,
                                            weir_operation operation, weir_request** request) {
  return started(request, [&] {
    std::vector<host::Group::Part> parts;
    if (tensor_count != 0) {
      object_at(tensors, "tensors");
    }
    for (const weir_tensor& tensor : std::span(tensors, tensor_count)) {
      parts.push_back({tensor.in, tensor.out, tensor.count});
    }
    const host::Call call = call_of(host::CallKind::all_reduce, 0, type, operation);
    return object_at(group, "group").group.start_all_reduce(parts, call);
  });
}

weir_status weir_start_reduce(weir_group* group, const void* in, void* out, size_t count,
                              weir_data_type type, weir_operation operation, uint16_t root,
                              weir_request** request) {
  const host::Call call = call_of(host::CallKind::reduce, count, type, operation, root);
  return start_reduction(group, in, out, call, operation, request);
}

weir_status weir_start_broadcast(weir_group* group, void* data, size_t count, weir_data_type type,
                                 uint16_t root, weir_request** request) {
  return start(group, data, data, call_of(host::CallKind::broadcast, count, type, WEIR_SUM, root),
               request);
}

weir_status weir_start_all_gather(weir_group* group, const void* in, void* out, size_t count,
                                  weir_data_type type, weir_request** request) {
  return start(group, in, out, call_of(host::CallKind::all_gather, count, type), request);
}

weir_status weir_start_reduce_scatter(weir_group* group, const void* in, void* out, size_t count,
                                      weir_data_type type, weir_operation operation,
                                      weir_request** request) {
  const host::Call call = call_of(host::CallKind::reduce_scatter, count, type, operation);
  return start_reduction(group, in, out, call, operation, request);
}

weir_status weir_start_barrier(weir_group* group, weir_request** request) {
  return start(group, nullptr, nullptr, call_of(host::CallKind::barrier, 0, WEIR_F32), request);
}

weir_status weir_all_reduce(weir_group* group, const void* in, void* out, size_t count,
                            weir_data_type type, weir_operation operation) {
  return call(weir_start_all_reduce, group, in, out, count, type, operation);
}

weir_status weir_all_reduce_coalesced(weir_group* group, const weir_tensor* tensors,
                                      size_t tensor_count, weir_data_type type,
                                      weir_operation operation) {
  return call(weir_start_all_reduce_coalesced, group, tensors, tensor_count, type, operation);
}

weir_status weir_reduce(weir_group* group, const void* in, void* out, size_t count,
                        weir_data_type type, weir_operation operation, uint16_t root) {
  return call(weir_start_reduce, group, in, out, count, type, operation, root);
}

weir_status weir_broadcast(weir_group* group, void* data, size_t count, weir_data_type type,
                           uint16_t root) {
  return call(weir_start_broadcast, group, data, count, type, root);
}

weir_status weir_all_gather(weir_group* group, const void* in, void* out, size_t count,
                            weir_data_type type) {
  return call(weir_start_all_gather, group, in, out, count, type);
}

weir_status weir_reduce_scatter(weir_group* group, const void* in, void* out, size_t count,
                                weir_data_type type, weir_operation operation) {
  return call(weir_start_reduce_scatter, group, in, out, count, type, operation);
}

weir_status weir_barrier(weir_group* group) {
  return call(weir_start_barrier, group);
}

weir_status weir_test(weir_request* request) {
  return guarded(
      [&] { return object_at(request, "request").pending.test() ? WEIR_OK : still_pending({}); });
}

weir_status weir_wait_for(weir_request* request, uint32_t timeout_ms) {
  return guarded([&] {
    const std::chrono::milliseconds timeout(timeout_ms);
    host::Pending& pending = object_at(request, "request").pending;
    return pending.wait_for(timeout) ? WEIR_OK : still_pending(pending.waits_for());
  });
}

int weir_group_descriptor(weir_group* group) {
  int descriptor = -1;
  guarded([&] {
    descriptor = object_at(group, "group").group.descriptor();
    return WEIR_OK;
  });
  return descriptor;
}

weir_status weir_wait(weir_request* request) {
  const weir_status status = guarded([&] {
    object_at(request, "request").pending.wait();
    return WEIR_OK;
  });
  delete request;
  return status;
}

void weir_release(weir_request* request) {
  if (request != nullptr) {
    weir_wait(request);
  }
}

const char* weir_last_error(void) {
  return last_error.text.c_str();
}

int weir_last_error_rank(void) {
  return last_error.rank;
}

const char* weir_status_name(weir_status status) {
  switch (status) {
  case WEIR_OK:
    return "ok";
  case WEIR_INVALID_ARGUMENT:
    return "invalid_argument";
  case WEIR_PENDING:
    return "pending";
  case WEIR_INTERNAL_ERROR:
    return "internal_error";
  case WEIR_ABORTED:
    return "aborted";
  case WEIR_RENDEZVOUS_TIMEOUT:
  case WEIR_PEER_DIED:
  case WEIR_RETRY_EXCEEDED:
  case WEIR_NOT_AGGREGATED:
  case WEIR_MISMATCH:
  case WEIR_TIMEOUT:
  case WEIR_TRANSPORT_FAILURE:
    return host::name_of(static_cast<host::ErrorCode>(status - WEIR_RENDEZVOUS_TIMEOUT)).data();
  }
  return "unknown";
}

const char* weir_version(void) {
  return WEIR_VERSION;
}
