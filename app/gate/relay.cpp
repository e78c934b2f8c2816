// SPDX-License-Identifier: BSD-3-Clause
#include "relay.hpp"

#include "gate/certificate.hpp"
#include "gate/connection_limits.hpp"
#include "gate/metadata.hpp"
#include "net/request_shares.hpp"

#include <array>
#include <atomic>
#include <chrono>
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
#include <thread>
#include <unistd.h>
#include <utility>

namespace weir::gate {
namespace {

using grpc::ByteBuffer;

constexpr int kCallsPerStream = 2; // one that has ended for the client may still end here
constexpr std::size_t kMostBytes = std::size_t{32} << 20; // of a connection, in gRPC's account

/// A call of the client's and the service's call for it. Deletes itself when both are done.
class Call {
 public:
  Call(grpc::GenericCallbackServerContext& context, const std::string& address,
       grpc::GenericStub& stub, std::atomic<int>& calls)
      : calls_(calls), stub_(stub), method_(context.method()), from_client_(*this),
        to_service_(*this) {
    context_.set_deadline(context.deadline());
    name_caller(context, address);
    from_client_.StartRead(&request_); // which waits until gRPC has this reactor
  }

  grpc::ServerGenericBidiReactor* reactor() { return &from_client_; }

 private:
  class FromClient : public grpc::ServerGenericBidiReactor {
   public:
    explicit FromClient(Call& call) : call_(call) {}

    void OnReadDone(bool is_read) override { call_.forward_request(is_read); }

    void OnWriteDone(bool is_written) override { call_.ask_for_answer(is_written); }

    void OnCancel() override { call_.cancel(); }

    void OnDone() override { call_.leave(); }

   private:
    Call& call_;
  };

  class ToService : public grpc::ClientBidiReactor<ByteBuffer, ByteBuffer> {
   public:
    explicit ToService(Call& call) : call_(call) {}

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

  /// The service takes who calls from here.
  void name_caller(const grpc::GenericCallbackServerContext& context, const std::string& address) {
    context_.AddMetadata(kByNetwork, address);
    for (const grpc::string_ref& pem :
         context.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME)) {
      for (const std::string& name : common_names_in({pem.begin(), pem.end()})) {
        context_.AddMetadata(kCommonName, name);
      }
    }
  }

  /// With the first request: one that has none costs the service nothing.
  void begin() {
    if (std::exchange(has_begun_, true)) {
      return;
    }
    stub_.PrepareBidiStreamingCall(&context_, method_, {}, &to_service_);
    to_service_.AddHold(); // while the client may ask
    to_service_.AddHold(); // while the service may answer
    to_service_.StartRead(&answer_);
    to_service_.StartCall();
  }

  /// Before there was a request. False: it has begun, or ended.
  bool end_alone(const grpc::Status& status) {
    {
      const std::lock_guard lock(mutex_);
      if (has_begun_ || !std::exchange(may_ask_, false)) {
        return false;
      }
    }
    from_client_.Finish(status);
    leave(); // in place of the service's side
    return true;
  }

  void cancel() {
    if (!end_alone(grpc::Status::CANCELLED)) {
      context_.TryCancel();
    }
  }

  void forward_request(bool is_read) {
    if (!is_read && end_alone({grpc::StatusCode::INVALID_ARGUMENT,
                               "found a call without a request; allowed: one that has one"})) {
      return;
    }
    const std::lock_guard lock(mutex_);
    if (!may_ask_) {
      return;
    }
    begin();
    if (is_read) {
      to_service_.StartWrite(&request_);
    } else {
      to_service_.StartWritesDone();
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
      const std::lock_guard lock(mutex_); // the service has ended the call
      end_requests();
    }
    to_service_.RemoveHold();
  }

  void ask_for_answer(bool is_written) {
    if (is_written) {
      answer_.Clear();
      to_service_.StartRead(&answer_);
      return;
    }
    context_.TryCancel(); // the client has gone
    to_service_.RemoveHold();
  }

  void end_requests() {
    if (std::exchange(may_ask_, false)) {
      to_service_.RemoveHold();
    }
  }

  void leave() {
    if (--sides_ == 0) {
      delete this;
    }
  }

