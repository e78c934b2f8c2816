// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/service.hpp"

#include "capture/pcapng_file.hpp"
#include "command/commands.hpp"
#include "control/switch.hpp"
#include "report/answers.hpp"
#include "rpc/caller.hpp"
#include "rpc/messages.hpp"
#include "rpc/operator_messages.hpp"
#include "rpc/ring_messages.hpp"
#include "rpc/switch_watch.hpp"
#include "rpc/tenant_backend.hpp"
#include "rpc/too_many.hpp"
#include "rpc/watcher.hpp"

#include <fmt/format.h>

#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

namespace weir::rpc {
namespace {

/// Ends a call before its first answer.
template <typename Answer>
class Refused : public grpc::ServerWriteReactor<Answer> {
 public:
  explicit Refused(const grpc::Status& status) { this->Finish(status); }

  void OnDone() override { delete this; }
};

/// Ends a call with its only answer.
class Answered : public grpc::ServerUnaryReactor {
 public:
  /// `bytes` are given back when the client has the answer.
  Answered(const grpc::Status& status, std::optional<Places::Place> bytes)
      : bytes_(std::move(bytes)) {
    Finish(status);
  }

  void OnDone() override { delete this; }

 private:
  const std::optional<Places::Place> bytes_;
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
  } catch (const control::NoRoomForRegion& error) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, error.what()};
  } catch (const control::RegionRefused& error) {
    return {grpc::StatusCode::FAILED_PRECONDITION, error.what()};
  } catch (const control::NoSuchRegion& error) {
    return {grpc::StatusCode::NOT_FOUND, error.what()};
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
  } catch (const control::OperatorError& error) {
    return {grpc::StatusCode::INVALID_ARGUMENT, error.what()};
  } catch (const control::NoRoomForOperator& error) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, error.what()};
  } catch (const control::NoSuchOperator& error) {
    return {grpc::StatusCode::NOT_FOUND, error.what()};
  } catch (const control::OperatorInUse& error) {
    return {grpc::StatusCode::FAILED_PRECONDITION, error.what()};
  } catch (const control::CaptureRuns& error) {
    return {grpc::StatusCode::FAILED_PRECONDITION, error.what()};
  } catch (const capture::FileError& error) {
    return {grpc::StatusCode::FAILED_PRECONDITION, error.what()};
  } catch (const NotAllowed& error) {
    return {grpc::StatusCode::PERMISSION_DENIED, error.what()};
  } catch (const TermOver& error) {
    return {grpc::StatusCode::ABORTED, error.what(), error.details()};
  } catch (const OrderOvertaken& error) {
    return {grpc::StatusCode::UNAVAILABLE, error.what()};
  } catch (const WrongFabric& error) {
    return {grpc::StatusCode::FAILED_PRECONDITION, error.what()};
  } catch (const TooMany& error) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, error.what()};
  } catch (const lcore::LcoreError& error) {
    return {grpc::StatusCode::UNAVAILABLE, error.what()};
  } catch (const std::exception& error) {
    return {grpc::StatusCode::INTERNAL, error.what()};
  }
}

template <typename Work>
void Service::as_caller(const grpc::CallbackServerContext& context, int requests, Work&& work) {
  const Caller caller = caller_of(gate::peer_of(context), *backend_.config());
  shares_.count_requests(caller, requests);
  caller.check_may_call();
  if (caller.is_operator()) {
    work(caller, backend_);
  } else {
    TenantBackend own(backend_, caller.name);
    work(caller, own);
  }
}

template <typename Response, typename Work>
grpc::ServerUnaryReactor* Service::answered(grpc::CallbackServerContext* context,
                                            Response& response, Work&& work) {
  grpc::Status status;
  std::optional<Places::Place> bytes;
  try {
    as_caller(*context, 1, [&](const Caller& caller, Backend& backend) {
      shares_.expect_room_for_answer(caller, *backend.config());
      work(backend);
      bytes.emplace(shares_.take_answer(caller, bytes_of(response)));
    });
  } catch (...) {
    status = status_of_exception();
    Response().Swap(&response); // nobody gets what there is of it, and the call may last
  }
  return new Answered(status, std::move(bytes));
}

grpc::ServerUnaryReactor* Service::Execute(grpc::CallbackServerContext* context,
                                           const v1::ExecuteRequest* request,
                                           v1::ExecuteResponse* response) {
  return answered(context, *response, [&](Backend& backend) {
    write(backend.execute(words_of(request->words())), *response);
  });
}

grpc::ServerUnaryReactor* Service::Complete(grpc::CallbackServerContext* context,
                                            const v1::CompleteRequest* request,
                                            v1::CompleteResponse* response) {
  return answered(context, *response, [&](Backend& backend) {
    for (const std::string& word : backend.completions(line_of(*request))) {
      response->add_words(word);
    }
  });
}

grpc::ServerUnaryReactor* Service::ListRings(grpc::CallbackServerContext* context,
                                             const v1::ListRingsRequest*,
                                             v1::ListRingsResponse* response) {
  return answered(context, *response, [&](Backend& backend) {
    for (const ListedRing& ring : backend.rings()) {
      write(ring, *backend.config(), *response->add_rings());
    }
  });
}

grpc::ServerUnaryReactor* Service::AddRing(grpc::CallbackServerContext* context,
                                           const v1::AddRingRequest* request,
                                           v1::AddRingResponse* response) {
  return answered(context, *response, [&](Backend& backend) {
    backend.add_ring(ring_of(request->ring(), *backend.config()));
  });
}

grpc::ServerUnaryReactor* Service::RemoveRing(grpc::CallbackServerContext* context,
                                              const v1::RemoveRingRequest* request,
                                              v1::RemoveRingResponse* response) {
  return answered(context, *response,
                  [&](Backend& backend) { backend.remove_ring(request->id()); });
}

