// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/c_errors.hpp"
#include "host/api/c_objects.hpp"
#include "host/api/c_options.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

/// Groups that are formed while their caller does other things.

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

} // namespace

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