  std::atomic<int>& calls_;
  grpc::GenericStub& stub_;
  const std::string method_;
  std::atomic<int> sides_{2};
  grpc::ClientContext context_;
  FromClient from_client_;
  ToService to_service_;
  ByteBuffer request_;
  ByteBuffer answer_;
  std::mutex mutex_; // guards all below
  bool has_begun_ = false;
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

/// All methods. It bounds the calls that reach the service: gRPC bounds streams, but not how many a
/// client begins and takes back.
class Service : public grpc::CallbackGenericService {
 public:
  Service(std::string address, const Profile& profile, std::shared_ptr<grpc::Channel> to_service)
      : address_(std::move(address)), most_calls_(kCallsPerStream * profile.calls_at_once),
        stub_(std::move(to_service)), rate_(profile.calls_per_second) {}

  grpc::ServerGenericBidiReactor*
  CreateReactor(grpc::GenericCallbackServerContext* context) override {
    if (!rate_.lets_pass("", net::RequestShares::Clock::now())) {
      return new Refused;
    }
    if (++calls_ > most_calls_) {
      --calls_;
      return new Refused;
    }
    return (new Call(*context, address_, stub_, calls_))->reactor();
  }

  /// All calls are over, to their last word.
  bool is_quiet() const { return calls_ == 0; }

 private:
  const std::string address_;
  const int most_calls_;
  grpc::GenericStub stub_;
  net::RequestShares rate_;
  std::atomic<int> calls_{0};
};

/// A service that stands still ends its clients' calls, where it gives signs of life.
std::shared_ptr<grpc::Channel> channel_of(int to_service, const Profile& profile) {
  constexpr int signs_per_answer = 3;
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1); // as long as the service's tables are
  if (const auto sign = static_cast<int>(profile.service_sign.count()); sign != 0) {
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, signs_per_answer * sign);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, signs_per_answer * sign);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0); // as many as it wants
  }
  return grpc::CreateCustomInsecureChannelFromFd(std::string(profile.name), to_service, arguments);
}

std::shared_ptr<grpc::ServerCredentials> tls(const PemTexts& texts, Certificates certificates) {
  grpc::SslServerCredentialsOptions options(
      certificates == Certificates::required
          ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
          : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = texts.client_authority;
  options.pem_key_cert_pairs.push_back({texts.key, texts.certificate});
  return grpc::SslServerCredentials(options);
}

void set_limits(grpc::ServerBuilder& builder, const Profile& profile) {
  builder.SetResourceQuota(grpc::ResourceQuota("weir.gate").Resize(kMostBytes));
  bound_connections(builder, profile, profile.idle_at_gate);
}

/// gRPC shuts a connection down before it closes it, and so does the other end.
void wait_for_end_of(std::array<pollfd, 2> sides) {
  while (poll(sides.data(), sides.size(), -1) < 0) {
  }
}

/// What the service has said last is perhaps on its way to the client still.
void wait_for_last_words(const Service& service) {
  constexpr std::chrono::milliseconds longest{500};
  constexpr std::chrono::milliseconds look{5};
  const auto end = std::chrono::steady_clock::now() + longest;
  while (!service.is_quiet() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(look);
  }
}

} // namespace

void relay(const Client& client, int to_service, const Orders& orders, const PemTexts& texts) {
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  gpr_set_log_function([](gpr_log_func_args*) {}); // it has a line for each bad handshake
  const std::array<pollfd, 2> sides{{{fcntl(client.connection, F_DUPFD_CLOEXEC, 0), 0, 0},
                                     {fcntl(to_service, F_DUPFD_CLOEXEC, 0), 0, 0}}};
  const Profile& profile = *orders.profile;
  Service service(client.address, profile, channel_of(to_service, profile));
  grpc::ServerBuilder builder;
  set_limits(builder, profile);
  builder.RegisterCallbackGenericService(&service);
  const auto acceptor = builder.experimental().AddExternalConnectionAcceptor(
      Type::FROM_FD, tls(texts, orders.certificates));
  const auto server = builder.BuildAndStart();
  if (server == nullptr) {
    _exit(EXIT_FAILURE);
  }
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.fd = client.connection;
  acceptor->HandleNewConnection(&parameters);
  wait_for_end_of(sides);
  wait_for_last_words(service);
  _exit(EXIT_SUCCESS); // nothing here outlives the connection
}

} // namespace weir::gate
