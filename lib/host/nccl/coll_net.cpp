// SPDX-License-Identifier: BSD-3-Clause
#include "host/nccl/coll_net.hpp"

#include "host/nccl/call.hpp"
#include "host/nccl/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace weir::nccl {
namespace {

constexpr int kMostRanks = 256;

Result result_of(weir_status status) {
  switch (status) {
  case WEIR_OK:
    return Result::success;
  case WEIR_INVALID_ARGUMENT:
    return Result::invalid_argument;
  case WEIR_PEER_DIED:
  case WEIR_ABORTED:
    return Result::remote_error;
  case WEIR_MISMATCH:
    return Result::invalid_usage;
  case WEIR_INTERNAL_ERROR:
    return Result::internal_error;
  default:
    return Result::system_error;
  }
}

void expect_ok(std::string_view what, weir_status status) {
  if (status != WEIR_OK) {
    throw Failure(result_of(status),
                  fmt::format("{}: {}: {}", what, weir_status_name(status), weir_last_error()));
  }
}

bool is_within(const CollMemory* memory, const void* data, std::size_t bytes) {
  const auto* const begin = static_cast<const std::byte*>(data);
  return memory != nullptr && begin >= memory->data &&
         begin + bytes <= memory->data + memory->bytes;
}

} // namespace

CollListener::CollListener(const weir_device& device, void* handle)
    : device_(device), context_(context_of(device)) {
  const std::string address = value_of(variable("WEIR_RENDEZVOUS"));
  weir_listener* listener = nullptr;
  expect_ok("listen",
            weir_listen(context_, address.empty() ? nullptr : address.c_str(), &listener, handle));
  listener_.reset(listener);
}

CollComm::CollComm(void* const* handles, int ranks, int rank, CollListener& listener)
    : context_(listener.context()) {
  if (ranks > kMostRanks) {
    throw Failure(
        Result::invalid_usage,
        fmt::format("a communicator of CollNet: found {} ranks; allowed: {}", ranks, kMostRanks));
  }
  weir_group_options options = group_settings();
  options.rank = static_cast<std::uint16_t>(rank);
  options.world = static_cast<std::uint16_t>(ranks);
  if (rank == 0) {
    options.listener = listener.get();
  } else {
    options.handle = handles[0];
    options.handle_bytes = WEIR_HANDLE_BYTES;
    listener.close();
  }
  const weir_status status = weir_group_form(context_, &options, &group_);
  const std::string error = status == WEIR_OK ? "" : weir_last_error();
  listener.close();
  if (status != WEIR_OK) {
    throw Failure(
        result_of(status),
        fmt::format("rank {} of {} does not reduce by the switch, and NCCL goes on without "
                    "CollNet: {}: {}",
                    rank, ranks, weir_status_name(status), error));
  }
  std::uint32_t ring = 0;
  const bool is_alone = weir_group_rings(group_, &ring, 1) == 0;
  log_line(LogLevel::info,
           is_alone ? "a communicator of one rank reduces by itself"
                    : fmt::format("rank {} of {} reduces by ring {} of the switch, device {}", rank,
                                  ranks, ring, listener.device().name));
}

CollComm::~CollComm() {
  const std::lock_guard lock(mutex_);
  if (std::ranges::any_of(requests_, [&](const CollRequest& each) { return is_under_way(each); })) {
    end_all("NCCL has closed the communicator during a call");
  }
  for (const CollRequest& request : requests_) {
    weir_release(request.call);
  }
  weir_group_close(group_);
  for (const CollMemory& memory : memory_) {
    weir_memory_release(memory.known);
  }
}

CollMemory* CollComm::know(void* data, std::size_t bytes) {
  weir_memory* known = nullptr;
  expect_ok("memory", weir_memory_register(context_, WEIR_MEMORY_HOST, data, bytes, &known));
  const std::lock_guard lock(mutex_);
  return &memory_.emplace_back(CollMemory{static_cast<const std::byte*>(data), bytes, known});
}

void CollComm::forget(CollMemory* memory) {
  const std::lock_guard lock(mutex_);
  const auto uses_it = [&](const CollRequest& request) {
    return (request.in == memory || request.out == memory) && is_under_way(request);
  };
  if (std::ranges::any_of(requests_, uses_it)) {
    end_all("NCCL takes memory back during a call that uses it");
  }
  weir_memory_release(memory->known);
  memory_.remove_if([&](const CollMemory& each) { return &each == memory; });
}

CollRequest* CollComm::start(const void* in, void* out, std::size_t count, weir_data_type type,
                             weir_operation operation, std::size_t bytes,
                             const CollMemory* in_memory, const CollMemory* out_memory) {
  if (!is_within(in_memory, in, bytes) || !is_within(out_memory, out, bytes)) {
    throw Failure(
        Result::invalid_argument,
        fmt::format("iallreduce of {} bytes: found a buffer outside of its memory", bytes));
  }
  const std::lock_guard lock(mutex_);
  weir_request* call = nullptr;
  expect_ok("iallreduce", weir_start_all_reduce(group_, in, out, count, type, operation, &call));
  return &requests_.emplace_back(CollRequest{this, call, in_memory, out_memory, bytes});
}

bool CollComm::test(CollRequest* request) {
  const std::lock_guard lock(mutex_);
  const weir_status status = weir_test(request->call);
  if (status == WEIR_PENDING) {
    return false;
  }
  expect_ok("all-reduce", status);
  weir_release(request->call);
  requests_.remove_if([&](const CollRequest& each) { return &each == request; });
  return true;
}

bool CollComm::is_under_way(const CollRequest& request) const {
  return weir_test(request.call) == WEIR_PENDING;
}

/// Returns when nothing is written to any buffer any more.
void CollComm::end_all(const std::string& why) {
  log_line(LogLevel::info, why);
  weir_group_abort_because(group_, why.c_str());
  constexpr std::uint32_t kStepMs = 100;
  for (const CollRequest& request : requests_) {
    while (weir_wait_for(request.call, kStepMs) == WEIR_PENDING) {
    }
  }
}

} // namespace weir::nccl
