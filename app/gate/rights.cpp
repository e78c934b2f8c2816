// SPDX-License-Identifier: BSD-3-Clause
#include "rights.hpp"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <linux/capability.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define WEIR_HAS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define WEIR_HAS_SANITIZER
#endif
#endif

namespace weir::gate {
namespace {

constexpr rlim_t kMostDataBytes = rlim_t{64} << 20;
constexpr std::size_t kStackBytes = std::size_t{256} << 10; // of each of gRPC's threads
constexpr int kNiceness = 19;
constexpr const char* kKilledFirst = "500"; // proc(5), oom_score_adj

void close_all_but(std::vector<int> kept) {
  std::ranges::sort(kept);
  unsigned first = STDERR_FILENO + 1;
  for (const int descriptor : kept) {
    const auto number = static_cast<unsigned>(descriptor);
    if (number > first) {
      close_range(first, number - 1, 0);
    }
    first = number + 1;
  }
  close_range(first, ~0U, 0);
}

void write_file(const char* path, const char* text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file >= 0) {
    [[maybe_unused]] const ssize_t count = write(file, text, std::char_traits<char>::length(text));
    close(file);
  }
}

void drop_capabilities() {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  syscall(SYS_capset, &header, none.data());
}

void leave_signals_to_the_service() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) {
    signal(number, SIG_IGN);
  }
}

} // namespace

void give_up_rights(std::vector<int> kept) {
  close_all_but(std::move(kept));
  leave_signals_to_the_service();
  write_file("/proc/self/oom_score_adj", kKilledFirst);
  setpriority(PRIO_PROCESS, 0, kNiceness);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); // it has the service's key
  drop_capabilities();
}

void bound_memory() {
  mallopt(M_ARENA_MAX, 1);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
#ifndef WEIR_HAS_SANITIZER
  const rlimit most{kMostDataBytes, kMostDataBytes};
  setrlimit(RLIMIT_DATA, &most);
#endif
}

} // namespace weir::gate
