// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/c_options.hpp"

#include "host/api/c_objects.hpp"
#include "host/api/c_structs.hpp"

#include <chrono>
#include <string>
#include <utility>

namespace weir::host::c {
namespace {

std::string text_of(const char* text) {
  return text != nullptr ? text : "";
}

weir_context_options default_context_options() {
  const GroupOptions defaults;
  weir_context_options options{};
  options.size = sizeof(options);
  options.gid_index = defaults.gid_index;
  return options;
}

weir_group_options default_group_options() {
  const GroupOptions defaults;
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

/// For an option whose values are 0 and 1.
template <typename Kind, typename Option>
Kind kind_of(const Option& option, std::string_view name, std::string_view allowed) {
  const unsigned number = number_of(option);
  if (number > 1) {
    throw std::invalid_argument(fmt::format("{}: found {}; allowed: {}", name, number, allowed));
  }
  return static_cast<Kind>(number);
}

GroupOptions translate(const weir_context_options& options) {
  GroupOptions result;
  result.transport =
      kind_of<TransportKind>(options.transport, "transport", "WEIR_SOFTWARE, WEIR_VERBS");
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

std::string handle_of(const weir_group_options& options) {
  const bool has_bytes = options.handle_bytes == kHandleBytes;
  if (options.handle != nullptr ? !has_bytes : options.handle_bytes != 0) {
    throw std::invalid_argument(
        fmt::format("handle_bytes: found {}; allowed: {} with a handle, else 0",
                    options.handle_bytes, kHandleBytes));
  }
  const auto* const bytes = static_cast<const char*>(options.handle);
  return bytes != nullptr ? std::string(bytes, kHandleBytes) : std::string();
}

AllGather all_gather_of(const weir_group_options& options) {
  if (options.all_gather == nullptr) {
    return {};
  }
  return [function = options.all_gather,
          user = options.all_gather_user](const void* in, std::size_t bytes, void* out) {
    return function(user, in, bytes, out);
  };
}

void set_rings(const weir_group_options& options, GroupOptions& result) {
  if (options.rings != nullptr) {
    result.rings.assign(options.rings, options.rings + options.ring_count);
    result.ring_ids = RingIds::given;
    return;
  }
  if (options.ring_count == WEIR_RINGS_OFFERED) {
    result.rings = open_rings(kMostOfferedRings);
    result.ring_ids = RingIds::offered;
    return;
  }
  // One too many are refused by their number later.
  const std::size_t count = std::min(options.ring_count, kMostOpenRings + 1);
  result.rings = open_rings(std::max<std::size_t>(count, 1));
  result.ring_ids = RingIds::open;
}

void set_operators(const weir_group_options& options, GroupOptions& result) {
  constexpr std::size_t most = 4;
  if (options.operator_count > most) {
    throw std::invalid_argument(
        fmt::format("operator_count: found {}; allowed: 0 .. {}", options.operator_count, most));
  }
  result.operators.clear();
  for (std::size_t i = 0; i < options.operator_count; ++i) {
    const weir_operator* const* const given = &object_at(options.operators, "operators");
    result.operators.push_back(object_at(given[i], "operators").loaded);
  }
}

SwitchAccess switch_access_of(const weir_group_options& options) {
  SwitchAccess access{.certificate = text_of(options.switch_certificate),
                      .key = text_of(options.switch_key),
                      .authority = text_of(options.switch_authority),
                      .name = text_of(options.switch_name)};
  if (options.switch_address != nullptr) {
    access.address = options.switch_address;
  }
  return access;
}

GroupOptions translate(const weir_group_options& options, GroupOptions result) {
  set_rings(options, result);
  set_operators(options, result);
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
  result.fallback =
      kind_of<Fallback>(options.fallback, "fallback", "WEIR_FALLBACK_NONE, WEIR_FALLBACK_RING");
  result.missing_rings =
      kind_of<MissingRings>(options.missing_rings, "missing_rings",
                            "WEIR_MISSING_RINGS_LEAVE_OUT, WEIR_MISSING_RINGS_REFUSE");
  result.progress = kind_of<ProgressBy>(options.progress, "progress",
                                        "WEIR_PROGRESS_THREAD, WEIR_PROGRESS_CALLER");
  result.ack_timeout = std::chrono::milliseconds(options.ack_timeout_ms);
  result.retry_count = options.retry_count;
  result.farewell = std::chrono::milliseconds(options.farewell_ms);
  result.lateness = std::chrono::milliseconds(options.lateness_ms);
  result.job = text_of(options.job);
  result.secret = secret_of(options);
  result.all_gather = all_gather_of(options);
  result.listener = options.listener != nullptr ? options.listener->listener : nullptr;
  result.handle = handle_of(options);
  result.keep_alive = std::chrono::milliseconds(options.keep_alive_ms);
  return result;
}

} // namespace

GroupOptions read_options(const weir_context_options* options) {
  return translate(read_struct("options", options, default_context_options()));
}

GroupOptions read_options(const weir_group_options* options, GroupOptions device) {
  return translate(read_struct("options", options, default_group_options()), std::move(device));
}

} // namespace weir::host::c

using namespace weir;

void weir_context_options_init_sized(weir_context_options* options, size_t size) {
  host::c::write_struct(options, size, host::c::default_context_options());
}

void weir_group_options_init_sized(weir_group_options* options, size_t size) {
  host::c::write_struct(options, size, host::c::default_group_options());
}

const char* weir_version(void) {
  return WEIR_VERSION;
}
