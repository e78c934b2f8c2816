// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/verbs_transport.hpp"

#include "host/base/control_note.hpp"
#include "host/base/error.hpp"
#include "host/transport/channel_numbers.hpp"
#include "host/transport/verbs_completions.hpp"
#include "host/transport/verbs_port.hpp"
#include "host/transport/verbs_queue_pair.hpp"
#include "random/random_bytes.hpp"
#include "wire/address.hpp"
#include "wire/psn.hpp"

#include <fmt/format.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cassert>
#include <optional>
#include <sched.h>
#include <span>
#include <thread>
#include <vector>

namespace weir::host {
namespace {

using verbs::MemoryRegion;
using verbs::QueuePair;

constexpr std::uint8_t kRnrTimer = 12;       // 0.64 ms
constexpr std::uint32_t kPieces = 2;         // of a message: header and data
constexpr std::uint32_t kWantedInline = 256; // bytes of a short message, its header included
// A device ends its requests in microseconds; soft-RoCE in milliseconds.
constexpr auto kDrainLimit = std::chrono::seconds(1);
constexpr auto kDrainNap = std::chrono::microseconds(20);

/// What neighbours must know about a channel.
struct VerbsChannelAddress {
  std::array<std::uint8_t, 16> gid;
  ChannelNumbers numbers;
};

std::string_view name_of(ibv_qp_state state) {
  switch (state) {
  case IBV_QPS_RESET:
    return "RESET";
  case IBV_QPS_INIT:
    return "INIT";
  case IBV_QPS_RTR:
    return "RTR";
  case IBV_QPS_RTS:
    return "RTS";
  case IBV_QPS_SQD:
    return "SQD";
  case IBV_QPS_SQE:
    return "SQE";
  case IBV_QPS_ERR:
    return "ERR";
  default:
    return "unknown";
  }
}

/// Of the request or its memory, whatever the neighbour does (IBTA §10.10.2.2).
bool is_own_fault(ibv_wc_status status) {
  return status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_LOC_LEN_ERR ||
         status == IBV_WC_LOC_QP_OP_ERR;
}

class VerbsTransport : public Transport {
 public:
  VerbsTransport(const TransportPlan& plan, std::shared_ptr<VerbsNic> nic, std::uint8_t gid_index);

  std::vector<std::uint8_t> address() const override;

  std::uint32_t queue_pair(std::size_t channel) const override {
    return channels_[channel].outgoing->qp_num;
  }

  void renew(Delivery delivery) override;
  void connect(const Neighbour& predecessor, const Neighbour& successor) override;
  bool post(std::size_t channel, const OutgoingMessage& message) override;
  void close(std::size_t channel) override;
  void quiesce() override;
  bool poll(TransportListener& listener) override;

  int descriptor() const override { return completions_.descriptor(); }

  bool arm() override { return completions_.arm(); }

  Deadline due() const override { return Deadline::max(); } // timers are the NIC's

  TransportStatistics statistics() const override { return {}; } // the NIC keeps them

  bool has_link() const override;
  std::string describe(std::size_t channel) const override;

 private:
  using Pieces = std::array<ibv_sge, kPieces>;

  /// The places of a message that will come by SEND: its header's in the inbox, and its data's.
  struct Receive {
    std::span<std::uint8_t> data;
    Pieces pieces{};
  };

  /// This rank's two ends of one ring. A member is declared after those that it uses.
  struct Channel {
    std::vector<std::uint8_t> inbox; // slots
    // Slots: headers of outgoing messages, and copies of data that the device cannot read where
    // they are.
    std::vector<std::uint8_t> outbox;
    std::vector<Receive> receives; // by SEND; by number mod slots
    MemoryRegion inbox_region;
    MemoryRegion outbox_region;
    QueuePair outgoing; // to the successor
    QueuePair incoming;
    std::uint32_t outgoing_psn = 0;
    std::uint32_t incoming_psn = 0;
    std::uint32_t posted_psn = 0; // behind all that was posted
    std::uint64_t posted = 0;
    std::uint64_t completed = 0;
    std::uint64_t received = 0; // by SEND
    std::uint32_t successor_key = 0;
    std::uint64_t successor_base = 0;
    bool is_closed = false; // by close()
  };

  enum class Direction : std::uint64_t { outgoing = 0, incoming = 1 };

  static std::uint64_t work_id(std::size_t channel, Direction direction) {
    return std::uint64_t{channel} << 1 | static_cast<std::uint64_t>(direction);
  }

  void make_slots(Channel& channel);

