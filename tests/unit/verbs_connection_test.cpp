// SPDX-License-Identifier: BSD-3-Clause

/// A NIC's connection over verbs: what it asks of libibverbs, whose functions are this file's own.
/// Values are those of docs/examples/region.c and of the verbs' manual pages.

#include "host/base/error.hpp"
#include "host/transport/nic.hpp"
#include "host/transport/verbs_objects.hpp"

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <gmock/gmock.h>
#include <memory>
#include <string>
#include <sys/eventfd.h>
#include <unistd.h>
#include <vector>

namespace weir::host::verbs_connection_test {
namespace {

/// The device, with all that was asked of it.
struct FakeDevice {
  ibv_device device{};
  ibv_context context{};
  ibv_pd domain{};
  ibv_comp_channel channel{};
  ibv_cq queue{};
  ibv_qp queue_pair{};
  ibv_qp_init_attr made_with{};
  std::vector<ibv_qp_attr> states; // that the queue pair was brought to
  std::vector<ibv_send_wr> sends;
  std::vector<ibv_sge> pieces; // the first of each
  std::size_t receives = 0;
  std::deque<ibv_mr> memories;
  std::vector<int> rights; // of these
  std::vector<std::string> ends;
  std::deque<ibv_wc> completions;
  std::uint32_t inline_bytes = 64;
  int reads = 16;
  unsigned unresolved = 0; // attempts to reach RTR in which nobody answers
};

FakeDevice* device = nullptr; // of the test that runs

int poll_queue(ibv_cq* /*queue*/, int most, ibv_wc* room) {
  int count = 0;
  for (; count < most && !device->completions.empty(); ++count) {
    room[count] = device->completions.front();
    device->completions.pop_front();
  }
  return count;
}

int post_send(ibv_qp* /*queue_pair*/, ibv_send_wr* work, ibv_send_wr** /*bad*/) {
  device->sends.push_back(*work);
  device->pieces.push_back(work->num_sge == 0 ? ibv_sge{} : work->sg_list[0]);
  return 0;
}

int post_receive(ibv_qp* /*queue_pair*/, ibv_recv_wr* work, ibv_recv_wr** /*bad*/) {
  device->receives += work->num_sge == 0 ? 1 : 0;
  return 0;
}

ibv_mr* register_memory(void* address, std::size_t bytes, int rights) {
  const auto number = static_cast<std::uint32_t>(device->memories.size());
  device->memories.push_back(
      {.addr = address, .length = bytes, .lkey = 0x100 + number, .rkey = 0x200 + number});
  device->rights.push_back(rights);
  return &device->memories.back();
}

} // namespace
} // namespace weir::host::verbs_connection_test

// ------------------------------------------------------------------------------------- libibverbs

using weir::host::verbs_connection_test::device;

#undef ibv_query_port
#undef ibv_reg_mr

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  static std::array<ibv_device*, 2> list{};
  list = {&device->device, nullptr};
  *count = 1;
  return list.data();
}

void ibv_free_device_list(ibv_device** /*list*/) {}

const char* ibv_get_device_name(ibv_device* /*device*/) {
  return "fake_0";
}

ibv_context* ibv_open_device(ibv_device* /*device*/) {
  return &device->context;
}

int ibv_close_device(ibv_context* /*context*/) {
  return 0;
}

ibv_pd* ibv_alloc_pd(ibv_context* /*context*/) {
  return &device->domain;
}

int ibv_dealloc_pd(ibv_pd* /*domain*/) {
  return 0;
}

ibv_mr* ibv_reg_mr(ibv_pd* /*domain*/, void* address, std::size_t bytes, int rights) {
  return weir::host::verbs_connection_test::register_memory(address, bytes, rights);
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* /*domain*/, void* address, std::size_t bytes,
                         std::uint64_t /*iova*/, unsigned rights) {
  return weir::host::verbs_connection_test::register_memory(address, bytes,
                                                            static_cast<int>(rights));
}

int ibv_dereg_mr(ibv_mr* /*memory*/) {
  device->ends.emplace_back("memory");
  return 0;
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* /*context*/) {
  device->channel.fd = eventfd(0, EFD_CLOEXEC);
  return &device->channel;
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  return close(channel->fd);
}

ibv_cq* ibv_create_cq(ibv_context* /*context*/, int depth, void* /*user*/,
                      ibv_comp_channel* /*channel*/, int /*vector*/) {
  device->queue.context = &device->context;
  device->queue.cqe = depth;
  return &device->queue;
}

