// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/verbs_connection.hpp"

#include "host/transport/verbs_queue_pair.hpp"

#include <fmt/format.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <utility>

namespace weir::host {
namespace {

using endpoint::CompletionKind;
using endpoint::SendKind;
using endpoint::Status;

constexpr std::uint8_t kShortestRnrTimer = 1; // 10 µs: receives come back by a thread of ours
constexpr std::uint32_t kInlineWrite = 64;    // bytes: of a hello, and of small writes
constexpr int kPeersAccess = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

enum WorkId : std::uint64_t { kSendQueue, kReceiveQueue };

Status meaning_of(ibv_wc_status status) {
  switch (status) {
  case IBV_WC_SUCCESS:
    return Status::success;
  case IBV_WC_RETRY_EXC_ERR:
    return Status::retry_exceeded;
  case IBV_WC_RNR_RETRY_EXC_ERR:
    return Status::rnr_retry_exceeded;
  case IBV_WC_REM_ACCESS_ERR:
    return Status::remote_access;
  case IBV_WC_REM_INV_REQ_ERR:
    return Status::remote_invalid_request;
  case IBV_WC_REM_OP_ERR:
    return Status::remote_operational;
  case IBV_WC_BAD_RESP_ERR:
    return Status::bad_response;
  case IBV_WC_LOC_LEN_ERR:
    return Status::local_length;
  case IBV_WC_LOC_PROT_ERR:
    return Status::local_protection;
  case IBV_WC_WR_FLUSH_ERR:
    return Status::flushed;
  default:
    return Status::local_invalid_request;
  }
}

ibv_wr_opcode opcode_of(SendKind kind) {
  if (kind == SendKind::read) {
    return IBV_WR_RDMA_READ;
  }
  return kind == SendKind::write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM;
}

/// Of a completion that is no success only the status and the number are set.
NicCompletion completion_of(const ibv_wc& done) {
  const bool is_receive = done.wr_id == kReceiveQueue;
  NicCompletion completion{.kind = is_receive ? CompletionKind::receive_write_immediate
                                              : CompletionKind::write,
                           .status = meaning_of(done.status)};
  if (completion.status != Status::success) {
    completion.device_said = said_by_device(done);
  } else if (is_receive) {
    completion.immediate = ntohl(done.imm_data);
  }
  return completion;
}

bool is_within(std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> memory) {
  return bytes.data() >= memory.data() &&
         bytes.data() + bytes.size() <= memory.data() + memory.size();
}

} // namespace

VerbsConnection::VerbsConnection(const NicConnectionPlan& plan, std::shared_ptr<VerbsNic> nic,
                                 std::uint8_t gid_index)
    : plan_(plan), nic_(std::move(nic)), port_(find_port(*nic_, gid_index, plan.path_mtu)),
      completions_(*nic_),
      exposed_(nic_->make_region(plan.exposed, IBV_ACCESS_LOCAL_WRITE | kPeersAccess)),
      staging_(nic_->make_region(plan.staging, IBV_ACCESS_LOCAL_WRITE)) {
  refuse_too_many_reads();
  completions_.renew(std::size_t{plan.send_depth} + plan.receive_depth);
  MadeQueuePair made = make_queue_pair(*nic_, {.completions = &completions_.queue(),
                                               .send_depth = plan.send_depth,
                                               .receive_depth = plan.receive_depth,
                                               .peers_access = kPeersAccess,
                                               .inline_bytes = kInlineWrite});
  queue_pair_ = std::move(made.queue_pair);
  inline_bytes_ = made.inline_bytes;
}

void VerbsConnection::refuse_too_many_reads() const {
  ibv_device_attr device{};
  if (ibv_query_device(&nic_->context(), &device) != 0) {
    nic_->fail("it cannot be queried", errno);
  }
  const int most = std::min(device.max_qp_rd_atom, device.max_qp_init_rd_atom);
  if (std::cmp_less(most, plan_.reads)) {
    nic_->fail(fmt::format("a queue pair has up to {} READs unanswered; {} are asked for", most,
                           plan_.reads),
               EINVAL);
  }
}

std::optional<std::uint32_t> VerbsConnection::key_of(std::span<const std::uint8_t> bytes) const {
  if (is_within(bytes, plan_.exposed)) {
    return exposed_->lkey;
  }
  return is_within(bytes, plan_.staging) ? staging_->lkey : nic_->user_ranges().find(bytes);
}

void VerbsConnection::connect(const NicPeer& peer) {
  bring_up(*nic_, port_, *queue_pair_,
           {.ip = peer.ip,
            .number = peer.queue_pair,
            .psn = peer.first_psn,
            .own_psn = peer.own_psn,
            .reads = static_cast<std::uint8_t>(plan_.reads),
            .rnr_timer = kShortestRnrTimer,
            .ack_timeout = peer.ack_timeout,
            .retry_count = peer.retry_count});
}

void VerbsConnection::post(const endpoint::SendRequest& request, std::uint32_t key) {
  const bool is_read = request.kind == SendKind::read;
  const std::span<const std::uint8_t> bytes = is_read ? request.target : request.data;
  ibv_sge piece = piece_of(bytes, key);
  ibv_send_wr work{};
  work.wr_id = kSendQueue;
  work.sg_list = &piece;
  work.num_sge = bytes.empty() ? 0 : 1;
  work.opcode = opcode_of(request.kind);
  work.send_flags = IBV_SEND_SIGNALED;
  if (request.fence == endpoint::Fence::after_reads) {
    work.send_flags |= IBV_SEND_FENCE;
  }
  if (!is_read && !bytes.empty() && bytes.size() <= inline_bytes_) {
    work.send_flags |= IBV_SEND_INLINE;
  }
  work.imm_data = htonl(request.immediate);
  work.wr.rdma.remote_addr = request.remote_address;
  work.wr.rdma.rkey = request.remote_key;
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(queue_pair_.get(), &work, &bad); error != 0) {
    nic_->fail("posting a write or read", error);
  }
}

void VerbsConnection::post_receive() {
  ibv_recv_wr work{};
  work.wr_id = kReceiveQueue;
  ibv_recv_wr* bad = nullptr;
  if (const int error = ibv_post_recv(queue_pair_.get(), &work, &bad); error != 0) {
    nic_->fail("posting a receive", error);
  }
}

std::span<const NicCompletion> VerbsConnection::poll() {
  VerbsCompletions::Batch batch;
  const std::span<const ibv_wc> taken = completions_.take(batch);
  if (!taken.empty()) {
    completions_.restart();
  }
  std::ranges::transform(taken, done_.begin(), completion_of);
  return std::span(done_).first(taken.size());
}

/// A queue pair's end waits for the device; then nothing refers to the memories.
void VerbsConnection::close() {
  end_requests(queue_pair_.get());
  queue_pair_.reset();
  exposed_.reset();
  staging_.reset();
}

} // namespace weir::host
