// SPDX-License-Identifier: BSD-3-Clause
#include "store/etcd_calls.hpp"

#include <algorithm>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <string_view>
#include <thread>

namespace weir::store {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPause{50}; // between two attempts
constexpr int kLongestReconnectMs = 1000;
constexpr std::string_view kSecure = "https://";

std::shared_ptr<grpc::Channel> connect(const std::string& server, const EtcdAccess& access) {
  const bool is_secure = server.starts_with(kSecure);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kLongestReconnectMs / 10);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kLongestReconnectMs / 10);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLongestReconnectMs);
  arguments.SetMaxReceiveMessageSize(-1);
  const auto credentials = is_secure ? grpc::SslCredentials({.pem_root_certs = access.authority,
                                                             .pem_private_key = access.key,
                                                             .pem_cert_chain = access.certificate})
                                     : grpc::InsecureChannelCredentials();
  return grpc::CreateCustomChannel(server.substr(server.find("://") + 3), credentials, arguments);
}

/// Another member may answer.
bool may_be_asked_again(const grpc::Status& status) {
  switch (status.error_code()) {
  case grpc::StatusCode::UNAVAILABLE:
  case grpc::StatusCode::DEADLINE_EXCEEDED:
  case grpc::StatusCode::CANCELLED:
  case grpc::StatusCode::UNKNOWN:
    return true;
  default:
    return false;
  }
}

/// A call's steps, each of which is waited for.
class Steps {
 public:
  ~Steps() { drain(queue_); }

  grpc::CompletionQueue* queue() { return &queue_; }

  /// The next one has come, and went well.
  bool next() {
    void* tag = nullptr;
    bool is_done = false;
    return queue_.Next(&tag, &is_done) && is_done;
  }

 private:
  grpc::CompletionQueue queue_;
};

} // namespace

void drain(grpc::CompletionQueue& queue) {
  queue.Shutdown();
  void* tag = nullptr;
  bool is_done = false;
  while (queue.Next(&tag, &is_done)) {
  }
}

EtcdCalls::EtcdCalls(const EtcdAccess& access) {
  for (const std::string& server : access.servers) {
    stubs_.push_back(std::make_unique<Stub>(connect(server, access)));
  }
}

EtcdCalls::Entered::Entered(EtcdCalls& calls, grpc::ClientContext& context)
    : calls_(calls), context_(context) {
  const std::lock_guard lock(calls_.mutex_);
  calls_.under_way_.insert(&context_);
  if (calls_.is_stopped_) {
    context_.TryCancel();
  }
}

EtcdCalls::Entered::~Entered() {
  const std::lock_guard lock(calls_.mutex_);
  calls_.under_way_.erase(&context_);
}

void EtcdCalls::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  for (grpc::ClientContext* const context : under_way_) {
    context->TryCancel();
  }
}

std::size_t EtcdCalls::member() const {
  const std::lock_guard lock(mutex_);
  return member_;
}

bool EtcdCalls::is_stopped() const {
  const std::lock_guard lock(mutex_);
  return is_stopped_;
}

/// Another thread may have done it already.
void EtcdCalls::pass_over(std::size_t member) {
  const std::lock_guard lock(mutex_);
  if (member_ == member) {
    member_ = (member + 1) % stubs_.size();
  }
}

grpc::Status EtcdCalls::try_member(std::size_t member, std::chrono::milliseconds longest,
                                   Connection connection, const Attempt& attempt) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + longest);
  context.set_wait_for_ready(connection == Connection::waited_for);
  const Entered entered(*this, context);
  return attempt(*stubs_[member], context);
}

/// At first those that are connected. A connection is only made anew while a call waits for it.
grpc::Status EtcdCalls::try_members(std::chrono::milliseconds member_patience,
                                    const Attempt& attempt) {
  const Clock::time_point end = Clock::now() + std::max(kPatience, member_patience);
  for (std::size_t tries = 0;; ++tries) {
    const std::size_t asked = member();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    const Connection connection =
        tries < stubs_.size() ? Connection::there_already : Connection::waited_for;
    grpc::Status status = try_member(asked, std::min(left, member_patience), connection, attempt);
    if (!may_be_asked_again(status)) {
      return status;
    }
    pass_over(asked);
    if (is_stopped() || Clock::now() + kPause >= end) {
      return status;
    }
    std::this_thread::sleep_for(kPause);
  }
}

grpc::Status EtcdCalls::ask(const std::string& method, const Message& request, Message& response,
                            std::chrono::milliseconds member_patience) {
  return try_members(member_patience, [&](Stub& stub, grpc::ClientContext& context) {
    Steps steps;
    grpc::Status status;
    const auto call = stub.PrepareUnaryCall(&context, method, request, steps.queue());
    call->StartCall();
    call->Finish(&response, &status, nullptr);
    steps.next();
    return status;
  });
}

grpc::Status EtcdCalls::ask_stream(const std::string& method, const Message& request,
                                   Message& response) {
  return try_members(kMemberPatience, [&](Stub& stub, grpc::ClientContext& context) {
    Steps steps;
    grpc::Status status;
    const auto call = stub.PrepareCall(&context, method, steps.queue());
    call->StartCall(nullptr);
    bool is_answered = steps.next();
    if (is_answered) {
      call->WriteLast(request, grpc::WriteOptions(), nullptr);
      is_answered = steps.next();
    }
    if (is_answered) {
      call->Read(&response, nullptr);
      is_answered = steps.next();
    }
    if (is_answered) {
      context.TryCancel();
    }
    call->Finish(&status, nullptr);
    steps.next();
    if (!is_answered && status.ok()) {
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the stream ended without an answer");
    }
    return is_answered ? grpc::Status::OK : status;
  });
}

} // namespace weir::store
