// SPDX-License-Identifier: BSD-3-Clause
#include "manager/switch_calls.hpp"

#include "manager/pem_file.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/client_callback.h>
#include <mutex>
#include <set>
#include <utility>
#include <weir/v1/switch.grpc.pb.h>

namespace weir::manager {
namespace {

using jobs::Code;
using jobs::Outcome;
using jobs::SwitchIndex;

constexpr std::chrono::seconds kPatience{10}; // for an order
constexpr int kLongestPauseMs = 1000;         // between two attempts to connect

Outcome outcome_of(const grpc::Status& status) {
  switch (status.error_code()) {
  case grpc::StatusCode::OK:
    return {};
  case grpc::StatusCode::ABORTED:
    return {Code::over, status.error_message()};
  case grpc::StatusCode::UNAVAILABLE:
  case grpc::StatusCode::DEADLINE_EXCEEDED:
  case grpc::StatusCode::CANCELLED:
    return {Code::no_answer, status.error_message()};
  case grpc::StatusCode::UNIMPLEMENTED:
    return {Code::refused, "it does not know ClaimFabric; is it an older version?"};
  default:
    return {Code::refused, status.error_message()};
  }
}

grpc::ChannelArguments arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLongestPauseMs);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kLongestPauseMs / 10);
  arguments.SetMaxReceiveMessageSize(-1);
  return arguments;
}

std::shared_ptr<grpc::ChannelCredentials> credentials_for(const std::string& address,
                                                          const Config& config) {
  if (address.starts_with("unix:")) {
    return grpc::InsecureChannelCredentials();
  }
  return grpc::SslCredentials({.pem_root_certs = contents_of(config.tls->switch_authority),
                               .pem_private_key = contents_of(config.tls->key),
                               .pem_cert_chain = contents_of(config.tls->certificate)});
}

} // namespace

struct SwitchCalls::Parts {
  Parts(Mailbox& box, SwitchEvents given) : mailbox(box), events(std::move(given)) {}

  void enter(grpc::ClientContext& context) {
    const std::lock_guard lock(mutex);
    under_way.insert(&context);
    if (has_ended) {
      context.TryCancel();
    }
  }

  void leave(grpc::ClientContext& context) {
    const std::lock_guard lock(mutex);
    under_way.erase(&context);
  }

  /// gRPC's threads end when its last channel does, and wait for each other then. So it is not one
  /// of them that lets go of it.
  void end() {
    std::unique_lock lock(mutex);
    has_ended = true;
    for (grpc::ClientContext* const context : under_way) {
      context->TryCancel();
    }
    changed.wait(lock, [this] { return calls == 0; });
    stubs.clear();
  }

  Mailbox& mailbox;
  const SwitchEvents events;
  std::vector<std::unique_ptr<v1::Switch::Stub>> stubs; // by switch
  std::mutex mutex;                                     // guards all below
  std::condition_variable changed;
  std::set<grpc::ClientContext*> under_way;
  unsigned calls = 0; // of which something is left, such as a context, which has its channel
  bool has_ended = false;
};

namespace {

using Stub = v1::Switch::Stub::async_interface;

/// A call of the stub's with one answer.
template <typename Request, typename Response>
using Method = void (Stub::*)(grpc::ClientContext*, const Request*, Response*,
                              std::function<void(grpc::Status)>);

/// The first member of a call, and so the last of it that goes.
template <typename Parts>
struct Counted {
  explicit Counted(std::shared_ptr<Parts> given) : parts(std::move(given)) {
    const std::lock_guard lock(parts->mutex);
    ++parts->calls;
  }

