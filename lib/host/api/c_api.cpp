// SPDX-License-Identifier: BSD-3-Clause
#include "weir/communicator.hpp"
#include "weir/weir.h"

#include <exception>
#include <string>
#include <utility>

struct weir_communicator {
  explicit weir_communicator(const weir::CommunicatorOptions& options)
      : communicator(options), fallback_reason(communicator.fallback_reason()) {}

  weir::Communicator communicator;
  std::string fallback_reason;
};

struct weir_pending {
  weir::Pending pending;
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

weir_status status_of(weir::ErrorCode code) {
  switch (code) {
  case weir::ErrorCode::rendezvous_timeout:
    return WEIR_RENDEZVOUS_TIMEOUT;
  case weir::ErrorCode::peer_died:
    return WEIR_PEER_DIED;
  case weir::ErrorCode::retry_exceeded:
    return WEIR_RETRY_EXCEEDED;
  case weir::ErrorCode::not_aggregated:
    return WEIR_NOT_AGGREGATED;
  case weir::ErrorCode::mismatch:
    return WEIR_MISMATCH;
  case weir::ErrorCode::timeout:
    return WEIR_TIMEOUT;
  case weir::ErrorCode::transport_failure:
    return WEIR_TRANSPORT_FAILURE;
  }
  return WEIR_INTERNAL_ERROR;
}

/// Turns exceptions into error codes: none may pass into C.
template <typename Body>
weir_status guarded(Body body) {
  try {
    return body();
  } catch (const weir::Error& error) {
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

weir::CommunicatorOptions translate(const weir_options& options) {
  weir::CommunicatorOptions result;
  if (options.rings != nullptr) {
    result.rings.assign(options.rings, options.rings + options.ring_count);
  }
  result.rank = options.rank;
  result.world = options.world;
  result.rendezvous = text_of(options.rendezvous);
  result.timeout = std::chrono::milliseconds(options.timeout_ms);
  result.window = options.window;
  result.message_bytes = options.message_bytes;
  result.path_mtu = options.path_mtu;
  result.epoch = options.epoch;
  result.fallback =
      options.fallback == WEIR_FALLBACK_RING ? weir::Fallback::ring : weir::Fallback::none;
  result.transport =
      options.transport == WEIR_VERBS ? weir::TransportKind::verbs : weir::TransportKind::software;
  result.device = text_of(options.device);
  result.ip = text_of(options.ip);
  result.mac = text_of(options.mac);
  result.gid_index = options.gid_index;
  result.ack_timeout = std::chrono::milliseconds(options.ack_timeout_ms);
  result.retry_count = options.retry_count;
  return result;
}

} // namespace

void weir_options_init(weir_options* options) {
  const weir::CommunicatorOptions defaults;
  *options = {};
  options->world = defaults.world;
  options->timeout_ms = static_cast<std::uint32_t>(defaults.timeout.count());
  options->window = defaults.window;
  options->message_bytes = defaults.message_bytes;
  options->path_mtu = defaults.path_mtu;
  options->gid_index = defaults.gid_index;
  options->retry_count = defaults.retry_count;
  options->ack_timeout_ms = static_cast<std::uint32_t>(defaults.ack_timeout.count());
}

weir_status weir_open(const weir_options* options, weir_communicator** communicator) {
  *communicator = nullptr;
  return guarded([&] {
    *communicator = new weir_communicator(translate(*options));
    return WEIR_OK;
  });
}

void weir_close(weir_communicator* communicator) {
  delete communicator;
}

weir_status weir_all_reduce(weir_communicator* communicator, const void* in, void* out,
                            size_t count, weir_data_type type, weir_operation operation) {
  return guarded([&] {
    communicator->communicator.all_reduce(in, out, count, static_cast<weir::DataType>(type),
                                          static_cast<weir::Operation>(operation));
    return WEIR_OK;
  });
}

weir_status weir_start_all_reduce(weir_communicator* communicator, const void* in, void* out,
                                  size_t count, weir_data_type type, weir_operation operation,
                                  weir_pending** pending) {
  *pending = nullptr;
  return guarded([&] {
    *pending = new weir_pending{communicator->communicator.start_all_reduce(
        in, out, count, static_cast<weir::DataType>(type),
        static_cast<weir::Operation>(operation))};
    return WEIR_OK;
  });
}

weir_status weir_test(weir_pending* pending) {
  return guarded([&] { return pending->pending.test() ? WEIR_OK : WEIR_PENDING; });
}

weir_status weir_wait(weir_pending* pending) {
  const weir_status status = guarded([&] {
    pending->pending.wait();
    return WEIR_OK;
  });
  delete pending;
  return status;
}

void weir_release(weir_pending* pending) {
  if (pending != nullptr) {
    weir_wait(pending);
  }
}

const char* weir_algorithm(const weir_communicator* communicator) {
  return weir::name_of(communicator->communicator.algorithm()).data();
}

const char* weir_fallback_reason(const weir_communicator* communicator) {
  return communicator->fallback_reason.c_str();
}

const char* weir_ring_schedule(weir_data_type type) {
  return weir::name_of(weir::ring_schedule(static_cast<weir::DataType>(type))).data();
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
  default:
    return weir::name_of(static_cast<weir::ErrorCode>(status - WEIR_RENDEZVOUS_TIMEOUT)).data();
  }
}
