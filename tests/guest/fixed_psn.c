// SPDX-License-Identifier: BSD-3-Clause
// For LD_PRELOAD: all queue pairs of a process start at the PSN in WEIR_FIRST_PSN, in both directions. When every process
// of a job has it, both ends of each connection agree, whatever they told each other.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdlib.h>

int ibv_modify_qp(struct ibv_qp* queue_pair, struct ibv_qp_attr* attributes, int mask) {
  int (*real)(struct ibv_qp*, struct ibv_qp_attr*, int) = dlsym(RTLD_NEXT, "ibv_modify_qp");
  const char* first = getenv("WEIR_FIRST_PSN");
  if (first != NULL) {
    attributes->sq_psn = attributes->rq_psn = (uint32_t)strtoul(first, NULL, 0);
  }
  return real(queue_pair, attributes, mask);
}
