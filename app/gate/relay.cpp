// SPDX-License-Identifier: BSD-3-Clause
#include "relay.hpp"

#include "gate/metadata.hpp"
#include "rpc/certificate.hpp"
#include "rpc/connection_limits.hpp"
#include "rpc/request_shares.hpp"

#include <array>
#include <atomic>
#include <fcntl.h>
#include <grpc/grpc_security_constants.h>
#include <grpc/support/log.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>
#include <memory>
#include <mutex>
#include <poll.h>
#include <string>
#include <unistd.h>
#include <utility>

namespace weir::gate {
namespace {

using grpc::ByteBuffer;

// What a connection can take.
constexpr double kMostCallsPerSecond = 200;
constexpr std::size_t kMostBytes = std::size_t{32} << 20; // in gRPC's account

/// A call of the client's and the switch's call for it. Deletes itself when both are done.
class Call {
 public:
  Call(grpc::GenericCallbackServerContext& context, grpc::GenericStub& stub,
       std::atomic<int>& calls)
      : calls_(calls), from_client_(*this), to_switch_(*this) {
    context_.set_deadline(context.deadline());
    name_caller(context);
    stub.PrepareBidiStreamingCall(&context_, context.method(), {}, &to_switch_);
    to_switch_.AddHold();              // while the client may ask
    to_switch_.AddHold();              // while the switch may answer
    from_client_.StartRead(&request_); // which waits until gRPC has this reactor
    to_switch_.StartRead(&answer_);
    to_switch_.StartCall();
  }

  grpc::ServerGenericBidiReactor* reactor() { return &from_client_; }

 private:
  class FromClient : public grpc::ServerGenericBidiReactor {
   public:
    explicit FromClient(Call& call) : call_(call) {}

    void OnReadDone(bool is_read) override { call_.forward_request(is_read); }

    void OnWriteDone(bool is_written) override { call_.ask_for_answer(is_written); }

    void OnCancel() override { call_.context_.TryCancel(); }

    void OnDone() override { call_.leave(); }

   private:
    Call& call_;
  };

  class ToSwitch : public grpc::ClientBidiReactor<ByteBuffer, ByteBuffer> {
   public:
    explicit ToSwitch(Call& call) : call_(call) {}

    void OnReadDone(bool is_read) override { call_.forward_answer(is_read); }

    void OnWriteDone(bool is_written) override { call_.ask_for_request(is_written); }

    void OnDone(const grpc::Status& status) override {
      call_.from_client_.Finish(status);
      call_.leave();
    }

   private:
    Call& call_;
  };

  ~Call() { --calls_; }

  /// The switch takes who calls from here.
  void name_caller(const grpc::GenericCallbackServerContext& context) {
    context_.AddMetadata(kByNetwork, "1");
    for (const grpc::string_ref& pem :
         context.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME)) {
      for (const std::string& name : rpc::common_names_in({pem.begin(), pem.end()})) {
        context_.AddMetadata(kCommonName, name);
      }
    }
  }

  void forward_request(bool is_read) {
    const std::lock_guard lock(mutex_);
    if (!may_ask_) {
      return;
    }
    if (is_read) {
      to_switch_.StartWrite(&request_);
    } else {
      to_switch_.StartWritesDone();
      end_requests();
    }
  }

  void ask_for_request(bool is_written) {
    const std::lock_guard lock(mutex_);
    if (!is_written) {
      end_requests();
    } else if (may_ask_) {
      request_.Clear();
      from_client_.StartRead(&request_);
    }
  }

  void forward_answer(bool is_read) {
    if (is_read) {
      from_client_.StartWrite(&answer_);
      return;
    }
    {
      const std::lock_guard lock(mutex_); // the switch has ended the call
      end_requests();
    }
    to_switch_.RemoveHold();
  }

  void ask_for_answer(bool is_written) {
    if (is_written) {
      answer_.Clear();
      to_switch_.StartRead(&answer_);
      return;
    }
    context_.TryCancel(); // the client has gone
    to_switch_.RemoveHold();
  }

  void end_requests() {
    if (std::exchange(may_ask_, false)) {
      to_switch_.RemoveHold();
    }
  }

  void leave() {
    if (--sides_ == 0) {
      delete this;
    }
  }

  std::atomic<int>& calls_;
  std::atomic<int> sides_{2};
  grpc::ClientContext context_;
  FromClient from_client_;
  ToSwitch to_switch_;
  ByteBuffer request_;
  ByteBuffer answer_;
  std::mutex mutex_; // guards the next
  bool may_ask_ = true;
};

/// Ends a call at once.
class Refused : public grpc::ServerGenericBidiReactor {
 public:
  Refused() {
    Finish({grpc::StatusCode::RESOURCE_EXHAUSTED,
            "found more calls than a connection may make; allowed: the same a little later"});
  }

  void OnDone() override { delete this; }
};

/// All methods. It bounds the calls that reach the switch: gRPC bounds streams, but not how many a
/// client begins and takes back.
class Service : public grpc::CallbackGenericService {
 public:
  explicit Service(std::shared_ptr<grpc::Channel> to_switch) : stub_(std::move(to_switch)) {}

  grpc::ServerGenericBidiReactor*
  CreateReactor(grpc::GenericCallbackServerContext* context) override {
    if (!rate_.lets_pass("", rpc::RequestShares::Clock::now())) {
      return new Refused;
    }
    if (++calls_ > rpc::kMostCalls) {
      --calls_;
      return new Refused;
    }
    return (new Call(*context, stub_, calls_))->reactor();
  }

 private:
  grpc::GenericStub stub_;
  rpc::RequestShares rate_{kMostCallsPerSecond};
  std::atomic<int> calls_{0};
};

std::shared_ptr<grpc::Channel> channel_of(int to_switch) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1); // as long as the switch's tables are
  return grpc::CreateCustomInsecureChannelFromFd("switch", to_switch, arguments);
}

std::shared_ptr<grpc::ServerCredentials> mutual_tls(const rpc::PemTexts& texts) {
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = texts.client_authority;
  options.pem_key_cert_pairs.push_back({texts.key, texts.certificate});
  return grpc::SslServerCredentials(options);
}

void set_limits(grpc::ServerBuilder& builder) {
  builder.SetResourceQuota(grpc::ResourceQuota("weir.gate").Resize(kMostBytes));
  rpc::bound_connections(builder, rpc::kIdleAtGate);
}

/// gRPC shuts a connection down before it closes it, and so does the other end.
void wait_for_end_of(std::array<pollfd, 2> sides) {
  while (poll(sides.data(), sides.size(), -1) < 0) {
  }
}

} // namespace

void relay(int client, int to_switch, const rpc::PemTexts& texts) {
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  gpr_set_log_function([](gpr_log_func_args*) {}); // it has a line for each bad handshake
  const std::array<pollfd, 2> sides{
      {{fcntl(client, F_DUPFD_CLOEXEC, 0), 0, 0}, {fcntl(to_switch, F_DUPFD_CLOEXEC, 0), 0, 0}}};
  Service service(channel_of(to_switch));
  grpc::ServerBuilder builder;
  set_limits(builder);
  builder.RegisterCallbackGenericService(&service);
  const auto acceptor =
      builder.experimental().AddExternalConnectionAcceptor(Type::FROM_FD, mutual_tls(texts));
  const auto server = builder.BuildAndStart();
  if (server == nullptr) {
    _exit(EXIT_FAILURE);
  }
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.fd = client;
  acceptor->HandleNewConnection(&parameters);
  wait_for_end_of(sides);
  _exit(EXIT_SUCCESS); // nothing here outlives the connection
}

} // namespace weir::gate
