// SPDX-License-Identifier: BSD-3-Clause
// For LD_PRELOAD: the process sleeps for WEIR_LATE_S seconds before it sends its first message, which is its hello.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <unistd.h>

typedef int (*PostSend)(struct ibv_qp*, struct ibv_send_wr*, struct ibv_send_wr**);

static PostSend provider_post_send;

static int post_send_late(struct ibv_qp* queue_pair, struct ibv_send_wr* request, struct ibv_send_wr** bad) {
  const char* seconds = getenv("WEIR_LATE_S");
  queue_pair->context->ops.post_send = provider_post_send;
  if (seconds != NULL) {
    sleep((unsigned)strtoul(seconds, NULL, 0));
  }
  return provider_post_send(queue_pair, request, bad);
}

// ibv_post_send() is inline and calls through the context, which the program has from its first queue pair on.
struct ibv_qp* ibv_create_qp(struct ibv_pd* domain, struct ibv_qp_init_attr* attributes) {
  struct ibv_qp* (*real)(struct ibv_pd*, struct ibv_qp_init_attr*) = dlsym(RTLD_NEXT, "ibv_create_qp");
  struct ibv_qp* queue_pair = real(domain, attributes);
  if (queue_pair != NULL && provider_post_send == NULL) {
    provider_post_send = queue_pair->context->ops.post_send;
    queue_pair->context->ops.post_send = post_send_late;
  }
  return queue_pair;
}