int ibv_destroy_cq(ibv_cq* /*queue*/) {
  return 0;
}

int ibv_get_cq_event(ibv_comp_channel* /*channel*/, ibv_cq** /*queue*/, void** /*user*/) {
  return -1;
}

void ibv_ack_cq_events(ibv_cq* /*queue*/, unsigned /*events*/) {}

ibv_qp* ibv_create_qp(ibv_pd* /*domain*/, ibv_qp_init_attr* attributes) {
  if (attributes->cap.max_inline_data > device->inline_bytes) {
    errno = EINVAL;
    return nullptr;
  }
  device->made_with = *attributes;
  device->queue_pair.context = &device->context;
  device->queue_pair.qp_num = 0x77;
  return &device->queue_pair;
}

int ibv_destroy_qp(ibv_qp* /*queue_pair*/) {
  device->ends.emplace_back("queue pair");
  return 0;
}

int ibv_modify_qp(ibv_qp* /*queue_pair*/, ibv_qp_attr* attributes, int /*mask*/) {
  if (attributes->qp_state == IBV_QPS_RTR && device->unresolved != 0) {
    --device->unresolved;
    return ETIMEDOUT;
  }
  device->states.push_back(*attributes);
  return 0;
}

int ibv_query_port(ibv_context* /*context*/, std::uint8_t /*port*/, _compat_ibv_port_attr* out) {
  ibv_port_attr port{};
  port.state = IBV_PORT_ACTIVE;
  port.active_mtu = IBV_MTU_2048;
  port.max_msg_sz = 1 << 23;                                         // rxe's
  std::memcpy(out, &port, offsetof(ibv_port_attr, port_cap_flags2)); // what older programs know
  return 0;
}

int ibv_query_gid(ibv_context* /*context*/, std::uint8_t /*port*/, int index, ibv_gid* gid) {
  *gid = {};
  gid->raw[10] = gid->raw[11] = 0xff;
  gid->raw[12] = 10;
  gid->raw[15] = static_cast<std::uint8_t>(index);
  return 0;
}

int ibv_query_device(ibv_context* /*context*/, ibv_device_attr* out) {
  *out = {};
  out->max_qp_rd_atom = device->reads;
  out->max_qp_init_rd_atom = 16;
  return 0;
}

} // extern "C"

// ------------------------------------------------------------------------------------------ tests

namespace weir::host::verbs_connection_test {
namespace {

using endpoint::SendKind;
using endpoint::Status;
using testing::ElementsAre;

constexpr int kCopyRights =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

class VerbsConnectionTest : public testing::Test {
 public:
  VerbsConnectionTest() {
    device = &fake_;
    fake_.context.ops.poll_cq = poll_queue;
    fake_.context.ops.post_send = post_send;
    fake_.context.ops.post_recv = post_receive;
  }

  ~VerbsConnectionTest() override {
    connection_.reset();
    nic_.reset();
    device = nullptr;
  }

  VerbsConnectionTest(const VerbsConnectionTest&) = delete;
  VerbsConnectionTest& operator=(const VerbsConnectionTest&) = delete;

  NicConnection& open(std::uint32_t reads = 5) {
    nic_ = open_nic("fake_0");
    connection_ = nic_->open_connection({.exposed = copy_,
                                         .staging = staging_,
                                         .path_mtu = 2048,
                                         .send_depth = 8,
                                         .receive_depth = 9,
                                         .reads = reads},
                                        3);
    return *connection_;
  }

  void connect() {
    connection_->connect({.ip = *wire::parse_ip("10.0.0.254"),
                          .queue_pair = 0x99,
                          .first_psn = 0xabc,
                          .own_psn = 0xdef,
                          .ack_timeout = 16,
                          .retry_count = 6});
  }

