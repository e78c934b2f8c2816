// SPDX-License-Identifier: BSD-3-Clause

/// The module libweir_switch.so: rings of a switch by its call HoldRing.

#include "host/switch_rings/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <fstream>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/client_callback.h>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>
#include <weir/v1/switch.grpc.pb.h>

using namespace weir;

namespace {

constexpr std::chrono::milliseconds kLookPeriod{20}; // at whether the caller goes on waiting

std::string contents_of(std::string_view what, const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream || text.empty()) {
    throw std::runtime_error(fmt::format(
        "{}: found '{}', which cannot be read or is empty; allowed: a PEM file", what, file));
  }
  return text;
}

std::shared_ptr<grpc::ChannelCredentials> credentials_for(const weir_hold_order& order) {
  if (std::string_view(order.server).starts_with("unix:")) {
    return grpc::InsecureChannelCredentials();
  }
  return grpc::SslCredentials({.pem_root_certs = contents_of("authority", order.authority),
                               .pem_private_key = contents_of("key", order.key),
                               .pem_cert_chain = contents_of("certificate", order.certificate)});
}

/// `number` tells connections to one switch apart: gRPC shares one among equal arguments.
std::shared_ptr<grpc::Channel> connect(const weir_hold_order& order, int number) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt("weir.connection", number);
  if (*order.name != '\0') {
    arguments.SetSslTargetNameOverride(order.name);
  }
  return grpc::CreateCustomChannel(order.server, credentials_for(order), arguments);
}

/// What the rings of this process share. It closes with the last of them.
struct Connection {
  std::shared_ptr<grpc::Channel> channel;
};

/// To switches. Any thread.
class Connections {
 public:
  /// One that has room for a call more, for as long as the call holds it.
  std::shared_ptr<Connection> with_room(const weir_hold_order& order) {
    const std::lock_guard lock(mutex_);
    auto& known = known_[{order.server, order.certificate, order.key, order.authority, order.name}];
    std::erase_if(known, [](const auto& connection) { return connection.expired(); });
    const auto found = std::ranges::find_if(
        known, [](const auto& connection) { return connection.use_count() < kMostCalls; });
    if (found != known.end()) {
      return found->lock();
    }
    auto made = std::make_shared<Connection>(Connection{connect(order, ++made_)});
    known.push_back(made);
    return made;
  }

 private:
  // A switch lets a connection's later ones wait (docs/control.md, "Limits").
  static constexpr long kMostCalls = 64;

  std::mutex mutex_;
  std::map<std::array<std::string, 5>, std::vector<std::weak_ptr<Connection>>> known_;
  int made_ = 0;
};

Connections& connections() {
  static auto* const the_connections = new Connections; // static objects may have groups
  return *the_connections;
}

v1::HoldRingRequest request_of(const weir_hold_order& order) {
  v1::HoldRingRequest request;
  v1::Ring& ring = *request.mutable_ring();
  request.set_id(order.id_is == WEIR_HOLD_ID_CHOSEN ? v1::HoldRingRequest::CHOSEN_BY_SWITCH
                                                    : v1::HoldRingRequest::GIVEN);
  ring.set_id(order.id);
  ring.set_window(order.window);
  ring.set_max_message_bytes(order.message_bytes);
  ring.set_mtu(order.mtu);
  ring.set_nonce(order.nonce);
  for (std::size_t rank = 0; rank < order.member_count; ++rank) {
    ring.add_members()->set_ip(order.members[rank]);
  }
  return request;
}

std::string reason_of(const grpc::Status& status) {
  if (status.ok()) {
    return "it ended the call";
  }
  switch (status.error_code()) {
  case grpc::StatusCode::UNAVAILABLE:
    return fmt::format("no answer: {}", status.error_message());
  case grpc::StatusCode::UNIMPLEMENTED:
    return "it does not know the call HoldRing of weir.v1.Switch; is it an older version?";
  default:
    return status.error_message();
  }
}

/// A call HoldRing. gRPC's threads drive it.
class Stream : public grpc::ClientReadReactor<v1::HeldRing> {
 public:
  explicit Stream(const weir_hold_order& order)
      : tell_ended_(order.ended), is_stopped_(order.is_stopped), user_(order.user),
        request_(request_of(order)), connection_(connections().with_room(order)),
        stub_(v1::Switch::NewStub(connection_->channel)) {
    stub_->async()->HoldRing(&context_, &request_, this);
    StartRead(&answer_);
    StartCall();
  }

  /// Ends the call.
  ~Stream() override {
    {
      const std::lock_guard lock(mutex_);
      tell_ended_ = nullptr;
    }
    context_.TryCancel();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_done_; });
  }

  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// The ring's id. Throws std::runtime_error.
  std::uint32_t wait_for_ring(std::chrono::milliseconds timeout) {
    const auto end = std::chrono::steady_clock::now() + timeout;
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kLookPeriod, [this] { return id_ || is_done_; })) {
      if (is_stopped_(user_) != 0) {
        throw std::runtime_error("the caller needs no ring any more");
      }
      if (std::chrono::steady_clock::now() >= end) {
        throw std::runtime_error(fmt::format("no answer within {} ms", timeout.count()));
      }
    }
    if (is_done_) {
      throw std::runtime_error(reason_);
    }
    return *id_;
  }

 private:
  void OnReadDone(bool is_read) override {
    if (!is_read) {
      return;
    }
    const std::lock_guard lock(mutex_);
    id_ = answer_.ring().id();
    changed_.notify_all();
    StartRead(&answer_); // there is no other: it waits for the end
  }

  void OnDone(const grpc::Status& status) override {
    const std::lock_guard lock(mutex_);
    reason_ = reason_of(status);
    if (id_ && tell_ended_ != nullptr) {
      tell_ended_(user_, reason_.c_str());
    }
    is_done_ = true;
    changed_.notify_all();
  }

  std::mutex mutex_; // guards the next, and all from `answer_` on
  decltype(weir_hold_order::ended) tell_ended_;
  const decltype(weir_hold_order::is_stopped) is_stopped_;
  void* const user_;
  const v1::HoldRingRequest request_;
  grpc::ClientContext context_;
  const std::shared_ptr<Connection> connection_;
  std::unique_ptr<v1::Switch::Stub> stub_;
  v1::HeldRing answer_;
  std::condition_variable changed_;
  std::optional<std::uint32_t> id_; // there is a ring, or was
  bool is_done_ = false;
  std::string reason_; // why it is done
};

} // namespace

struct weir_hold {
  explicit weir_hold(const weir_hold_order& order) : stream(order) {}

  Stream stream;
};

namespace {

weir_hold* hold(const weir_hold_order* order, std::uint32_t* id, char* why, std::size_t why_bytes) {
  try {
    auto made = std::make_unique<weir_hold>(*order);
    *id = made->stream.wait_for_ring(std::chrono::milliseconds(order->timeout_ms));
    return made.release();
  } catch (const std::exception& error) {
    *fmt::format_to_n(why, why_bytes - 1, "{}", error.what()).out = '\0';
    return nullptr;
  }
}

void release(weir_hold* hold) {
  delete hold;
}

} // namespace

const weir_switch_module* weir_switch_module_of() {
  static constexpr weir_switch_module module{WEIR_SWITCH_MODULE_VERSION, hold, release};
  return &module;
}