  /// What the predecessor may do with our memory.
  int peers_access() const { return delivery_ == Delivery::by_write ? IBV_ACCESS_REMOTE_WRITE : 0; }

  QueuePair make_queue_pair();
  void bring_up_one(ibv_qp& queue_pair, const std::array<std::uint8_t, 16>& remote_gid,
                    std::uint32_t remote_number, std::uint32_t remote_psn,
                    std::uint32_t own_psn) const;
  std::uint32_t packets_of(const OutgoingMessage& message) const;
  static std::optional<ibv_qp_attr> query(ibv_qp* queue_pair);
  std::optional<std::uint32_t> user_key(std::span<const std::uint8_t> bytes, Owner owner) const;
  void post_receive(std::size_t index, const OutgoingMessage& message);
  void post_receive(std::size_t index, std::span<ibv_sge> pieces);
  Pieces pieces_of(Channel& channel, const OutgoingMessage& message) const;
  std::span<const ibv_wc> take_completions(VerbsCompletions::Batch& room);
  void take(const ibv_wc& completion, TransportListener& listener);
  void take_send(std::size_t index, const ibv_wc& completion, TransportListener& listener);
  bool drain();
  void destroy_queue_pairs();
  static void end_both(const Channel& channel);
  Error failure_of(std::size_t index, const ibv_wc& completion, Direction direction) const;