  ~Counted() {
    const std::lock_guard lock(parts->mutex);
    --parts->calls;
    parts->changed.notify_all();
  }

  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  const std::shared_ptr<Parts> parts;
};

/// Calls `tell(events, outcome, request, response)` by the mailbox when the answer is there. A
/// refusal has it in its details.
template <typename Parts, typename Request, typename Response, typename Tell>
void ask(const std::shared_ptr<Parts>& parts, SwitchIndex at, Method<Request, Response> method,
         const Request& given, Tell tell) {
  struct Said {
    Request request;
    Response response;
  };

  struct Call {
    Counted<Parts> counted;
    grpc::ClientContext context{};
  };

  auto said = std::make_shared<Said>(Said{given, {}});
  auto call = std::shared_ptr<Call>(new Call{Counted<Parts>(parts)});
  call->context.set_deadline(std::chrono::system_clock::now() + kPatience);
  parts->enter(call->context);
  (parts->stubs[at]->async()->*method)(
      &call->context, &said->request, &said->response,
      [parts, call, said, tell](const grpc::Status& status) {
        if (!status.ok()) {
          said->response.ParseFromString(status.error_details());
        }
        parts->mailbox.add([parts, said, tell, outcome = outcome_of(status)] {
          tell(parts->events, outcome, said->request, said->response);
        });
        parts->leave(call->context);
      });
}

} // namespace

SwitchCalls::SwitchCalls(const Config& config, Mailbox& mailbox, SwitchEvents events)
    : parts_(std::make_shared<Parts>(mailbox, std::move(events))) {
  for (const std::string& address : config.site.control) {
    parts_->stubs.push_back(v1::Switch::NewStub(
        grpc::CreateCustomChannel(address, credentials_for(address, config), arguments())));
  }
}

SwitchCalls::~SwitchCalls() {
  parts_->end();
}

void SwitchCalls::claim(SwitchIndex at, const v1::ClaimFabricRequest& request) {
  ask<Parts, v1::ClaimFabricRequest, v1::ClaimFabricResponse>(
      parts_, at, &Stub::ClaimFabric, request,
      [at](const SwitchEvents& events, const Outcome& outcome, const auto&, const auto& response) {
        events.claimed(at, outcome, response);
      });
}

namespace {

/// Of rings, told by its number.
template <typename Parts, typename Request>
void order(const std::shared_ptr<Parts>& parts, SwitchIndex at,
           Method<Request, v1::FabricOrderResponse> method, const Request& request) {
  ask<Parts, Request, v1::FabricOrderResponse>(
      parts, at, method, request,
      [at](const SwitchEvents& events, const Outcome& outcome, const Request& asked, const auto&) {
        events.ordered(at, asked.order().number(), outcome);
      });
}

} // namespace

void SwitchCalls::apply(SwitchIndex at, const v1::ApplyRingsRequest& request) {
  order<Parts, v1::ApplyRingsRequest>(parts_, at, &Stub::ApplyRings, request);
}

void SwitchCalls::remove(SwitchIndex at, const v1::RemoveRingsRequest& request) {
  order<Parts, v1::RemoveRingsRequest>(parts_, at, &Stub::RemoveRings, request);
}

namespace {

/// A call WatchSwitch. Deletes itself when it is done.
template <typename Parts>
class Watch : public grpc::ClientReadReactor<v1::SwitchSeen> {
 public:
  Watch(std::shared_ptr<Parts> parts, SwitchIndex at, const v1::WatchSwitchRequest& request)
      : counted_(std::move(parts)), at_(at), request_(request) {
    counted_.parts->enter(context_);
    counted_.parts->stubs[at]->async()->WatchSwitch(&context_, &request_, this);
    StartRead(&seen_);
    StartCall();
  }

  void OnReadDone(bool is_read) override {
    if (is_read) {
      counted_.parts->mailbox.add(
          [parts = counted_.parts, at = at_, seen = seen_] { parts->events.seen(at, seen); });
      StartRead(&seen_);
    }
  }

  void OnDone(const grpc::Status& status) override {
    Outcome outcome = outcome_of(status);
    if (outcome.code == Code::ok) {
      outcome = {Code::no_answer, "it ended the call"};
    }
    counted_.parts->mailbox.add([parts = counted_.parts, at = at_, outcome = std::move(outcome)] {
      parts->events.watch_ended(at, outcome);
    });
    counted_.parts->leave(context_);
    delete this;
  }

 private:
  const Counted<Parts> counted_;
  const SwitchIndex at_;
  const v1::WatchSwitchRequest request_;
  grpc::ClientContext context_;
  v1::SwitchSeen seen_;
};

} // namespace

void SwitchCalls::watch(SwitchIndex at, const v1::WatchSwitchRequest& request) {
  new Watch<Parts>(parts_, at, request);
}

} // namespace weir::manager
