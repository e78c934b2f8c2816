/* SPDX-License-Identifier: BSD-3-Clause
 * Preloaded into a switch. EAL's interrupt thread, which has heard that the other end of a memif
 * connection has gone, goes on when a port has been closed meanwhile, or after a second. The
 * process lives long enough for what it then does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static atomic_bool closed;

static void sleep_ms(unsigned ms) {
  usleep(ms * 1000);
}

ssize_t recvmsg(int descriptor, struct msghdr* message, int flags) {
  ssize_t (*next)(int, struct msghdr*, int) = dlsym(RTLD_NEXT, "recvmsg");
  ssize_t bytes = next(descriptor, message, flags);
  char thread[16] = "";
  prctl(PR_GET_NAME, thread);
  if (bytes <= 0 && strcmp(thread, "eal-intr-thread") == 0) {
    for (int i = 0; i < 100 && !closed; ++i) {
      sleep_ms(10);
    }
  }
  return bytes;
}

int rte_eth_dev_close(uint16_t port) {
  int (*next)(uint16_t) = dlsym(RTLD_NEXT, "rte_eth_dev_close");
  int answer = next(port);
  closed = 1;
  return answer;
}

int rte_eal_cleanup(void) {
  int (*next)(void) = dlsym(RTLD_NEXT, "rte_eal_cleanup");
  sleep_ms(300);
  return next();
}