  const TransportPlan plan_;
  const std::shared_ptr<VerbsNic> nic_;
  const VerbsPort port_;
  VerbsCompletions completions_;
  std::vector<Channel> channels_;
  std::uint16_t predecessor_ = 0; // ranks, once connected
  std::uint16_t successor_ = 0;
  Delivery delivery_ = Delivery::by_send;
  std::uint32_t inline_bytes_ = kWantedInline; // of a message, at most
  std::size_t under_way_ = 0;                  // requests posted and not completed
};

VerbsTransport::VerbsTransport(const TransportPlan& plan, std::shared_ptr<VerbsNic> nic,
                               std::uint8_t gid_index)
    : plan_(plan), nic_(std::move(nic)), port_(find_port(*nic_, gid_index, plan.path_mtu)),
      completions_(*nic_) {
  channels_.resize(plan.channels);
  for (Channel& channel : channels_) {
    make_slots(channel);
  }
  renew(Delivery::by_send);
}

/// Queue pairs go first: their completion queue must outlive them.
void VerbsTransport::renew(Delivery delivery) {
  delivery_ = delivery;
  destroy_queue_pairs();
  completions_.renew(2 * plan_.channels * plan_.slots);
  for (Channel& channel : channels_) {
    channel.outgoing = make_queue_pair();
    channel.incoming = make_queue_pair();
    channel.outgoing_psn = random_number(0, 0xffffff);
    channel.incoming_psn = random_number(0, 0xffffff);
    channel.posted_psn = channel.outgoing_psn;
    channel.posted = channel.completed = channel.received = 0;
    channel.is_closed = false;
    channel.inbox_region.reset(); // both at once may exceed the limit of locked memory
    channel.inbox_region =
        nic_->make_region(channel.inbox, IBV_ACCESS_LOCAL_WRITE | peers_access());
  }
}

void VerbsTransport::make_slots(Channel& channel) {
  channel.inbox.resize(plan_.slots_bytes());
  channel.outbox.resize(plan_.slots_bytes());
  channel.receives.resize(plan_.slots);
  channel.outbox_region = nic_->make_region(channel.outbox, IBV_ACCESS_LOCAL_WRITE);
}

/// All have as many bytes inline as the one that has least.
QueuePair VerbsTransport::make_queue_pair() {
  MadeQueuePair made = host::make_queue_pair(*nic_, {.completions = &completions_.queue(),
                                                     .send_depth = plan_.slots,
                                                     .receive_depth = plan_.slots,
                                                     .pieces = kPieces,
                                                     .peers_access = peers_access(),
                                                     .inline_bytes = inline_bytes_});
  inline_bytes_ = made.inline_bytes;
  return std::move(made.queue_pair);
}

void VerbsTransport::bring_up_one(ibv_qp& queue_pair,
                                  const std::array<std::uint8_t, 16>& remote_gid,
                                  std::uint32_t remote_number, std::uint32_t remote_psn,
                                  std::uint32_t own_psn) const {
  bring_up(*nic_, port_, queue_pair,
           {.ip = {remote_gid},
            .number = remote_number,
            .psn = remote_psn,
            .own_psn = own_psn,
            .rnr_timer = kRnrTimer,
            .ack_timeout = plan_.ack_timeout_exponent(),
            .retry_count = plan_.retry_count});
}

std::vector<std::uint8_t> VerbsTransport::address() const {
  std::vector<std::uint8_t> blob;
  for (const Channel& channel : channels_) {
    VerbsChannelAddress address{};
    address.gid = port_.gid.bytes;
    address.numbers.outgoing_number.set(channel.outgoing->qp_num);
    address.numbers.outgoing_psn.set(channel.outgoing_psn);
    address.numbers.incoming_number.set(channel.incoming->qp_num);
    address.numbers.incoming_psn.set(channel.incoming_psn);
    address.numbers.inbox_key.set(channel.inbox_region->rkey);
    address.numbers.inbox_base.set(reinterpret_cast<std::uint64_t>(channel.inbox.data()));
    const auto bytes = bytes_of(address);
    blob.insert(blob.end(), bytes.begin(), bytes.end());
  }
  return blob;
}

void VerbsTransport::connect(const Neighbour& predecessor, const Neighbour& successor) {
  predecessor_ = predecessor.rank;
  successor_ = successor.rank;
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    Channel& channel = channels_[i];
    const VerbsChannelAddress& behind =
        channel_address<VerbsChannelAddress>(predecessor, i, channels_.size());
    const VerbsChannelAddress& ahead =
        channel_address<VerbsChannelAddress>(successor, i, channels_.size());
    for (std::uint32_t slot = 0; delivery_ == Delivery::by_write && slot < plan_.slots; ++slot) {
      post_receive(i, std::span<ibv_sge>());
    }
    bring_up_one(*channel.incoming, behind.gid, behind.numbers.outgoing_number.get(),
                 behind.numbers.outgoing_psn.get(), channel.incoming_psn);
    bring_up_one(*channel.outgoing, ahead.gid, ahead.numbers.incoming_number.get(),
                 ahead.numbers.incoming_psn.get(), channel.outgoing_psn);
    channel.successor_key = ahead.numbers.inbox_key.get();
    channel.successor_base = ahead.numbers.inbox_base.get();
  }
}

std::uint32_t VerbsTransport::packets_of(const OutgoingMessage& message) const {
  const std::size_t bytes = message.header.size() + message.data.size();
  return static_cast<std::uint32_t>(bytes == 0 ? 1 : (bytes - 1) / plan_.path_mtu + 1);
}

/// The device's key, if it may write this memory of a caller by itself.
std::optional<std::uint32_t> VerbsTransport::user_key(std::span<const std::uint8_t> bytes,
                                                      Owner owner) const {
  return bytes.empty() || owner != Owner::caller ? std::nullopt : nic_->user_ranges().find(bytes);
}

/// For the message with the same number of the predecessor.
void VerbsTransport::post_receive(std::size_t index, const OutgoingMessage& message) {
  Channel& channel = channels_[index];
  const std::span<std::uint8_t> slot = plan_.slot_of(channel.inbox, message.number);
  const std::uint32_t inbox_key = channel.inbox_region->lkey;
  const std::optional<std::uint32_t> key = user_key(message.result, message.result_owner);
  const std::span<std::uint8_t> data = key ? message.result : slot.subspan(kInaHeaderBytes);
  Receive& receive = channel.receives[message.number % plan_.slots];
  receive = {.data = data,
             .pieces = {piece_of(slot.first(kInaHeaderBytes), inbox_key),
                        piece_of(data, key.value_or(inbox_key))}};
  post_receive(index, receive.pieces);
}

/// Without pieces it takes the immediate of a WRITE alone.
void VerbsTransport::post_receive(std::size_t index, std::span<ibv_sge> pieces) {
  ibv_recv_wr request{};
  request.wr_id = work_id(index, Direction::incoming);
  request.sg_list = pieces.data();
  request.num_sge = static_cast<int>(pieces.size());
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_recv(channels_[index].incoming.get(), &request, &bad);
  if (error != 0) {
    nic_->fail("posting a receive", error);
  }
  ++under_way_;
}

bool VerbsTransport::post(std::size_t index, const OutgoingMessage& message) {
  Channel& channel = channels_[index];
  assert(channel.posted - channel.completed <= plan_.slots);
  if (channel.posted - channel.completed == plan_.slots) {
    return false;
  }
  if (delivery_ == Delivery::by_send) {
    post_receive(index, message);
  }
  Pieces pieces{};
  ibv_send_wr request{};
  request.wr_id = work_id(index, Direction::outgoing);
  request.send_flags = IBV_SEND_SIGNALED;
  request.sg_list = pieces.data();
  if (message.header.size() + message.data.size() <= inline_bytes_) {
    request.send_flags |= IBV_SEND_INLINE; // copied by the call, whatever memory it is in
    pieces = {piece_of(message.header, 0), piece_of(message.data, 0)};
  } else {
    pieces = pieces_of(channel, message);
  }
  request.num_sge = message.data.empty() ? 1 : static_cast<int>(pieces.size());
  request.imm_data = htonl(static_cast<std::uint32_t>(message.number));
  request.opcode = IBV_WR_SEND_WITH_IMM;
  if (delivery_ == Delivery::by_write) {
    request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    request.wr.rdma.remote_addr = channel.successor_base + plan_.slot_offset(message.number);
    request.wr.rdma.rkey = channel.successor_key;
  }
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(channel.outgoing.get(), &request, &bad);
  if (error != 0) {
    nic_->fail(fmt::format("posting message {}", message.number), error);
  }
  ++channel.posted;
  channel.posted_psn = wire::psn_add(channel.posted_psn, packets_of(message));
  ++under_way_;
  return true;
}

/// The header's copy, and the data: where they are, or their copy.
VerbsTransport::Pieces VerbsTransport::pieces_of(Channel& channel,
                                                 const OutgoingMessage& message) const {
  const std::span<std::uint8_t> slot = plan_.slot_of(channel.outbox, message.number);
  const std::uint32_t outbox_key = channel.outbox_region->lkey;
  std::ranges::copy(message.header, slot.begin());
  const auto header = piece_of(slot.first(message.header.size()), outbox_key);
  if (const std::optional<std::uint32_t> key = user_key(message.data, message.data_owner)) {
    return {header, piece_of(message.data, *key)};
  }
  const auto copy = slot.subspan(message.header.size(), message.data.size());
  std::ranges::copy(message.data, copy.begin());
  return {header, piece_of(copy, outbox_key)};
}

bool VerbsTransport::poll(TransportListener& listener) {
  VerbsCompletions::Batch batch;
  const std::span<const ibv_wc> done = take_completions(batch);
  std::optional<Error> first_error; // completions behind it count all the same
  for (const ibv_wc& completion : done) {
    try {
      take(completion, listener);
    } catch (const Error& error) {
      first_error = first_error ? first_error : error;
    }
  }
  if (!done.empty()) {
    completions_.restart();
  }
  if (first_error) {
    throw *first_error;
  }
  return !done.empty();
}

std::span<const ibv_wc> VerbsTransport::take_completions(VerbsCompletions::Batch& room) {
  const std::span<const ibv_wc> done = completions_.take(room);
  assert(under_way_ >= done.size());
  under_way_ -= done.size();
  return done;
}

void VerbsTransport::take(const ibv_wc& completion, TransportListener& listener) {
  const std::size_t index = completion.wr_id >> 1;
  const auto direction = static_cast<Direction>(completion.wr_id & 1);
  Channel& channel = channels_[index];
  if (channel.is_closed) {
    return;
  }
  if (completion.status != IBV_WC_SUCCESS) {
    listener.failed(index, failure_of(index, completion, direction));
    return;
  }
  if (direction == Direction::outgoing) {
    ++channel.completed;
    listener.completed(index);
  } else if (delivery_ == Delivery::by_send) {
    take_send(index, completion, listener);
  } else {
    const std::uint32_t immediate = ntohl(completion.imm_data);
    const std::size_t bytes = std::min(completion.byte_len, plan_.slot_bytes);
    listener.arrived(index, message_in_one_piece(
                                immediate, plan_.slot_of(channel.inbox, immediate).first(bytes)));
    post_receive(index, std::span<ibv_sge>());
  }
}

/// Receives end in the order of their posting.
void VerbsTransport::take_send(std::size_t index, const ibv_wc& completion,
                               TransportListener& listener) {
  Channel& channel = channels_[index];
  Receive& receive = channel.receives[channel.received % plan_.slots];
  const std::size_t header_bytes = std::min<std::size_t>(completion.byte_len, kInaHeaderBytes);
  const std::size_t data_bytes =
      std::min<std::size_t>(completion.byte_len - header_bytes, receive.data.size());
  const Arrival arrival = listener.arrived(
      index, {.immediate = ntohl(completion.imm_data),
              .header = plan_.slot_of(channel.inbox, channel.received).first(header_bytes),
              .data = receive.data.first(data_bytes)});
  if (arrival == Arrival::ignored) {
    post_receive(index, receive.pieces);
  } else {
    ++channel.received;
  }
}

void VerbsTransport::end_both(const Channel& channel) {
  end_requests(channel.outgoing.get());
  end_requests(channel.incoming.get());
}

/// Its requests' completions come all the same.
void VerbsTransport::close(std::size_t index) {
  channels_[index].is_closed = true;
  end_both(channels_[index]);
}

/// A device that does not say in time that the requests have ended loses its queue pairs, and that
/// waits for it.
void VerbsTransport::quiesce() {
  std::ranges::for_each(channels_, end_both);
  if (!drain()) {
    destroy_queue_pairs();
  }
}

/// True once all requests have ended.
bool VerbsTransport::drain() {
  const Deadline deadline = Clock::now() + kDrainLimit;
  VerbsCompletions::Batch batch;
  try {
    while (under_way_ != 0 && Clock::now() < deadline) {
      if (take_completions(batch).empty()) {
        std::this_thread::sleep_for(kDrainNap);
      }
    }
  } catch (const Error&) { // the completion queue cannot be polled
    return false;
  }
  return under_way_ == 0;
}

void VerbsTransport::destroy_queue_pairs() {
  for (Channel& channel : channels_) {
    channel.outgoing.reset();
    channel.incoming.reset();
  }
  under_way_ = 0; // their requests have ended with them
}

Error VerbsTransport::failure_of(std::size_t index, const ibv_wc& completion,
                                 Direction direction) const {
  if (is_own_fault(completion.status)) {
    return {ErrorCode::transport_failure, plan_.rank,
            fmt::format("rank {}: its device refused a request: {}: was registered memory released "
                        "or unmapped during a call?",
                        plan_.rank, said_by_device(completion))};
  }
  const bool is_outgoing = direction == Direction::outgoing;
  const std::uint16_t neighbour = is_outgoing ? successor_ : predecessor_;
  if (completion.status == IBV_WC_REM_OP_ERR) {
    return plan_.remote_failure(neighbour);
  }
  const bool is_told = is_outgoing && delivery_ == Delivery::by_send;
  if (completion.status == IBV_WC_REM_ACCESS_ERR && is_told) {
    return plan_.ring_taken(index);
  }
  if (completion.status == IBV_WC_REM_INV_REQ_ERR && is_told) {
    return plan_.ring_given_up();
  }
  const ErrorCode code = completion.status == IBV_WC_RETRY_EXC_ERR ? ErrorCode::retry_exceeded
                                                                   : ErrorCode::transport_failure;
  const std::string_view hint =
      code == ErrorCode::retry_exceeded
          ? ": the switch or the link is gone, or the switch was restarted and refuses our packets"
          : "";
  return {code, neighbour,
          fmt::format("rank {}: the connection {} rank {} failed: {}{}", plan_.rank,
                      is_outgoing ? "to" : "from", neighbour, said_by_device(completion), hint)};
}

bool VerbsTransport::has_link() const {
  ibv_port_attr port{};
  return ibv_query_port(&nic_->context(), kVerbsPort, &port) != 0 || port.state == IBV_PORT_ACTIVE;
}

std::string VerbsTransport::describe(std::size_t index) const {
  const Channel& channel = channels_[index];
  const std::optional<ibv_qp_attr> outgoing = query(channel.outgoing.get());
  const std::optional<ibv_qp_attr> incoming = query(channel.incoming.get());
  if (!outgoing || !incoming) {
    return {};
  }
  const bool is_lost = wire::psn_before(channel.posted_psn, outgoing->sq_psn);
  return fmt::format(
      "the queue pair to rank {} is in {}, its messages end before PSN {}, and it sends PSN {} "
      "next{}; the one from rank {} is in {} and waits for PSN {}",
      successor_, name_of(outgoing->qp_state), channel.posted_psn, outgoing->sq_psn,
      is_lost ? ", so the device has lost count (docs/transports.md)" : "", predecessor_,
      name_of(incoming->qp_state), incoming->rq_psn);
}

/// nullopt when there is none, or its device does not answer.
std::optional<ibv_qp_attr> VerbsTransport::query(ibv_qp* queue_pair) {
  ibv_qp_attr found{};
  ibv_qp_init_attr unused{};
  if (queue_pair == nullptr ||
      ibv_query_qp(queue_pair, &found, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RQ_PSN, &unused) !=
          0) {
    return std::nullopt;
  }
  return found;
}

} // namespace

std::unique_ptr<Transport> open_verbs(const TransportPlan& plan, std::shared_ptr<VerbsNic> nic,
                                      std::uint8_t gid_index) {
  return std::make_unique<VerbsTransport>(plan, std::move(nic), gid_index);
}

} // namespace weir::host
