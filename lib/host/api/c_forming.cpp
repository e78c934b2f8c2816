// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/c_errors.hpp"
#include "host/api/c_objects.hpp"
#include "host/api/c_options.hpp"
#include "host/api/within_callback.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

/// Listeners, and groups that are formed while their caller does other things.

using namespace weir;
using namespace weir::host::c;

namespace {

host::Forming& forming_at(weir_forming* forming) {
  return object_at(forming, "forming").forming;
}

weir_status abort_forming(weir_forming* forming, std::string_view why) {
  forming_at(forming).abort(why);
  return WEIR_OK;
}

/// NULL: none.
std::string checked_address(const char* address) {
  std::string text = address != nullptr ? address : "";
  if (address != nullptr && !host::Endpoint::parse(text)) {
    throw std::invalid_argument(
        fmt::format("address: found '{}'; allowed: NULL, or HOST:PORT", text));
  }
  return text;
}

} // namespace

weir_status weir_listen(weir_context* context, const char* address, weir_listener** listener,
                        void* handle) {
  static_assert(WEIR_HANDLE_BYTES == host::kHandleBytes);
  return guarded([&] {
    object_at(listener, "listener") = nullptr;
    auto* const bytes = &object_at(static_cast<std::uint8_t*>(handle), "handle");
    const std::string& ip = object_at(context, "context").device->options().ip;
    auto opened = std::make_shared<host::Listener>(checked_address(address), ip);
    std::ranges::copy(opened->handle(), bytes);
    *listener = new weir_listener{std::move(opened)};
    return WEIR_OK;
  });
}

void weir_listener_close(weir_listener* listener) {
  delete listener;
}

weir_status weir_start_group_form(weir_context* context, const weir_group_options* options,
                                  weir_forming** forming) {
  return guarded([&] {
    object_at(forming, "forming") = nullptr;
    const std::shared_ptr<host::Device>& device = object_at(context, "context").device;
    host::Forming started(read_options(options, device->options()), *device);
    *forming = new weir_forming{device, std::move(started)};
    return WEIR_OK;
  });
}

weir_status weir_forming_test(weir_forming* forming) {
  return guarded([&] { return forming_at(forming).test() ? WEIR_OK : still_pending({}); });
}

weir_status weir_forming_wait_for(weir_forming* forming, uint32_t timeout_ms) {
  return guarded([&] {
    host::refuse_within_callback("weir_forming_wait_for");
    const std::chrono::milliseconds timeout(timeout_ms);
    return forming_at(forming).wait_for(timeout) ? WEIR_OK : still_pending({});
  });
}

weir_status weir_forming_take(weir_forming* forming, weir_group** group) {
  return guarded([&] {
    object_at(group, "group") = nullptr;
    std::optional<host::Group> formed = forming_at(forming).take();
    if (!formed) {
      return still_pending({});
    }
    *group = new weir_group(forming->device, std::move(*formed));
    return WEIR_OK;
  });
}

weir_status weir_forming_abort(weir_forming* forming) {
  return guarded([&] { return abort_forming(forming, {}); });
}

weir_status weir_forming_abort_because(weir_forming* forming, const char* why) {
  return guarded([&] { return abort_forming(forming, reason_at(why)); });
}

int weir_forming_descriptor(weir_forming* forming) {
  int descriptor = -1;
  guarded([&] {
    descriptor = forming_at(forming).descriptor();
    return WEIR_OK;
  });
  return descriptor;
}

void weir_forming_release(weir_forming* forming) {
  delete forming;
}
