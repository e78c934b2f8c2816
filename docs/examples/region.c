/* SPDX-License-Identifier: BSD-3-Clause */

/* A member of a region, with plain verbs: region DEVICE ADDRESS SEED MESSAGES
 * Prints what the caller of HoldRegion has to know of it, reads what the switch says to it ("ADDRESS QP PSN BASE KEY
 * TOKEN F32 I32", the last two are the keys of the views sum of f32 and sum of i32), writes so many messages to all, reads
 * a sum of all members' numbers behind each, and prints a sum over its memory when all have written. It keeps its queue
 * pair until its input ends. With MESSAGES 0 it writes until the region ends. The region has loopback, KB kilobytes that all
 * write, and NUMBERS numbers behind them that nobody does: each member has its own there. Members have seeds 1, 2, 3 in the
 * order in which HoldRegion has them. See docs/regions.md. */

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KB = 64, BYTES = KB * 1024, TOKEN = 16, MOST = 16384, MEMBERS = 3, PSN = 0xfffff0, NUMBERS = 8192, READS = 4 };

struct peer { /* the switch's end */
  char ip[64], token[2 * TOKEN + 1];
  uint32_t qp, psn, key, views[2];
  uint64_t base;
};

static struct ibv_context* device;
static struct ibv_qp* qp;
static struct ibv_cq* cq;
static struct ibv_mr *copy, *source, *sums; /* this member's copy; what it writes; what it reads */

static void* need(void* made, const char* what) {
  if (made == NULL) {
    perror(what);
    exit(1);
  }
  return made;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static union ibv_gid gid_of(const char* ip) { /* ::ffff:a.b.c.d */
  union ibv_gid gid;
  memset(&gid, 0, sizeof gid);
  gid.raw[10] = gid.raw[11] = 0xff;
  inet_pton(AF_INET, ip, gid.raw + 12);
  return gid;
}

static int index_of(union ibv_gid gid) { /* of RoCEv2, in the port's table */
  struct ibv_gid_entry entry;
  for (int index = 0; ibv_query_gid_ex(device, 1, (uint32_t)index, &entry, 0) == 0; ++index) {
    if (entry.gid_type == IBV_GID_TYPE_ROCE_V2 && memcmp(&entry.gid, &gid, sizeof gid) == 0) {
      return index;
    }
  }
  return need(NULL, "no such address"), -1;
}

static float number(int seed, int i) { /* in a sum of three the order matters */
  return (float)((i * 7919 + seed * 104729) % 65521) / (seed == 2 ? -7.0f : 3.0f);
}

static void make(const char* name) {
  struct ibv_device** all = need(ibv_get_device_list(NULL), "devices");
  while (*all != NULL && strcmp(ibv_get_device_name(*all), name) != 0) {
    ++all;
  }
  device = need(*all == NULL ? NULL : ibv_open_device(*all), name);
  struct ibv_pd* pd = need(ibv_alloc_pd(device), "pd");
  cq = need(ibv_create_cq(device, 64, NULL, NULL, 0), "cq");
  copy = need(ibv_reg_mr(pd, calloc(1, BYTES + 4 * NUMBERS), BYTES + 4 * NUMBERS,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ), "copy");
  sums = need(ibv_reg_mr(pd, calloc(NUMBERS, 4), 4 * NUMBERS, IBV_ACCESS_LOCAL_WRITE), "sums");
  source = need(ibv_reg_mr(pd, calloc(1, MOST), MOST, IBV_ACCESS_LOCAL_WRITE), "source");
  struct ibv_qp_init_attr attributes = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
                                        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1}};
  qp = need(ibv_create_qp(pd, &attributes), "qp");
}

static void step(struct ibv_qp_attr* attributes, enum ibv_qp_state state, int mask) {
  attributes->qp_state = state;
  for (int tries = 0; ibv_modify_qp(qp, attributes, mask | IBV_QP_STATE) != 0; ++tries) {
    need(errno == ETIMEDOUT && tries < 5 ? qp : NULL, "state"); /* ARP: a question or an answer was lost */
  }
}

