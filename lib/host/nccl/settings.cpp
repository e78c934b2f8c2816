// SPDX-License-Identifier: BSD-3-Clause
#include "host/nccl/settings.hpp"

#include "host/nccl/call.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>

namespace weir::nccl {
namespace {

constexpr std::uint32_t kFarewellMs = 2000; // a thread of NCCL's waits for a close

/// Leaves `value` as it is if the variable is not set.
template <typename Number>
void read_number(const variables::Variable& named, Number& value) {
  const std::string given = value_of(named);
  if (given.empty()) {
    return;
  }
  try {
    value = variables::number_in<Number>(named, given);
  } catch (const std::invalid_argument& error) {
    throw Failure(Result::invalid_usage, error.what());
  }
}

struct ContextCloser {
  void operator()(weir_context* context) const { weir_context_close(context); }
};

using Context = std::unique_ptr<weir_context, ContextCloser>;

Context open_context(const weir_device& device) {
  const std::string ip = value_of(variable("WEIR_IP"));
  const std::string mac = value_of(variable("WEIR_MAC"));
  weir_context_options options;
  weir_context_options_init(&options);
  options.transport = device.transport;
  options.device = device.name;
  options.ip = ip.empty() ? nullptr : ip.c_str();
  options.mac = mac.empty() ? nullptr : mac.c_str();
  if (device.gid_index >= 0) {
    options.gid_index = static_cast<std::uint8_t>(device.gid_index);
  }
  read_number(variable("WEIR_GID_INDEX"), options.gid_index);
  weir_context* context = nullptr;
  if (weir_context_open(&options, &context) != WEIR_OK) {
    throw Failure(Result::invalid_usage,
                  fmt::format("device {}: {}", device.name, weir_last_error()));
  }
  return Context(context);
}

} // namespace

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string value_of(const variables::Variable& variable) {
  return environment(variable.name.data());
}

weir_context* context_of(const weir_device& device) {
  static std::mutex mutex;
  static std::map<std::string, Context> contexts;
  const std::lock_guard lock(mutex);
  Context& context = contexts[device.name];
  if (!context) {
    context = open_context(device);
  }
  return context.get();
}

weir_group_options group_settings() {
  weir_group_options options;
  weir_group_options_init(&options);
  options.farewell_ms = kFarewellMs;
  read_number(variable("WEIR_WINDOW"), options.window);
  read_number(variable("WEIR_MESSAGE_BYTES"), options.message_bytes);
  read_number(variable("WEIR_PATH_MTU"), options.path_mtu);
  read_number(variable("WEIR_ACK_TIMEOUT_MS"), options.ack_timeout_ms);
  read_number(variable("WEIR_TIMEOUT_MS"), options.timeout_ms);
  read_number(variable("WEIR_FORM_TIMEOUT_MS"), options.form_timeout_ms);
  return options;
}

} // namespace weir::nccl
