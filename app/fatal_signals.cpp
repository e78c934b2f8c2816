// SPDX-License-Identifier: BSD-3-Clause
#include "fatal_signals.hpp"

#include <csignal>
#include <cstring>
#include <string_view>
#include <unistd.h>

namespace weir::app {
namespace {

const char* program_name = ""; // set before the handlers are installed

void write_text(std::string_view text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

/// Uses only what signal-safety(7) allows. SA_RESETHAND has restored the default action, which ends
/// the process as soon as the signal is unblocked.
void say_and_die(int number) {
  const char* name = sigabbrev_np(number);
  write_text(program_name);
  write_text(": ended by signal SIG");
  write_text(name != nullptr ? name : "?");
  write_text("\n");
  raise(number);
}

} // namespace

void name_fatal_signals(const char* program) {
  program_name = program;
  struct sigaction action = {};
  action.sa_handler = say_and_die;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int number :
       {SIGABRT, SIGBUS, SIGFPE, SIGHUP, SIGILL, SIGINT, SIGPIPE, SIGSEGV, SIGTERM}) {
    struct sigaction before = {};
    if (sigaction(number, nullptr, &before) == 0 && before.sa_handler == SIG_DFL) {
      sigaction(number, &action, nullptr);
    }
  }
}

} // namespace weir::app
