// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/verbs_transport.hpp"

#include "host/bootstrap/control_note.hpp"
#include "host/bootstrap/error.hpp"
#include "host/transport/lane_numbers.hpp"
#include "wire/address.hpp"

#include <fmt/format.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <random>
#include <sched.h>
#include <span>
#include <thread>
#include <vector>

namespace weir::host {
namespace {

constexpr std::uint8_t kPort = 1;
constexpr std::uint8_t kHopLimit = 64;
constexpr std::uint8_t kRnrTimer = 12; // 0.64 ms
constexpr std::uint8_t kRnrRetry = 7;  // without limit: the engine's deadline ends a job
// Of the neighbour's MAC address; the kernel waits a second for each.
constexpr unsigned kResolutions = 10;

/// What neighbours must know about a lane.
struct LaneAddress {
  std::array<std::uint8_t, 16> gid;
  LaneNumbers numbers;
};

/// An ibverbs object and the call that destroys it.
template <auto Destroy>
struct Destroyer {
  template <typename Object>
  void operator()(Object* object) const {
    Destroy(object);
  }
};

using Context = std::unique_ptr<ibv_context, Destroyer<ibv_close_device>>;
using ProtectionDomain = std::unique_ptr<ibv_pd, Destroyer<ibv_dealloc_pd>>;
using CompletionChannel = std::unique_ptr<ibv_comp_channel, Destroyer<ibv_destroy_comp_channel>>;
using CompletionQueue = std::unique_ptr<ibv_cq, Destroyer<ibv_destroy_cq>>;
using QueuePair = std::unique_ptr<ibv_qp, Destroyer<ibv_destroy_qp>>;
using MemoryRegion = std::unique_ptr<ibv_mr, Destroyer<ibv_dereg_mr>>;

ibv_mtu mtu_of(std::uint32_t bytes) {
  switch (bytes) {
  case 256:
    return IBV_MTU_256;
  case 512:
    return IBV_MTU_512;
  case 1024:
    return IBV_MTU_1024;
  case 2048:
    return IBV_MTU_2048;
  default:
    return IBV_MTU_4096;
  }
}

class VerbsTransport : public Transport {
 public:
  VerbsTransport(const TransportPlan& plan, const VerbsOptions& options);

  std::vector<std::uint8_t> address() const override;

  std::uint32_t queue_pair(std::size_t lane) const override {
    return lanes_[lane].outgoing->qp_num;
  }

  void renew() override;
  void connect(std::span<const std::uint8_t> predecessor,
               std::span<const std::uint8_t> successor) override;
  bool post(std::size_t lane, const OutgoingMessage& message) override;
  bool poll(TransportListener& listener) override;

  int descriptor() const override { return events_->fd; }

  bool arm() override;

  Deadline due() const override { return Deadline::max(); } // timers are the NIC's

  TransportStatistics statistics() const override { return {}; } // the NIC keeps them

  std::string describe(std::size_t) const override { return {}; }

 private:
  /// This rank's two ends of one ring. A member is declared after those that it uses.
  struct Lane {
    std::vector<std::uint8_t> inbox; // slots
    // Slots: copies of outgoing messages. So user memory needs no registration and may change while
    // a message is repeated.
    std::vector<std::uint8_t> outbox;
    MemoryRegion inbox_region;
    MemoryRegion outbox_region;
    QueuePair outgoing; // to the successor
    QueuePair incoming;
    std::uint32_t outgoing_psn = 0;
    std::uint32_t incoming_psn = 0;
    std::uint64_t posted = 0;
    std::uint64_t completed = 0;
    std::uint32_t successor_key = 0;
    std::uint64_t successor_base = 0;
  };

  enum class Direction : std::uint64_t { outgoing = 0, incoming = 1 };

  static std::uint64_t work_id(std::size_t lane, Direction direction) {
    return std::uint64_t{lane} << 1 | static_cast<std::uint64_t>(direction);
  }

  [[noreturn]] void fail(std::string_view what, int error) const;

  template <typename Object>
  Object* made(Object* object, std::string_view what) const {
    if (object == nullptr) {
      fail(what, errno);
    }
    return object;
  }

  void open_device();
  void check_port();
  void open_event_channel();
  bool take_events();
  MemoryRegion register_memory(std::vector<std::uint8_t>& memory, int access) const;
  void make_inbox_and_outbox(Lane& lane);
  QueuePair make_queue_pair() const;
  void initialize(ibv_qp& queue_pair) const;
  void bring_up(ibv_qp& queue_pair, const std::array<std::uint8_t, 16>& remote_gid,
                std::uint32_t remote_number, std::uint32_t remote_psn, std::uint32_t own_psn) const;
  void post_receive(std::size_t lane);
  void take(const ibv_wc& completion, TransportListener& listener);
  [[noreturn]] void fail_connection(const ibv_wc& completion, Direction direction) const;

