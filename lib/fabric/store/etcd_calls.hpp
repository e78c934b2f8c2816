// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <google/protobuf/message_lite.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h> // messages without descriptions too
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace weir::store {

/// Where etcd is.
struct EtcdAccess {
  std::vector<std::string> servers; // "http://ADDRESS:PORT", or "https://…" with the next, in PEM
  std::string certificate;
  std::string key;
  std::string authority;
};

/// Ends it when all that was begun with it is over.
void drain(grpc::CompletionQueue& queue);

/// Calls to the members of one etcd. One of them that does not answer is passed over. Any thread.
class EtcdCalls {
 public:
  using Message = google::protobuf::MessageLite;
  using Stub = grpc::TemplatedGenericStub<Message, Message>;

  /// A question gets so long, with all members that are tried; and each of them so long.
  static constexpr std::chrono::milliseconds kPatience{2000};
  static constexpr std::chrono::milliseconds kMemberPatience{600};

  explicit EtcdCalls(const EtcdAccess& access);

  /// The first answer of a member that has one. Its status is UNAVAILABLE or DEADLINE_EXCEEDED:
  /// nobody knows whether it was done, perhaps twice.
  grpc::Status ask(const std::string& method, const Message& request, Message& response,
                   std::chrono::milliseconds member_patience = kMemberPatience);
  /// The same, of the first message of a stream to which the request is the only one.
  grpc::Status ask_stream(const std::string& method, const Message& request, Message& response);

  /// The member that is asked first.
  std::size_t member() const;

  Stub& stub(std::size_t member) { return *stubs_[member]; }

  /// Ends all calls, and all later ones at once.
  void stop();

  /// Keeps a context where stop() finds it.
  class Entered {
   public:
    Entered(EtcdCalls& calls, grpc::ClientContext& context);
    ~Entered();
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;

   private:
    EtcdCalls& calls_;
    grpc::ClientContext& context_;
  };

 private:
  using Attempt = std::function<grpc::Status(Stub& stub, grpc::ClientContext& context)>;

  enum class Connection : std::uint8_t { there_already, waited_for };

  grpc::Status try_members(std::chrono::milliseconds member_patience, const Attempt& attempt);
  grpc::Status try_member(std::size_t member, std::chrono::milliseconds longest,
                          Connection connection, const Attempt& attempt);
  void pass_over(std::size_t member);
  bool is_stopped() const;

  std::vector<std::unique_ptr<Stub>> stubs_; // by member
  mutable std::mutex mutex_;                 // guards all below
  std::size_t member_ = 0;
  std::set<grpc::ClientContext*> under_way_;
  bool is_stopped_ = false;
};

} // namespace weir::store
