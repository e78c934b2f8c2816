// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/verbs_queue_pair.hpp"

#include "host/transport/inline_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace weir::host {
namespace {

constexpr std::uint8_t kHopLimit = 64;
constexpr std::uint8_t kRnrRetry = 7; // without limit: the caller's deadline ends a job
// Of the neighbour's MAC address; the kernel waits a second for each.
constexpr unsigned kResolutions = 10;

/// RESET to INIT (IBTA §10.3.1). Receives are posted later: rxe rejects them before.
void initialize(const VerbsNic& nic, ibv_qp& queue_pair, int peers_access) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = kVerbsPort;
  attributes.qp_access_flags = static_cast<unsigned>(peers_access);
  const int error =
      ibv_modify_qp(&queue_pair, &attributes,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error != 0) {
    nic.fail("queue pair to INIT", error);
  }
}

ibv_qp_attr ready_to_receive(const VerbsPort& port, const QueuePairPeer& peer) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = mtu_of(port.path_mtu);
  attributes.dest_qp_num = peer.number;
  attributes.rq_psn = peer.psn;
  attributes.max_dest_rd_atomic = peer.reads;
  attributes.min_rnr_timer = peer.rnr_timer;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.port_num = kVerbsPort;
  attributes.ah_attr.grh.sgid_index = port.gid_index;
  attributes.ah_attr.grh.hop_limit = kHopLimit;
  std::ranges::copy(peer.ip.bytes, attributes.ah_attr.grh.dgid.raw);
  return attributes;
}

ibv_qp_attr ready_to_send(const QueuePairPeer& peer) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = peer.ack_timeout;
  attributes.retry_cnt = peer.retry_count;
  attributes.rnr_retry = kRnrRetry;
  attributes.sq_psn = peer.own_psn;
  attributes.max_rd_atomic = peer.reads;
  return attributes;
}

} // namespace

/// Queue pairs of many devices send short messages faster when the CPU hands over the bytes with
/// the request. How many bytes that may be differs, and only a refusal tells.
MadeQueuePair make_queue_pair(const VerbsNic& nic, const QueuePairShape& shape) {
  MadeQueuePair made;
  const InlineTrial trial = try_inline(shape.inline_bytes, [&](std::uint32_t bytes) {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = shape.completions;
    attributes.recv_cq = shape.completions;
    attributes.qp_type = IBV_QPT_RC;
    attributes.sq_sig_all = 1;
    attributes.cap = {.max_send_wr = shape.send_depth,
                      .max_recv_wr = shape.receive_depth,
                      .max_send_sge = shape.pieces,
                      .max_recv_sge = shape.pieces,
                      .max_inline_data = bytes};
    errno = 0;
    made.queue_pair.reset(ibv_create_qp(&nic.domain(), &attributes));
    made.inline_bytes = std::min(bytes, attributes.cap.max_inline_data);
    const int error = errno != 0 ? errno : EINVAL; // a driver may not say why
    return made.queue_pair ? 0 : error;
  });
  if (!made.queue_pair) {
    nic.fail(fmt::format("no queue pair of depth {} with {} bytes inline", shape.send_depth,
                         trial.bytes),
             trial.error);
  }
  initialize(nic, *made.queue_pair, shape.peers_access);
  return made;
}

void bring_up(const VerbsNic& nic, const VerbsPort& port, ibv_qp& queue_pair,
              const QueuePairPeer& peer) {
  ibv_qp_attr attributes = ready_to_receive(port, peer);
  int error = ETIMEDOUT;
  for (unsigned attempt = 0; attempt < kResolutions && error == ETIMEDOUT; ++attempt) {
    error = ibv_modify_qp(&queue_pair, &attributes,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  }
  if (error != 0) {
    nic.fail(fmt::format("queue pair to RTR, towards {}", wire::to_string(peer.ip)), error);
  }
  attributes = ready_to_send(peer);
  error = ibv_modify_qp(&queue_pair, &attributes,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  if (error != 0) {
    nic.fail("queue pair to RTS", error);
  }
}

void end_requests(ibv_qp* queue_pair) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  if (queue_pair != nullptr) {
    ibv_modify_qp(queue_pair, &attributes, IBV_QP_STATE);
  }
}

ibv_sge piece_of(std::span<const std::uint8_t> bytes, std::uint32_t key) {
  return {.addr = reinterpret_cast<std::uint64_t>(bytes.data()),
          .length = static_cast<std::uint32_t>(bytes.size()),
          .lkey = key};
}

} // namespace weir::host
