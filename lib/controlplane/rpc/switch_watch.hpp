// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "rpc/fabric_rings.hpp"
#include "rpc/places.hpp"

#include <grpcpp/alarm.h>
#include <grpcpp/support/server_callback.h>
#include <mutex>
#include <optional>
#include <weir/v1/switch.pb.h>

namespace weir::rpc {

/// Tells a manager once a second what the switch has. Deletes itself when the call is done.
class SwitchWatch : public grpc::ServerWriteReactor<v1::SwitchSeen> {
 public:
  /// `rings` outlive it.
  SwitchWatch(FabricRings& rings, v1::WatchSwitchRequest request, Places::Place place);

  void OnWriteDone(bool is_written) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  void send();
  void wait();
  void wake(bool is_due);

  FabricRings& rings_;
  const v1::WatchSwitchRequest request_;
  const Places::Place place_;
  FabricRings::Labels labels_ = FabricRings::Labels::told; // once
  v1::SwitchSeen message_;                                 // being written
  std::mutex mutex_;
  bool is_cancelled_ = false;
  std::optional<grpc::Alarm> alarm_; // a new one for each wait: an old one's callback may still run
};

} // namespace weir::rpc