static void connect_to(const struct peer* peer, int gid_index) {
  struct ibv_qp_attr init = {.port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
  step(&init, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  struct ibv_qp_attr receive = {.path_mtu = IBV_MTU_1024, .dest_qp_num = peer->qp, .rq_psn = peer->psn,
                                .max_dest_rd_atomic = READS, .min_rnr_timer = 1};
  receive.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1,
                                         .grh = {.dgid = gid_of(peer->ip), .sgid_index = (uint8_t)gid_index, .hop_limit = 64}};
  step(&receive, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                  IBV_QP_MIN_RNR_TIMER);
  struct ibv_qp_attr send = {.timeout = 16, .retry_cnt = 7, .rnr_retry = 7, .sq_psn = PSN, .max_rd_atomic = READS};
  step(&send, IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static int immediates = 0; /* that have come */

static enum ibv_wc_status wait_for(enum ibv_wc_opcode opcode) {
  struct ibv_wc done;
  for (;;) {
    if (ibv_poll_cq(cq, 1, &done) == 0) {
      continue;
    }
    if (done.status != IBV_WC_SUCCESS) {
      return done.status;
    }
    immediates += done.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
    if (done.opcode == opcode) {
      return done.status;
    }
  }
}

static enum ibv_wc_status write_all(const struct peer* peer, uint64_t offset, uint32_t bytes, enum ibv_wr_opcode opcode) {
  struct ibv_sge piece = {(uintptr_t)source->addr, bytes, source->lkey};
  struct ibv_send_wr *bad, request = {.sg_list = &piece, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
  request.wr.rdma.remote_addr = peer->base + offset;
  request.wr.rdma.rkey = peer->key;
  need(ibv_post_send(qp, &request, &bad) == 0 ? qp : NULL, "post");
  return wait_for(IBV_WC_RDMA_WRITE);
}

static void check(int view, int first, int count) { /* bit by bit */
  for (int i = first; i < first + count; ++i) {
    float one = number(1, i), all = one;
    uint32_t bits, integers = 0;
    memcpy(&integers, &one, 4);
    for (int seed = 2; seed <= MEMBERS; ++seed) {
      one = number(seed, i);
      all += one;
      memcpy(&bits, &one, 4);
      integers += bits;
    }
    memcpy(&bits, &all, 4);
    bits = view == 0 ? bits : integers;
    if (memcmp((char*)sums->addr + 4 * i, &bits, 4) != 0) {
      printf("number %d of view %d is wrong\n", i, view);
      exit(4);
    }
  }
}

static void read_sums(const struct peer* peer, int view, int first, int count) { /* multiples of 2 */
  struct ibv_sge piece = {(uintptr_t)sums->addr + 4 * (uint32_t)first, 4 * (uint32_t)count, sums->lkey};
  struct ibv_send_wr *bad, request = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
                                      .send_flags = IBV_SEND_SIGNALED};
  request.wr.rdma.remote_addr = peer->base + BYTES + 4 * (uint32_t)first;
  request.wr.rdma.rkey = peer->views[view];
  need(ibv_post_send(qp, &request, &bad) == 0 ? qp : NULL, "post");
}

static enum ibv_wc_status read_all(const struct peer* peer, int view) { /* READS at a time */
  for (int first = 0; first < NUMBERS; first += NUMBERS / READS) {
    read_sums(peer, view, first, NUMBERS / READS);
  }
  for (int reads = 0; reads < READS; ++reads) {
    enum ibv_wc_status status = wait_for(IBV_WC_RDMA_READ);
    if (status != IBV_WC_SUCCESS) {
      return status;
    }
  }
  check(view, 0, NUMBERS);
  return IBV_WC_SUCCESS;
}

static enum ibv_wc_status read_some(const struct peer* peer) {
  const int first = 2 * (rand() % (NUMBERS / 4)), count = 2 * (1 + rand() % (NUMBERS / 8)), view = rand() % 2;
  read_sums(peer, view, first, count);
  enum ibv_wc_status status = wait_for(IBV_WC_RDMA_READ);
  if (status == IBV_WC_SUCCESS) {
    check(view, first, count);
  }
  return status;
}

static enum ibv_wc_status write_some(const struct peer* peer) {
  const uint32_t bytes = 1 + (uint32_t)rand() % MOST;
  for (uint32_t i = 0; i < bytes; ++i) {
    ((unsigned char*)source->addr)[i] = (unsigned char)rand();
  }
  return write_all(peer, (uint32_t)rand() % (BYTES - bytes + 1), bytes, IBV_WR_RDMA_WRITE);
}

static void expect(enum ibv_wc_status status, double since) {
  if (status != IBV_WC_SUCCESS) {
    printf("ended: %s, %.0f ms after the last write\n", ibv_wc_status_str(status), 1e3 * (now() - since));
    exit(3);
  }
}

int main(int argc, char** argv) {
  struct peer peer;
  if (argc != 5) {
    puts("usage: region DEVICE ADDRESS SEED MESSAGES");
    return 2;
  }
  make(argv[1]);
  for (int i = 0; i < NUMBERS; ++i) {
    ((float*)copy->addr)[BYTES / 4 + i] = number(atoi(argv[3]), i);
  }
  srand((unsigned)atoi(argv[3]));
  printf("member {\"ip\": \"%s\", \"queue_pair\": %u, \"first_psn\": %u, \"base\": \"%" PRIu64 "\", \"key\": %u, "
         "\"ack_timeout\": 16, \"reads\": %d}\n", argv[2], qp->qp_num, PSN, (uint64_t)(uintptr_t)copy->addr, copy->rkey, READS);
  fflush(stdout);
  if (scanf("%63s %" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu32 " %32s %" SCNu32 " %" SCNu32, peer.ip, &peer.qp, &peer.psn,
            &peer.base, &peer.key, peer.token, &peer.views[0], &peer.views[1]) != 8) {
    puts("found no ADDRESS QP PSN BASE KEY TOKEN F32 I32");
    return 2;
  }
  connect_to(&peer, index_of(gid_of(argv[2])));
  struct ibv_recv_wr *bad, receive = {0};
  for (int i = 0; i < MEMBERS; ++i) { /* as many as immediates may come */
    need(ibv_post_recv(qp, &receive, &bad) == 0 ? qp : NULL, "receive");
  }
  for (int i = 0; i < TOKEN; ++i) {
    sscanf(peer.token + 2 * i, "%2hhx", (unsigned char*)source->addr + i);
  }
  double last = now();
  expect(write_all(&peer, 0, TOKEN, IBV_WR_RDMA_WRITE), last); /* hello: it completes when all have said it */
  puts("open");
  fflush(stdout);
  for (int i = 0; i < atoi(argv[4]) || atoi(argv[4]) == 0; ++i) {
    last = now();
    expect(write_some(&peer), last);
    expect(i % 2 == 0 ? read_some(&peer) : read_all(&peer, i / 2 % 2), last);
  }
  expect(write_all(&peer, 0, 0, IBV_WR_RDMA_WRITE_WITH_IMM), last); /* "I am done": behind all that I wrote, at all */
  while (immediates < MEMBERS) {
    expect(wait_for(IBV_WC_RECV_RDMA_WITH_IMM), last);
  }
  for (int view = 0; view < 2; ++view) {
    expect(read_all(&peer, view), last);
  }
  uint64_t sum = 14695981039346656037u;
  for (int i = 0; i < BYTES; ++i) {
    sum = (sum ^ ((unsigned char*)copy->addr)[i]) * 1099511628211u;
  }
  printf("memory %016" PRIx64 "\n", sum);
  fflush(stdout);
  while (getchar() != EOF) { /* others may not have had all answers, and read this copy */
  }
  return 0;
}