  const TransportPlan plan_;
  const VerbsOptions options_;
  Context context_;
  ProtectionDomain domain_;
  CompletionChannel events_;
  CompletionQueue completions_;
  ibv_gid gid_{};
  std::vector<Lane> lanes_;
  Spins spins_;
  bool is_armed_ = false; // the next completion makes an event, if there was none yet
};

VerbsTransport::VerbsTransport(const TransportPlan& plan, const VerbsOptions& options)
    : plan_(plan), options_(options) {
  open_device();
  check_port();
  domain_.reset(made(ibv_alloc_pd(context_.get()), "no protection domain"));
  open_event_channel();
  lanes_.resize(plan.lanes);
  for (Lane& lane : lanes_) {
    make_inbox_and_outbox(lane);
  }
  renew();
}

/// Queue pairs go first: their completion queue must outlive them.
void VerbsTransport::renew() {
  for (Lane& lane : lanes_) {
    lane.outgoing.reset();
    lane.incoming.reset();
  }
  const std::size_t depth = 2 * plan_.lanes * plan_.slots;
  take_events(); // the queue's end waits for them
  completions_.reset();
  is_armed_ = false;
  completions_.reset(
      made(ibv_create_cq(context_.get(), static_cast<int>(depth), nullptr, events_.get(), 0),
           fmt::format("no completion queue of {}", depth)));
  std::random_device entropy;
  for (Lane& lane : lanes_) {
    lane.outgoing = make_queue_pair();
    lane.incoming = make_queue_pair();
    lane.outgoing_psn = entropy() & 0xffffff;
    lane.incoming_psn = entropy() & 0xffffff;
    lane.posted = lane.completed = 0;
  }
}

void VerbsTransport::fail(std::string_view what, int error) const {
  throw Error(ErrorCode::transport_failure, std::nullopt,
              fmt::format("device {}: {}: {}", options_.device, what, std::strerror(error)));
}

void VerbsTransport::open_device() {
  int count = 0;
  const std::unique_ptr<ibv_device*, Destroyer<ibv_free_device_list>> list(
      ibv_get_device_list(&count));
  const std::span<ibv_device*> devices(list.get(), static_cast<std::size_t>(count));
  std::vector<std::string> names;
  for (ibv_device* device : devices) {
    names.emplace_back(ibv_get_device_name(device));
    if (names.back() == options_.device) {
      // ibv_fork_init is not called: from Linux 5.12 on, a fork copies pages that a device writes.
      // On older kernels it would take whole pages away from children, and the pages at the ends of
      // our slots also hold other memory.
      context_.reset(made(ibv_open_device(device), "cannot be opened"));
      return;
    }
  }
  fail(fmt::format("not among the RDMA devices here ({})", fmt::join(names, ", ")), ENODEV);
}

void VerbsTransport::check_port() {
  ibv_port_attr port{};
  if (ibv_query_port(context_.get(), kPort, &port) != 0) {
    fail("port 1 cannot be queried", errno);
  }
  if (port.state != IBV_PORT_ACTIVE) {
    fail(fmt::format("port 1 is {}, not active", ibv_port_state_str(port.state)), ENETDOWN);
  }
  if (port.active_mtu < mtu_of(plan_.path_mtu)) {
    fail(fmt::format("port 1 carries a path MTU of {}; {} is asked for", 128 << port.active_mtu,
                     plan_.path_mtu),
         EMSGSIZE);
  }
  if (ibv_query_gid(context_.get(), kPort, options_.gid_index, &gid_) != 0) {
    fail(fmt::format("no GID {}", options_.gid_index), errno);
  }
  const ibv_gid none{};
  if (std::memcmp(gid_.raw, none.raw, sizeof(gid_.raw)) == 0) {
    fail(fmt::format("GID {} is empty (show_gids lists them)", options_.gid_index), EADDRNOTAVAIL);
  }
}

MemoryRegion VerbsTransport::register_memory(std::vector<std::uint8_t>& memory, int access) const {
  return MemoryRegion(made(ibv_reg_mr(domain_.get(), memory.data(), memory.size(), access),
                           fmt::format("{} bytes cannot be registered", memory.size())));
}

void VerbsTransport::make_inbox_and_outbox(Lane& lane) {
  const std::size_t bytes = std::size_t{plan_.slots} * plan_.slot_bytes;
  lane.inbox.resize(bytes);
  lane.outbox.resize(bytes);
  lane.inbox_region = register_memory(lane.inbox, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  lane.outbox_region = register_memory(lane.outbox, IBV_ACCESS_LOCAL_WRITE);
}

QueuePair VerbsTransport::make_queue_pair() const {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = completions_.get();
  attributes.recv_cq = completions_.get();
  attributes.qp_type = IBV_QPT_RC;
  attributes.sq_sig_all = 1;
  attributes.cap = {.max_send_wr = plan_.slots,
                    .max_recv_wr = plan_.slots,
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = 0};
  QueuePair queue_pair(made(ibv_create_qp(domain_.get(), &attributes),
                            fmt::format("no queue pair of depth {}", plan_.slots)));
  initialize(*queue_pair);
  return queue_pair;
}

/// RESET to INIT (IBTA §10.3.1). Receives are posted later: rxe rejects them before.
void VerbsTransport::initialize(ibv_qp& queue_pair) const {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = kPort;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  const int error =
      ibv_modify_qp(&queue_pair, &attributes,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error != 0) {
    fail("queue pair to INIT", error);
  }
}

/// INIT to RTR to RTS.
void VerbsTransport::bring_up(ibv_qp& queue_pair, const std::array<std::uint8_t, 16>& remote_gid,
                              std::uint32_t remote_number, std::uint32_t remote_psn,
                              std::uint32_t own_psn) const {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = mtu_of(plan_.path_mtu);
  attributes.dest_qp_num = remote_number;
  attributes.rq_psn = remote_psn;
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = kRnrTimer;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.port_num = kPort;
  attributes.ah_attr.grh.sgid_index = options_.gid_index;
  attributes.ah_attr.grh.hop_limit = kHopLimit;
  std::memcpy(attributes.ah_attr.grh.dgid.raw, remote_gid.data(), remote_gid.size());
  int error = ETIMEDOUT;
  for (unsigned attempt = 0; attempt < kResolutions && error == ETIMEDOUT; ++attempt) {
    error = ibv_modify_qp(&queue_pair, &attributes,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  }
  if (error != 0) {
    fail(fmt::format("queue pair to RTR, towards {}", wire::to_string(wire::IpAddress{remote_gid})),
         error);
  }
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = plan_.ack_timeout_exponent();
  attributes.retry_cnt = plan_.retry_count;
  attributes.rnr_retry = kRnrRetry;
  attributes.sq_psn = own_psn;
  attributes.max_rd_atomic = 1;
  error = ibv_modify_qp(&queue_pair, &attributes,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  if (error != 0) {
    fail("queue pair to RTS", error);
  }
}

std::vector<std::uint8_t> VerbsTransport::address() const {
  std::vector<std::uint8_t> blob;
  for (const Lane& lane : lanes_) {
    LaneAddress address{};
    std::memcpy(address.gid.data(), gid_.raw, address.gid.size());
    address.numbers.outgoing_number.set(lane.outgoing->qp_num);
    address.numbers.outgoing_psn.set(lane.outgoing_psn);
    address.numbers.incoming_number.set(lane.incoming->qp_num);
    address.numbers.incoming_psn.set(lane.incoming_psn);
    address.numbers.inbox_key.set(lane.inbox_region->rkey);
    address.numbers.inbox_base.set(reinterpret_cast<std::uint64_t>(lane.inbox.data()));
    const auto bytes = bytes_of(address);
    blob.insert(blob.end(), bytes.begin(), bytes.end());
  }
  return blob;
}

void VerbsTransport::connect(std::span<const std::uint8_t> predecessor,
                             std::span<const std::uint8_t> successor) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    const LaneAddress& behind =
        lane_address<LaneAddress>(predecessor, i, lanes_.size(), plan_.predecessor());
    const LaneAddress& ahead =
        lane_address<LaneAddress>(successor, i, lanes_.size(), plan_.successor());
    for (std::uint32_t slot = 0; slot < plan_.slots; ++slot) {
      post_receive(i);
    }
    bring_up(*lane.incoming, behind.gid, behind.numbers.outgoing_number.get(),
             behind.numbers.outgoing_psn.get(), lane.incoming_psn);
    bring_up(*lane.outgoing, ahead.gid, ahead.numbers.incoming_number.get(),
             ahead.numbers.incoming_psn.get(), lane.outgoing_psn);
    lane.successor_key = ahead.numbers.inbox_key.get();
    lane.successor_base = ahead.numbers.inbox_base.get();
  }
}

void VerbsTransport::post_receive(std::size_t lane) {
  ibv_recv_wr request{}; // without a buffer: it takes the immediate alone
  request.wr_id = work_id(lane, Direction::incoming);
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_recv(lanes_[lane].incoming.get(), &request, &bad);
  if (error != 0) {
    fail("posting a receive", error);
  }
}

bool VerbsTransport::post(std::size_t index, const OutgoingMessage& message) {
  Lane& lane = lanes_[index];
  if (lane.posted - lane.completed == plan_.slots) {
    return false;
  }
  const std::uint64_t offset = (message.number % plan_.slots) * std::uint64_t{plan_.slot_bytes};
  std::uint8_t* const at = lane.outbox.data() + offset;
  std::copy(message.header.begin(), message.header.end(), at);
  std::copy(message.data.begin(), message.data.end(), at + message.header.size());
  ibv_sge piece{.addr = reinterpret_cast<std::uint64_t>(at),
                .length = static_cast<std::uint32_t>(message.header.size() + message.data.size()),
                .lkey = lane.outbox_region->lkey};
  ibv_send_wr request{};
  request.wr_id = work_id(index, Direction::outgoing);
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.send_flags = IBV_SEND_SIGNALED;
  request.imm_data = htonl(static_cast<std::uint32_t>(message.number));
  request.wr.rdma.remote_addr = lane.successor_base + offset;
  request.wr.rdma.rkey = lane.successor_key;
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(lane.outgoing.get(), &request, &bad);
  if (error != 0) {
    fail(fmt::format("posting message {}", message.number), error);
  }
  ++lane.posted;
  return true;
}

bool VerbsTransport::poll(TransportListener& listener) {
  std::array<ibv_wc, 16> batch;
  const int count = ibv_poll_cq(completions_.get(), static_cast<int>(batch.size()), batch.data());
  if (count < 0) {
    fail("the completion queue cannot be polled", -count);
  }
  for (const ibv_wc& completion : std::span(batch).first(static_cast<std::size_t>(count))) {
    take(completion, listener);
  }
  if (count != 0) {
    spins_.restart();
    is_armed_ = false;
  }
  return count != 0;
}

void VerbsTransport::take(const ibv_wc& completion, TransportListener& listener) {
  const std::size_t index = completion.wr_id >> 1;
  const auto direction = static_cast<Direction>(completion.wr_id & 1);
  if (completion.status != IBV_WC_SUCCESS) {
    fail_connection(completion, direction);
  }
  Lane& lane = lanes_[index];
  if (direction == Direction::outgoing) {
    ++lane.completed;
    listener.completed(index);
    return;
  }
  const std::uint32_t immediate = ntohl(completion.imm_data);
  const std::size_t slot = immediate % plan_.slots;
  const std::size_t bytes = std::min(completion.byte_len, plan_.slot_bytes);
  listener.arrived(
      index, immediate,
      std::span<const std::uint8_t>(lane.inbox).subspan(slot * plan_.slot_bytes, bytes));
  post_receive(index);
}

void VerbsTransport::fail_connection(const ibv_wc& completion, Direction direction) const {
  const bool is_outgoing = direction == Direction::outgoing;
  const std::uint16_t neighbour = is_outgoing ? plan_.successor() : plan_.predecessor();
  const ErrorCode code = completion.status == IBV_WC_RETRY_EXC_ERR ? ErrorCode::retry_exceeded
                                                                   : ErrorCode::transport_failure;
  const std::string_view hint =
      code == ErrorCode::retry_exceeded
          ? ": the switch or the link is gone, or the switch was restarted and refuses our packets"
          : "";
  throw Error(code, neighbour,
              fmt::format("rank {}: the connection {} rank {} failed: {} (vendor code {:#x}){}",
                          plan_.rank, is_outgoing ? "to" : "from", neighbour,
                          ibv_wc_status_str(completion.status), completion.vendor_err, hint));
}

void VerbsTransport::open_event_channel() {
  events_.reset(made(ibv_create_comp_channel(context_.get()), "no completion channel"));
  if (fcntl(events_->fd, F_SETFL, O_NONBLOCK) != 0) {
    fail("completion channel", errno);
  }
}

/// A completion between the last poll and the arming makes no event, hence one more poll. An event
/// may come later than its completion was polled; it must not end every sleep from then on.
bool VerbsTransport::arm() {
  if (is_armed_) {
    is_armed_ = !take_events();
    return is_armed_;
  }
  if (spins_.spin()) {
    return false;
  }
  take_events();
  if (const int error = ibv_req_notify_cq(completions_.get(), 0); error != 0) {
    fail("the completion queue cannot be armed", error);
  }
  is_armed_ = true;
  return false;
}

/// True if there were any.
bool VerbsTransport::take_events() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  bool took = false;
  while (ibv_get_cq_event(events_.get(), &queue, &context) == 0) {
    ibv_ack_cq_events(queue, 1);
    took = true;
  }
  return took;
}

} // namespace

std::unique_ptr<Transport> open_verbs(const TransportPlan& plan, const VerbsOptions& options) {
  return std::make_unique<VerbsTransport>(plan, options);
}

} // namespace weir::host
