// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/service.hpp"

#include "capture/pcapng_file.hpp"
#include "command/commands.hpp"
#include "control/switch.hpp"
#include "report/answers.hpp"
#include "rpc/caller.hpp"
#include "rpc/messages.hpp"
#include "rpc/ring_messages.hpp"
#include "rpc/tenant_backend.hpp"
#include "rpc/too_many.hpp"
#include "rpc/watcher.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace weir::rpc {
namespace {

/// Does `work` with what the caller may do of all.
template <typename Work>
void as_caller(const grpc::CallbackServerContext& context, Backend& all, Work&& work) {
  const Caller caller = caller_of(peer_of(context), *all.config());
  if (caller.is_operator()) {
    work(all);
  } else {
    TenantBackend own(all, caller.tenant);
    work(own);
  }
}

/// The same, and ends the call with what it throws.
template <typename Work>
grpc::ServerUnaryReactor* answered(grpc::CallbackServerContext* context, Backend& all,
                                   Work&& work) {
  grpc::Status status;
  try {
    as_caller(*context, all, work);
  } catch (...) {
    status = status_of_exception();
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

/// Ends a call before its first answer.
template <typename Answer>
class Refused : public grpc::ServerWriteReactor<Answer> {
 public:
  explicit Refused(const grpc::Status& status) { this->Finish(status); }

  void OnDone() override { delete this; }
};

} // namespace

grpc::Status status_of_exception() {
  try {
    throw;
  } catch (const WrongMessage& error) {
    return {grpc::StatusCode::INVALID_ARGUMENT, error.what()};
  } catch (const command::WrongWords& error) {
    return {grpc::StatusCode::INVALID_ARGUMENT, error.what()};
  } catch (const config::ConfigError& error) {
    return {grpc::StatusCode::INVALID_ARGUMENT, error.what()};
  } catch (const RingExists& error) {
    return {grpc::StatusCode::ALREADY_EXISTS, error.what()};
  } catch (const control::NoRoomForRing& error) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, error.what()};
  } catch (const control::RingRefused& error) {
    return {grpc::StatusCode::FAILED_PRECONDITION, error.what()};
  } catch (const control::PortError& error) {
    return {grpc::StatusCode::FAILED_PRECONDITION, error.what()};
  } catch (const control::ReloadUnfinished& error) {
    return {grpc::StatusCode::ABORTED, error.what()};
  } catch (const control::JournalError& error) {
    return {grpc::StatusCode::FAILED_PRECONDITION, error.what()};
  } catch (const control::NoSuchRing& error) {
    return {grpc::StatusCode::NOT_FOUND, error.what()};
  } catch (const report::UnknownName& error) {
    return {grpc::StatusCode::NOT_FOUND, error.what()};
  } catch (const control::CaptureRuns& error) {
    return {grpc::StatusCode::FAILED_PRECONDITION, error.what()};
  } catch (const capture::FileError& error) {
    return {grpc::StatusCode::FAILED_PRECONDITION, error.what()};
  } catch (const NotAllowed& error) {
    return {grpc::StatusCode::PERMISSION_DENIED, error.what()};
  } catch (const TooMany& error) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, error.what()};
  } catch (const control::LcoreError& error) {
    return {grpc::StatusCode::UNAVAILABLE, error.what()};
  } catch (const std::exception& error) {
    return {grpc::StatusCode::INTERNAL, error.what()};
  }
}

void Service::count_request() {
  if (!rate_.lets_pass(RequestRate::Clock::now())) {
    throw TooMany(fmt::format("found more than {} requests in a second of all clients; allowed: "
                              "the same a little later",
                              kRequestsPerSecond));
  }
}

grpc::ServerUnaryReactor* Service::Execute(grpc::CallbackServerContext* context,
                                           const v1::ExecuteRequest* request,
                                           v1::ExecuteResponse* response) {
  return answered(context, backend_, [&](Backend& backend) {
    count_request();
    write(backend.execute(words_of(request->words())), *response);
  });
}

grpc::ServerUnaryReactor* Service::Complete(grpc::CallbackServerContext* context,
                                            const v1::CompleteRequest* request,
                                            v1::CompleteResponse* response) {
  return answered(context, backend_, [&](Backend& backend) {
    count_request();
    for (const std::string& word : backend.completions(line_of(*request))) {
      response->add_words(word);
    }
  });
}

grpc::ServerUnaryReactor* Service::ListRings(grpc::CallbackServerContext* context,
                                             const v1::ListRingsRequest*,
                                             v1::ListRingsResponse* response) {
  return answered(context, backend_, [&](Backend& backend) {
    count_request();
    for (const ListedRing& ring : backend.rings()) {
      write(ring, *backend.config(), *response->add_rings());
    }
  });
}

grpc::ServerUnaryReactor* Service::AddRing(grpc::CallbackServerContext* context,
                                           const v1::AddRingRequest* request,
                                           v1::AddRingResponse*) {
  return answered(context, backend_, [&](Backend& backend) {
    count_request();
    backend.add_ring(ring_of(request->ring(), *backend.config()));
  });
}

grpc::ServerUnaryReactor* Service::RemoveRing(grpc::CallbackServerContext* context,
                                              const v1::RemoveRingRequest* request,
                                              v1::RemoveRingResponse*) {
  return answered(context, backend_, [&](Backend& backend) {
    count_request();
    backend.remove_ring(request->id());
  });
}

grpc::ServerUnaryReactor* Service::DrainRing(grpc::CallbackServerContext* context,
                                             const v1::DrainRingRequest* request,
                                             v1::DrainRingResponse*) {
  return answered(context, backend_, [&](Backend& backend) {
    count_request();
    backend.drain_ring(request->id(), quiet_of(*request));
  });
}

HeldRings::Stream* Service::HoldRing(grpc::CallbackServerContext* context,
                                     const v1::HoldRingRequest* request) {
  try {
    HeldRings::Stream* stream = nullptr;
    as_caller(*context, backend_, [&](Backend& backend) {
      count_request();
      count_request(); // its end withdraws the ring
      stream = held_rings_.hold(*request, backend);
    });
    return stream;
  } catch (...) {
    return new Refused<v1::HeldRing>(status_of_exception());
  }
}

grpc::ServerWriteReactor<v1::Statistics>*
Service::WatchStatistics(grpc::CallbackServerContext* context,
                         const v1::WatchStatisticsRequest* request) {
  try {
    caller_of(peer_of(*context), *backend_.config()); // a tenant may ask all questions
    count_request();
    Watcher::Order order{words_of(request->words()), period_of(*request)};
    if (++watchers_ > kMostWatchers) {
      --watchers_;
      throw TooMany(
          fmt::format("found {} watchers; allowed: one more when one has gone", kMostWatchers));
    }
    return new Watcher(backend_, std::move(order), watchers_);
  } catch (...) {
    return new Refused<v1::Statistics>(status_of_exception());
  }
}

} // namespace weir::rpc
