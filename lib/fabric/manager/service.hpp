// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gate/peer.hpp"
#include "jobs/loop.hpp"
#include "manager/config.hpp"
#include "manager/mailbox.hpp"
#include "net/request_shares.hpp"
#include "store/boot_time.hpp"

#include <cstdint>
#include <functional>
#include <grpcpp/support/server_callback.h>
#include <map>
#include <mutex>
#include <optional>
#include <weir/v1/fabric.grpc.pb.h>

namespace weir::manager {

/// Whom a call lets in.
enum class Door : std::uint8_t {
  users,   // operators and tenants
  anybody, // the loop looks at the name, or at a token
};

/// weir.v1.Fabric. Calls come by gRPC's threads; what they ask is done by the thread that has the
/// mailbox, to which alone the loop belongs.
class Service : public v1::Fabric::CallbackService {
 public:
  /// Of a name, or an address without one. Unix sockets have no limit.
  static constexpr int kRequestsPerSecond = 100;

  /// By the mailbox's thread.
  struct Lead {
    std::function<jobs::Loop*()> loop;      // while this manager leads
    std::function<std::string()> who_leads; // else: a sentence
  };

  /// All outlive it.
  Service(const Config& config, Mailbox& mailbox, Lead lead)
      : config_(config), mailbox_(mailbox), lead_(std::move(lead)) {}

  grpc::ServerWriteReactor<v1::JobEvent>* HoldJob(grpc::CallbackServerContext* context,
                                                  const v1::HoldJobRequest* request) override;
  grpc::ServerUnaryReactor* EndJob(grpc::CallbackServerContext* context,
                                   const v1::EndJobRequest* request,
                                   v1::EndJobResponse* response) override;
  grpc::ServerUnaryReactor* PlanJob(grpc::CallbackServerContext* context,
                                    const v1::PlanJobRequest* request,
                                    v1::PlanJobResponse* response) override;
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context,
                                     const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override;
  grpc::ServerUnaryReactor* GetFabric(grpc::CallbackServerContext* context,
                                      const v1::GetFabricRequest* request,
                                      v1::FabricPicture* response) override;
  grpc::ServerUnaryReactor* Explain(grpc::CallbackServerContext* context,
                                    const v1::ExplainRequest* request,
                                    v1::ExplainResponse* response) override;
  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context,
                                  const v1::DrainRequest* request,
                                  v1::DrainResponse* response) override;
  grpc::ServerUnaryReactor* Undrain(grpc::CallbackServerContext* context,
                                    const v1::UndrainRequest* request,
                                    v1::UndrainResponse* response) override;
  grpc::ServerUnaryReactor* Claim(grpc::CallbackServerContext* context,
                                  const v1::ClaimRequest* request,
                                  v1::ClaimResponse* response) override;
  grpc::ServerUnaryReactor* Adopt(grpc::CallbackServerContext* context,
                                  const v1::AdoptRequest* request,
                                  v1::ClaimResponse* response) override;

  grpc::ServerUnaryReactor* GrantAllocation(grpc::CallbackServerContext* context,
                                            const v1::GrantAllocationRequest* request,
                                            v1::GrantAllocationResponse* response) override;
  grpc::ServerUnaryReactor* EndAllocation(grpc::CallbackServerContext* context,
                                          const v1::EndAllocationRequest* request,
                                          v1::EndAllocationResponse* response) override;
  grpc::ServerUnaryReactor* IssueToken(grpc::CallbackServerContext* context,
                                       const v1::IssueTokenRequest* request,
                                       v1::IssueTokenResponse* response) override;
  grpc::ServerUnaryReactor* ListAllocations(grpc::CallbackServerContext* context,
                                            const v1::ListAllocationsRequest* request,
                                            v1::ListAllocationsResponse* response) override;

  // By the mailbox's thread: to a call HoldJob, if it is still there.
  void tell(jobs::CallId call, const v1::JobEvent& event);
  void end(jobs::CallId call, const jobs::Outcome& outcome);
  /// Ends all, before the server stops.
  void end_all(const jobs::Outcome& outcome);

 private:
  class Holder;
  struct Asker;

  Asker asker_of(const gate::Peer& peer, Door door) const;
  /// Has the mailbox's thread do it. Nothing: it will; else why not.
  std::optional<jobs::Outcome> not_taken(const gate::Peer& peer, Mailbox::Work work);
  template <typename Work>
  grpc::ServerUnaryReactor* answered(grpc::CallbackServerContext* context, Work work,
                                     Door door = Door::users);
  void refuse(jobs::CallId call, const jobs::Outcome& outcome);
  void forget(jobs::CallId call);
  void tell_loop_of_end(jobs::CallId call);
  jobs::Outcome no_leader() const;

  const Config& config_;
  Mailbox& mailbox_;
  const Lead lead_;
  net::RequestShares rates_{kRequestsPerSecond, kRequestsPerSecond}; // each has all
  std::mutex mutex_;                                                 // guards all below
  std::map<jobs::CallId, Holder*> holders_;
  jobs::CallId last_call_ = 0;
};

} // namespace weir::manager
