// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/transport/nic_connection.hpp"
#include "host/transport/verbs_completions.hpp"
#include "host/transport/verbs_nic.hpp"
#include "host/transport/verbs_objects.hpp"
#include "host/transport/verbs_port.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace weir::host {

class VerbsConnection : public NicConnection {
 public:
  /// As Nic::open_connection.
  VerbsConnection(const NicConnectionPlan& plan, std::shared_ptr<VerbsNic> nic,
                  std::uint8_t gid_index);

  wire::IpAddress ip() const override { return port_.gid; }

  std::uint32_t queue_pair() const override { return queue_pair_->qp_num; }

  std::uint32_t exposed_key() const override { return exposed_->rkey; }

  std::uint32_t longest_message() const override { return port_.longest_message; }

  std::optional<std::uint32_t> key_of(std::span<const std::uint8_t> bytes) const override;
  void connect(const NicPeer& peer) override;
  void post(const endpoint::SendRequest& request, std::uint32_t key) override;
  void post_receive() override;
  std::span<const NicCompletion> poll() override;
  void close() override;

  int descriptor() const override { return completions_.descriptor(); }

  bool arm() override { return completions_.arm(); }

 private:
  void refuse_too_many_reads() const;

  const NicConnectionPlan plan_;
  const std::shared_ptr<VerbsNic> nic_;
  const VerbsPort port_;
  VerbsCompletions completions_;
  verbs::MemoryRegion exposed_;
  verbs::MemoryRegion staging_;
  verbs::QueuePair queue_pair_;
  std::uint32_t inline_bytes_ = 0;
  std::array<NicCompletion, VerbsCompletions::kBatch> done_;
};

} // namespace weir::host