grpc::ServerUnaryReactor* Service::DrainRing(grpc::CallbackServerContext* context,
                                             const v1::DrainRingRequest* request,
                                             v1::DrainRingResponse* response) {
  return answered(context, *response,
                  [&](Backend& backend) { backend.drain_ring(request->id(), quiet_of(*request)); });
}

grpc::ServerUnaryReactor* Service::LoadOperator(grpc::CallbackServerContext* context,
                                                const v1::LoadOperatorRequest* request,
                                                v1::Operator* response) {
  return answered(context, *response, [&](Backend& backend) {
    write(backend.load_operator(request->text()), *response);
  });
}

grpc::ServerUnaryReactor* Service::ListOperators(grpc::CallbackServerContext* context,
                                                 const v1::ListOperatorsRequest*,
                                                 v1::ListOperatorsResponse* response) {
  return answered(context, *response, [&](Backend& backend) {
    for (const control::OperatorSeen& one : backend.operators()) {
      write(one, *response->add_operators());
    }
  });
}

grpc::ServerUnaryReactor* Service::UnloadOperator(grpc::CallbackServerContext* context,
                                                  const v1::UnloadOperatorRequest* request,
                                                  v1::UnloadOperatorResponse* response) {
  return answered(context, *response,
                  [&](Backend& backend) { backend.unload_operator(digest_of(request->digest())); });
}

grpc::ServerUnaryReactor* Service::TestOperator(grpc::CallbackServerContext* context,
                                                const v1::TestOperatorRequest* request,
                                                v1::TestOperatorResponse* response) {
  return answered(context, *response, [&](Backend& backend) {
    std::vector<std::span<const std::byte>> inputs;
    for (const std::string& input : request->inputs()) {
      inputs.push_back(std::as_bytes(std::span(input)));
    }
    const auto result = backend.test_operator(digest_of(request->digest()), inputs);
    response->set_result(result.data(), result.size());
  });
}

template <typename Message, typename Hold>
grpc::ServerWriteReactor<Message>* Service::held(grpc::CallbackServerContext* context,
                                                 Hold&& hold) {
  try {
    grpc::ServerWriteReactor<Message>* stream = nullptr;
    constexpr int requests = 2; // its end takes it back
    as_caller(*context, requests, [&](const Caller& caller, Backend& backend) {
      stream = hold(backend, shares_.take_held_ring(caller, *backend.config()));
    });
    return stream;
  } catch (...) {
    return new Refused<Message>(status_of_exception());
  }
}

HeldRings::Stream* Service::HoldRing(grpc::CallbackServerContext* context,
                                     const v1::HoldRingRequest* request) {
  return held<v1::HeldRing>(context, [&](Backend& backend, Places::Place place) {
    return held_rings_.hold(*request, backend, std::move(place));
  });
}

HeldRegions::Stream* Service::HoldRegion(grpc::CallbackServerContext* context,
                                         const v1::HoldRegionRequest* request) {
  return held<v1::HeldRegion>(context, [&](Backend& backend, Places::Place place) {
    return held_regions_.hold(*request, backend, std::move(place));
  });
}

grpc::ServerWriteReactor<v1::Statistics>*
Service::WatchStatistics(grpc::CallbackServerContext* context,
                         const v1::WatchStatisticsRequest* request) {
  try {
    Watcher* watcher = nullptr;
    as_caller(*context, 1, [&](const Caller& caller, Backend& backend) {
      Watcher::Order order{words_of(request->words()), period_of(*request)};
      // The caller's own backend ends with this call.
      watcher =
          new Watcher(backend_, std::move(order), shares_.take_watcher(caller, *backend.config()),
                      Watcher::Room{shares_, caller});
    });
    return watcher;
  } catch (...) {
    return new Refused<v1::Statistics>(status_of_exception());
  }
}

template <typename Work>
grpc::ServerUnaryReactor* Service::managed(grpc::CallbackServerContext* context, Work&& work) {
  grpc::Status status;
  try {
    const Caller caller = caller_of(gate::peer_of(*context), *backend_.config());
    shares_.count_requests(caller, 1);
    caller.check_may_manage();
    work();
  } catch (...) {
    status = status_of_exception();
  }
  return new Answered(status, std::nullopt);
}

grpc::ServerUnaryReactor* Service::ClaimFabric(grpc::CallbackServerContext* context,
                                               const v1::ClaimFabricRequest* request,
                                               v1::ClaimFabricResponse* response) {
  return managed(context, [&] { fabric_rings_.claim(*request, *response); });
}

grpc::ServerUnaryReactor* Service::ApplyRings(grpc::CallbackServerContext* context,
                                              const v1::ApplyRingsRequest* request,
                                              v1::FabricOrderResponse*) {
  return managed(context, [&] { fabric_rings_.apply(*request); });
}

grpc::ServerUnaryReactor* Service::RemoveRings(grpc::CallbackServerContext* context,
                                               const v1::RemoveRingsRequest* request,
                                               v1::FabricOrderResponse*) {
  return managed(context, [&] { fabric_rings_.remove(*request); });
}

grpc::ServerWriteReactor<v1::SwitchSeen>*
Service::WatchSwitch(grpc::CallbackServerContext* context, const v1::WatchSwitchRequest* request) {
  try {
    const Caller caller = caller_of(gate::peer_of(*context), *backend_.config());
    shares_.count_requests(caller, 1);
    caller.check_may_manage();
    return new SwitchWatch(fabric_rings_, *request,
                           shares_.take_watcher(caller, *backend_.config()));
  } catch (...) {
    return new Refused<v1::SwitchSeen>(status_of_exception());
  }
}

} // namespace weir::rpc
