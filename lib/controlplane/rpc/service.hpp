// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rpc/backend.hpp"
#include "rpc/caller_shares.hpp"
#include "rpc/fabric_rings.hpp"
#include "rpc/held_regions.hpp"
#include "rpc/held_rings.hpp"

#include <grpcpp/support/status.h>
#include <weir/v1/switch.grpc.pb.h>

namespace weir::rpc {

/// The status of a call in which the current exception was thrown.
grpc::Status status_of_exception();

/// weir.v1.Switch. It holds no thread while a watcher waits.
class Service : public v1::Switch::CallbackService {
 public:
  /// `backend` outlives it.
  explicit Service(Backend& backend) : backend_(backend) {}

  grpc::ServerUnaryReactor* Execute(grpc::CallbackServerContext* context,
                                    const v1::ExecuteRequest* request,
                                    v1::ExecuteResponse* response) override;
  grpc::ServerUnaryReactor* Complete(grpc::CallbackServerContext* context,
                                     const v1::CompleteRequest* request,
                                     v1::CompleteResponse* response) override;
  grpc::ServerUnaryReactor* ListRings(grpc::CallbackServerContext* context,
                                      const v1::ListRingsRequest* request,
                                      v1::ListRingsResponse* response) override;
  grpc::ServerUnaryReactor* AddRing(grpc::CallbackServerContext* context,
                                    const v1::AddRingRequest* request,
                                    v1::AddRingResponse* response) override;
  grpc::ServerUnaryReactor* RemoveRing(grpc::CallbackServerContext* context,
                                       const v1::RemoveRingRequest* request,
                                       v1::RemoveRingResponse* response) override;
  grpc::ServerUnaryReactor* DrainRing(grpc::CallbackServerContext* context,
                                      const v1::DrainRingRequest* request,
                                      v1::DrainRingResponse* response) override;
  grpc::ServerUnaryReactor* LoadOperator(grpc::CallbackServerContext* context,
                                         const v1::LoadOperatorRequest* request,
                                         v1::Operator* response) override;
  grpc::ServerUnaryReactor* ListOperators(grpc::CallbackServerContext* context,
                                          const v1::ListOperatorsRequest* request,
                                          v1::ListOperatorsResponse* response) override;
  grpc::ServerUnaryReactor* UnloadOperator(grpc::CallbackServerContext* context,
                                           const v1::UnloadOperatorRequest* request,
                                           v1::UnloadOperatorResponse* response) override;
  grpc::ServerUnaryReactor* TestOperator(grpc::CallbackServerContext* context,
                                         const v1::TestOperatorRequest* request,
                                         v1::TestOperatorResponse* response) override;
  HeldRings::Stream* HoldRing(grpc::CallbackServerContext* context,
                              const v1::HoldRingRequest* request) override;
  HeldRegions::Stream* HoldRegion(grpc::CallbackServerContext* context,
                                  const v1::HoldRegionRequest* request) override;
  grpc::ServerWriteReactor<v1::Statistics>*
  WatchStatistics(grpc::CallbackServerContext* context,
                  const v1::WatchStatisticsRequest* request) override;
  grpc::ServerUnaryReactor* ClaimFabric(grpc::CallbackServerContext* context,
                                        const v1::ClaimFabricRequest* request,
                                        v1::ClaimFabricResponse* response) override;
  grpc::ServerUnaryReactor* ApplyRings(grpc::CallbackServerContext* context,
                                       const v1::ApplyRingsRequest* request,
                                       v1::FabricOrderResponse* response) override;
  grpc::ServerUnaryReactor* RemoveRings(grpc::CallbackServerContext* context,
                                        const v1::RemoveRingsRequest* request,
                                        v1::FabricOrderResponse* response) override;
  grpc::ServerWriteReactor<v1::SwitchSeen>*
  WatchSwitch(grpc::CallbackServerContext* context, const v1::WatchSwitchRequest* request) override;

  HeldRings& held_rings() { return held_rings_; }

  HeldRegions& held_regions() { return held_regions_; }

  FabricRings& fabric_rings() { return fabric_rings_; }

 private:
  /// Does `work(caller, backend)` with what the caller may do of all, and counts so many requests.
  template <typename Work>
  void as_caller(const grpc::CallbackServerContext& context, int requests, Work&& work);
  /// Does `work(backend)` the same way, and ends the call with what it throws. What it writes into
  /// `response` counts as the caller's until he has read it.
  template <typename Response, typename Work>
  grpc::ServerUnaryReactor* answered(grpc::CallbackServerContext* context, Response& response,
                                     Work&& work);

  /// A call that holds something of the switch, which `hold(backend, place)` makes.
  template <typename Message, typename Hold>
  grpc::ServerWriteReactor<Message>* held(grpc::CallbackServerContext* context, Hold&& hold);

  /// Does `work()` for a manager or an operator, and ends the call with what it throws.
  template <typename Work>
  grpc::ServerUnaryReactor* managed(grpc::CallbackServerContext* context, Work&& work);

  Backend& backend_;
  CallerShares shares_;
  HeldRings held_rings_{backend_};
  HeldRegions held_regions_{backend_};
  FabricRings fabric_rings_{backend_};
};

} // namespace weir::rpc
