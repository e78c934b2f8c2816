// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/device.hpp"
#include "host/api/group.hpp"
#include "host/api/scaled_sums.hpp"
#include "host/collective/ring_blocks.hpp"
#include "host/collective/sparse_input.hpp"
#include "host/collective/sparse_outcome.hpp"
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

struct weir_context {
  std::shared_ptr<host::Device> device;
};

struct weir_memory {
  std::unique_ptr<host::UserMemory> registered;
};

struct weir_group {
  weir_group(std::shared_ptr<host::Device> its_device, host::Group formed)
      : device(std::move(its_device)), group(std::move(formed)),
        fallback_reason(group.fallback_reason()) {}

  std::shared_ptr<host::Device> device; // for a group that is shrunk to
  host::Group group;
  std::string fallback_reason;
  host::ScaledSums scaled_sums;
};

struct weir_request {
  host::Pending pending;
};

struct weir_sparse_result {
  std::shared_ptr<const host::SparseOutcome> outcome;
};

namespace {

struct LastError {
  std::string text;
  int rank = -1;
};

thread_local LastError last_error;

weir_status remember(weir_status status, const std::exception& error, int rank) {
  last_error = {host::text_of(error), rank};
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

/// The size that a caller has set in its struct.
template <typename Struct>
std::size_t size_of(std::string_view what, const Struct* given) {
  constexpr std::size_t kLongest = 4096; // a size that was forgotten may be any number
  const std::size_t size = object_at(given, what).size;
  if (size < sizeof(size) || size > kLongest) {
    throw std::invalid_argument(fmt::format(
        "{}.size: found {}; allowed: the struct's sizeof, here {}", what, size, sizeof(Struct)));
  }
  return size;
}

/// Writes as much as the caller's struct holds. A longer one comes from a newer header; what this
/// library does not know becomes 0 there.
template <typename Struct>
void write_struct(Struct* to, std::size_t size, Struct values) {
  values.size = size;
  std::memcpy(to, &values, std::min(size, sizeof(Struct)));
  if (size > sizeof(Struct)) {
    std::memset(reinterpret_cast<std::uint8_t*>(to) + sizeof(Struct), 0, size - sizeof(Struct));
  }
}

/// The caller's options, with the defaults where its struct is shorter. A longer struct comes from
/// a newer header; what this library does not know must be 0 there.
template <typename Options>
Options read_struct(std::string_view what, const Options* given, Options defaults) {
  const std::size_t size = size_of(what, given);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(given);
  const auto is_zero = [](std::uint8_t byte) { return byte == 0; };
  if (size > sizeof(Options) && !std::all_of(bytes + sizeof(Options), bytes + size, is_zero)) {
    throw std::invalid_argument(
        fmt::format("{}: found a field behind byte {}, which version {} of the library does not "
                    "know; allowed: 0 there",
                    what, sizeof(Options), weir_version()));
  }
  std::memcpy(&defaults, given, std::min(size, sizeof(Options)));
  return defaults;
}

/// A C program may have stored any number, which C++ may not load as the enumeration.
template <typename Option>
unsigned number_of(const Option& option) {
  unsigned number = 0;
  static_assert(sizeof(number) == sizeof(option));
  std::memcpy(&number, &option, sizeof(number));
  return number;
}

/// The memory that a caller wants to register.
std::span<std::uint8_t> memory_at(void* address, std::size_t bytes) {
  const std::size_t most = UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(address);
  if (bytes == 0 || bytes > most) {
    throw std::invalid_argument(fmt::format("bytes: found {}; allowed: 1 .. {}", bytes, most));
  }
  return {&object_at(static_cast<std::uint8_t*>(address), "address"), bytes};
}

/// For an option whose values are 0 and 1.
template <typename Kind, typename Option>
Kind kind_of(const Option& option, std::string_view name, std::string_view allowed) {
  const unsigned number = number_of(option);
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

void set_rings(const weir_group_options& options, host::GroupOptions& result) {
  if (options.rings != nullptr) {
    result.rings.assign(options.rings, options.rings + options.ring_count);
    result.ring_ids = host::RingIds::given;
    return;
  }
  // One too many are refused by their number later.
  const std::size_t count = std::min(options.ring_count, host::kMostOpenRings + 1);
  result.rings = host::open_rings(std::max<std::size_t>(count, 1));
  result.ring_ids = host::RingIds::open;
}

host::SwitchAccess switch_access_of(const weir_group_options& options) {
  host::SwitchAccess access{.certificate = text_of(options.switch_certificate),
                            .key = text_of(options.switch_key),
                            .authority = text_of(options.switch_authority),
                            .name = text_of(options.switch_name)};
  if (options.switch_address != nullptr) {
    access.address = options.switch_address;
  }
  return access;
}

host::GroupOptions translate(const weir_group_options& options, host::GroupOptions result) {
  set_rings(options, result);
  result.switch_access = switch_access_of(options);
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
  result.farewell = std::chrono::milliseconds(options.farewell_ms);
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

/// If the operation is the group's own, makes the call a sum and says with which factor.
std::optional<host::Factor> take_factor(weir_group* group, host::Call& call,
                                        weir_operation operation) {
  const auto scaled = object_at(group, "group").scaled_sums.find(operation);
  if (!scaled) {
    return std::nullopt;
  }
  if (scaled->type != call.type) {
    throw std::invalid_argument(fmt::format("operation: found a scaled sum of {}; allowed: of {}",
                                            name_of(scaled->type), name_of(call.type)));
  }
  call.operation = Operation::sum;
  return scaled->factor;
}

/// A reduction, by an operation that may be the group's own.
weir_status start_reduction(weir_group* group, const void* in, void* out, host::Call call,
                            weir_operation operation, weir_request** request) {
  return started(request, [&] {
    const auto factor = take_factor(group, call, operation);
    return factor ? group->group.start_scaled(in, out, call, *factor)
                  : group->group.start(in, out, call);
  });
}

/// Defaults of fields that a caller's shorter struct lacks.
weir_sparse_tensor default_sparse_tensor() {
  return {.size = sizeof(weir_sparse_tensor),
          .count = 0,
          .indices = nullptr,
          .values = nullptr,
          .index_count = 0,
          .block_elements = 1};
}

host::SparseTensor translate(const weir_sparse_tensor& tensor) {
  return {.count = tensor.count,
          .block = tensor.block_elements,
          .indices = {tensor.indices, tensor.index_count},
          .values = static_cast<const std::uint8_t*>(tensor.values)};
}

/// Null while the call is under way. Throws the error that ended it.
const host::SparseResult* find_result(const weir_sparse_result* result) {
  return object_at(result, "result").outcome->find();
}

weir_sparse_view view_of(const host::SparseResult& result) {
  return {.size = sizeof(weir_sparse_view),
          .indices = result.indices.data(),
          .values = result.values.data(),
          .index_count = result.indices.size(),
          .block_elements = result.block,
          .is_dense = result.form == host::SparseForm::dense ? 1U : 0U,
          .reserved = 0,
          .exchanged_bytes = result.exchanged_bytes};
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
  write_struct(options, size, default_context_options());
}

void weir_group_options_init_sized(weir_group_options* options, size_t size) {
  write_struct(options, size, default_group_options());
}

weir_status weir_context_open(const weir_context_options* options, weir_context** context) {
  return guarded([&] {
    object_at(context, "context") = nullptr;
    const host::GroupOptions device =
        translate(read_struct("options", options, default_context_options()));
    if (const std::string defect = host::find_device_defect(device); !defect.empty()) {
      throw std::invalid_argument(defect);
    }
    *context = new weir_context{std::make_shared<host::Device>(device)};
    return WEIR_OK;
  });
}

void weir_context_close(weir_context* context) {
  delete context;
}

weir_status weir_memory_register(weir_context* context, weir_memory_kind kind, void* address,
                                 size_t bytes, weir_memory** memory) {
  return guarded([&] {
    object_at(memory, "memory") = nullptr;
    host::Device& device = *object_at(context, "context").device;
    if (const unsigned number = number_of(kind); number != WEIR_MEMORY_HOST) {
      throw std::invalid_argument(fmt::format("kind: found {}; allowed: WEIR_MEMORY_HOST", number));
    }
    *memory = new weir_memory{device.register_memory(memory_at(address, bytes))};
    return WEIR_OK;
  });
}

void weir_memory_release(weir_memory* memory) {
  delete memory;
}

weir_status weir_group_form(weir_context* context, const weir_group_options* options,
                            weir_group** group) {
  return guarded([&] {
    object_at(group, "group") = nullptr;
    const weir_group_options read = read_struct("options", options, default_group_options());
    const std::shared_ptr<host::Device>& device = object_at(context, "context").device;
    *group = new weir_group(device, host::Group(translate(read, device->options()), *device));
    return WEIR_OK;
  });
}

weir_status weir_group_shrink(weir_group* group, const weir_group_options* options,
                              weir_group** shrunk) {
  return guarded([&] {
    object_at(shrunk, "shrunk") = nullptr;
    host::Group& over = object_at(group, "group").group;
    host::GroupOptions next = over.options();
    next.epoch = 0;
    if (options != nullptr) {
      next = translate(read_struct("options", options, default_group_options()), next);
    }
    *shrunk = new weir_group(group->device, over.shrink(next, *group->device));
    return WEIR_OK;
  });
}

int weir_group_parent_rank(const weir_group* group, uint16_t rank) {
  const bool is_known = group != nullptr && rank < group->group.world();
  return is_known ? group->group.parent_rank(rank) : -1;
}

weir_status weir_group_abort(weir_group* group) {
  return guarded([&] {
    object_at(group, "group").group.abort();
    return WEIR_OK;
  });
}

weir_status weir_group_abort_because(weir_group* group, const char* why) {
  constexpr std::size_t kMostBytes = 1000;
  return guarded([&] {
    object_at(group, "group").group.abort({why, strnlen(&object_at(why, "why"), kMostBytes)});
    return WEIR_OK;
  });
}

weir_status weir_group_read_statistics(weir_group* group, weir_group_statistics* statistics) {
  return guarded([&] {
    const std::size_t size = size_of("statistics", statistics);
    const host::GroupStatistics counted = object_at(group, "group").group.statistics();
    const weir_group_statistics known{sizeof(weir_group_statistics),
                                      counted.messages_sent,
                                      counted.results_received,
                                      counted.retransmitted_packets.value_or(UINT64_MAX),
                                      counted.ack_timeouts.value_or(UINT64_MAX),
                                      counted.callers_turned_away};
    write_struct(statistics, size, known);
    return WEIR_OK;
  });
}

void weir_group_close(weir_group* group) {
  delete group;
}

uint16_t weir_group_rank(const weir_group* group) {
  return group != nullptr ? group->group.rank() : 0;
}

uint16_t weir_group_world(const weir_group* group) {
  return group != nullptr ? group->group.world() : 0;
}

uint32_t weir_group_epoch(const weir_group* group) {
  return group != nullptr ? group->group.epoch() : 0;
}

const char* weir_group_algorithm(const weir_group* group) {
  return group != nullptr ? host::name_of(group->group.algorithm()).data() : "";
}

const char* weir_group_fallback_reason(const weir_group* group) {
  return group != nullptr ? group->fallback_reason.c_str() : "";
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

weir_status weir_start_sparse_all_reduce(weir_group* group, const weir_sparse_tensor* tensor,
                                         weir_data_type type, weir_operation operation,
                                         weir_sparse_result** result, weir_request** request) {
  if (result != nullptr) { // also if it is `request` that is NULL
    *result = nullptr;
  }
  return started(request, [&] {
    object_at(result, "result");
    const weir_sparse_tensor read = read_struct("tensor", tensor, default_sparse_tensor());
    host::Call call = call_of(host::CallKind::sparse_all_reduce, read.count, type, operation);
    const auto factor = take_factor(group, call, operation);
    const host::Group::SparseCall started =
        group->group.start_sparse(translate(read), call, factor);
    *result = new weir_sparse_result{started.result};
    return started.pending;
  });
}

weir_status weir_sparse_all_reduce(weir_group* group, const weir_sparse_tensor* tensor,
                                   weir_data_type type, weir_operation operation,
                                   weir_sparse_result** result) {
  const weir_status status =
      call(weir_start_sparse_all_reduce, group, tensor, type, operation, result);
  if (status != WEIR_OK && result != nullptr) {
    weir_sparse_result_free(*result);
    *result = nullptr;
  }
  return status;
}

weir_status weir_sparse_result_read(const weir_sparse_result* result, weir_sparse_view* view) {
  return guarded([&] {
    const std::size_t size = size_of("view", view);
    const host::SparseResult* const found = find_result(result);
    if (found == nullptr) {
      return still_pending({});
    }
    write_struct(view, size, view_of(*found));
    return WEIR_OK;
  });
}

weir_status weir_sparse_result_copy(const weir_sparse_result* result, int64_t* indices,
                                    void* values, size_t capacity) {
  return guarded([&] {
    const host::SparseResult* const found = find_result(result);
    if (found == nullptr) {
      return still_pending({});
    }
    if (capacity < found->indices.size()) {
      throw std::invalid_argument(fmt::format("capacity: found {}; allowed: {} or more, the "
                                              "result's indices",
                                              capacity, found->indices.size()));
    }
    if (!found->indices.empty()) {
      std::ranges::copy(found->indices, &object_at(indices, "indices"));
      std::ranges::copy(found->values, &object_at(static_cast<std::uint8_t*>(values), "values"));
    }
    return WEIR_OK;
  });
}

void weir_sparse_result_free(weir_sparse_result* result) {
  delete result;
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
