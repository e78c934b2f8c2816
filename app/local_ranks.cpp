// SPDX-License-Identifier: BSD-3-Clause
#include "local_ranks.hpp"

#include "complaint.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weir::app {
namespace {

/// Ends with its parent, which may have ended before this could be said.
void end_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) {
    _exit(EXIT_FAILURE);
  }
}

int status_of(std::string_view program, std::uint16_t rank, int waited) {
  if (WIFEXITED(waited)) {
    return WEXITSTATUS(waited);
  }
  complain(program, fmt::format("rank {} was ended by signal {} ({})", rank, WTERMSIG(waited),
                                strsignal(WTERMSIG(waited))));
  return EXIT_FAILURE;
}

} // namespace

int run_local_ranks(std::string_view program, std::uint16_t first, std::uint16_t count,
                    const std::function<int(std::uint16_t rank)>& body) {
  const pid_t parent = getpid();
  std::signal(SIGCHLD, SIG_DFL); // who ignores it leaves nobody to wait for
  std::map<pid_t, std::uint16_t> ranks;
  for (std::uint16_t rank = first; rank < first + count; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      end_with(parent);
      std::exit(body(rank));
    }
    if (child < 0) { // the others end with this process
      throw std::runtime_error(
          fmt::format("no process for rank {}: {}", rank, std::strerror(errno)));
    }
    ranks.emplace(child, rank);
  }
  int status = EXIT_SUCCESS;
  while (!ranks.empty()) {
    int waited = 0;
    const auto ended = ranks.find(waitpid(-1, &waited, 0));
    if (ended != ranks.end()) {
      const int own = status_of(program, ended->second, waited);
      status = status == EXIT_SUCCESS ? own : status;
      ranks.erase(ended);
    }
  }
  return status;
}

} // namespace weir::app