 protected:
  FakeDevice fake_;
  std::array<std::uint8_t, 4096> copy_{};
  std::array<std::uint8_t, 1024> staging_{};
  std::shared_ptr<Nic> nic_;
  std::unique_ptr<NicConnection> connection_;
};

TEST_F(VerbsConnectionTest, RegistersTheCopyForItsPeerAndStagingForItself) {
  const NicConnection& connection = open();
  ASSERT_EQ(fake_.memories.size(), 2U);
  EXPECT_EQ(fake_.memories[0].addr, copy_.data());
  EXPECT_EQ(fake_.memories[1].addr, staging_.data());
  EXPECT_THAT(fake_.rights, ElementsAre(kCopyRights, IBV_ACCESS_LOCAL_WRITE));
  EXPECT_EQ(connection.exposed_key(), fake_.memories[0].rkey);
  EXPECT_EQ(connection.key_of(std::span(copy_).last(1)), fake_.memories[0].lkey);
  EXPECT_EQ(connection.key_of(std::span(staging_).last(1)), fake_.memories[1].lkey);
  std::array<std::uint8_t, 8> other{};
  EXPECT_FALSE(connection.key_of(other));
  const auto registered = nic_->register_memory(other);
  EXPECT_EQ(connection.key_of(other), fake_.memories[2].lkey);
}

TEST_F(VerbsConnectionTest, TellsItsAddressAndTheDevicesLimit) {
  const NicConnection& connection = open();
  EXPECT_EQ(wire::to_string(connection.ip()), "10.0.0.3");
  EXPECT_EQ(connection.queue_pair(), 0x77U);
  EXPECT_EQ(connection.longest_message(), 8U << 20U);
}

TEST_F(VerbsConnectionTest, BringsItsQueuePairUpTowardsThePeer) {
  open();
  EXPECT_EQ(fake_.made_with.qp_type, IBV_QPT_RC);
  EXPECT_EQ(fake_.made_with.cap.max_send_wr, 8U);
  EXPECT_EQ(fake_.made_with.cap.max_recv_wr, 9U);
  EXPECT_EQ(fake_.queue.cqe, 17);
  fake_.unresolved = 2; // a question for the peer's MAC address was lost, or its answer
  connect();
  ASSERT_EQ(fake_.states.size(), 3U);
  const auto& [init, receive, send] = std::tie(fake_.states[0], fake_.states[1], fake_.states[2]);
  EXPECT_EQ(init.qp_state, IBV_QPS_INIT);
  EXPECT_EQ(init.qp_access_flags, unsigned{IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ});
  EXPECT_EQ(receive.qp_state, IBV_QPS_RTR);
  EXPECT_EQ(receive.path_mtu, IBV_MTU_2048);
  EXPECT_EQ(receive.dest_qp_num, 0x99U);
  EXPECT_EQ(receive.rq_psn, 0xabcU);
  EXPECT_EQ(receive.max_dest_rd_atomic, 5);
  EXPECT_EQ(receive.min_rnr_timer, 1);
  EXPECT_EQ(receive.ah_attr.grh.sgid_index, 3);
  EXPECT_EQ(receive.ah_attr.grh.dgid.raw[15], 254);
  EXPECT_EQ(send.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(send.sq_psn, 0xdefU);
  EXPECT_EQ(send.max_rd_atomic, 5);
  EXPECT_EQ(send.timeout, 16);
  EXPECT_EQ(send.retry_cnt, 6);
  EXPECT_EQ(send.rnr_retry, 7);
}

TEST_F(VerbsConnectionTest, RefusesMoreReadsThanTheDeviceHas) {
  fake_.reads = 4;
  try {
    open();
    FAIL() << "it is open";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "device fake_0: a queue pair has up to 4 READs unanswered; 5 are "
                               "asked for: Invalid argument");
  }
  EXPECT_NO_THROW(open(4));
}

TEST_F(VerbsConnectionTest, PostsWritesAndReads) {
  NicConnection& connection = open();
  const std::span<std::uint8_t> longer = std::span(copy_).first(65);
  connection.post({.kind = SendKind::write,
                   .data = std::span(copy_).first(64),
                   .remote_address = 0x1234'0000'0000,
                   .remote_key = 0xabc},
                  1);
  connection.post({.kind = SendKind::write_immediate,
                   .data = longer,
                   .immediate = 0x02000011,
                   .fence = endpoint::Fence::after_reads},
                  2);
  connection.post({.kind = SendKind::read, .target = std::span(copy_).last(8)}, 3);
  connection.post({.kind = SendKind::write_immediate}, 0);
  ASSERT_EQ(fake_.sends.size(), 4U);
  EXPECT_EQ(fake_.sends[0].opcode, IBV_WR_RDMA_WRITE);
  EXPECT_EQ(fake_.sends[0].wr.rdma.remote_addr, 0x1234'0000'0000U);
  EXPECT_EQ(fake_.sends[0].wr.rdma.rkey, 0xabcU);
  EXPECT_EQ(fake_.sends[0].send_flags, unsigned{IBV_SEND_SIGNALED | IBV_SEND_INLINE});
  EXPECT_EQ(fake_.sends[1].opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
  EXPECT_EQ(fake_.sends[1].imm_data, htonl(0x02000011));
  EXPECT_EQ(fake_.sends[1].send_flags, unsigned{IBV_SEND_SIGNALED | IBV_SEND_FENCE});
  EXPECT_EQ(fake_.pieces[1].addr, reinterpret_cast<std::uint64_t>(longer.data()));
  EXPECT_EQ(fake_.pieces[1].length, 65U);
  EXPECT_EQ(fake_.pieces[1].lkey, 2U);
  EXPECT_EQ(fake_.sends[2].opcode, IBV_WR_RDMA_READ);
  EXPECT_EQ(fake_.sends[2].send_flags, unsigned{IBV_SEND_SIGNALED});
  EXPECT_EQ(fake_.pieces[2].addr, reinterpret_cast<std::uint64_t>(std::span(copy_).last(8).data()));
  EXPECT_EQ(fake_.pieces[2].lkey, 3U);
  EXPECT_EQ(fake_.sends[3].num_sge, 0);
  EXPECT_EQ(fake_.sends[3].send_flags, unsigned{IBV_SEND_SIGNALED});
  connection.post_receive();
  EXPECT_EQ(fake_.receives, 1U);
}

TEST_F(VerbsConnectionTest, GivesBytesWithTheRequestOnlyWhereTheDeviceTakesThem) {
  fake_.inline_bytes = 0;
  NicConnection& connection = open();
  connection.post({.kind = SendKind::write, .data = std::span(copy_).first(1)}, 1);
  EXPECT_EQ(fake_.sends[0].send_flags, unsigned{IBV_SEND_SIGNALED});
}

TEST_F(VerbsConnectionTest, TellsOfWhatHasEnded) {
  NicConnection& connection = open();
  connection.post({.kind = SendKind::write}, 0);
  connection.post_receive();
  EXPECT_TRUE(connection.poll().empty());
  ibv_wc immediate{.wr_id = 1, .status = IBV_WC_SUCCESS};
  immediate.imm_data = htonl(0x01000005);
  fake_.completions = {{.wr_id = fake_.sends[0].wr_id, .status = IBV_WC_SUCCESS}, immediate};
  const auto done = connection.poll();
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].kind, endpoint::CompletionKind::write);
  EXPECT_EQ(done[0].status, Status::success);
  EXPECT_EQ(done[1].kind, endpoint::CompletionKind::receive_write_immediate);
  EXPECT_EQ(done[1].immediate, 0x01000005U);
}

TEST_F(VerbsConnectionTest, TellsOfFailures) {
  NicConnection& connection = open();
  const std::vector<std::pair<ibv_wc_status, Status>> statuses{
      {IBV_WC_RETRY_EXC_ERR, Status::retry_exceeded},
      {IBV_WC_RNR_RETRY_EXC_ERR, Status::rnr_retry_exceeded},
      {IBV_WC_REM_ACCESS_ERR, Status::remote_access},
      {IBV_WC_REM_INV_REQ_ERR, Status::remote_invalid_request},
      {IBV_WC_REM_OP_ERR, Status::remote_operational},
      {IBV_WC_BAD_RESP_ERR, Status::bad_response},
      {IBV_WC_LOC_PROT_ERR, Status::local_protection},
      {IBV_WC_WR_FLUSH_ERR, Status::flushed}};
  for (const auto& [found, due] : statuses) {
    fake_.completions = {{.wr_id = 0, .status = found, .vendor_err = 0x1d}};
    const auto done = connection.poll();
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].status, due) << ibv_wc_status_str(found);
    EXPECT_EQ(done[0].device_said, std::string(ibv_wc_status_str(found)) + " (vendor code 0x1d)");
  }
}

/// In this order: a device must not go to memory that is registered no more.
TEST_F(VerbsConnectionTest, EndsItsQueuePairBeforeItsMemory) {
  open().close();
  EXPECT_EQ(fake_.states.back().qp_state, IBV_QPS_ERR);
  EXPECT_THAT(fake_.ends, ElementsAre("queue pair", "memory", "memory"));
}

} // namespace
} // namespace weir::host::verbs_connection_test
