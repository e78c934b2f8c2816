// SPDX-License-Identifier: BSD-3-Clause
#include "graphviz.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <spawn.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

namespace weir::app {
namespace {

struct Pipe {
  std::array<int, 2> ends{-1, -1};

  Pipe() {
    if (pipe(ends.data()) != 0) {
      throw std::runtime_error(fmt::format("no pipe: {}", std::strerror(errno)));
    }
  }

  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  ~Pipe() {
    close_end(0);
    close_end(1);
  }

  void close_end(std::size_t end) {
    if (ends[end] >= 0) {
      close(ends[end]);
      ends[end] = -1;
    }
  }
};

pid_t start(const std::string& engine, const std::string& file, const Pipe& input) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.ends[0], STDIN_FILENO);
  posix_spawn_file_actions_addclose(&actions, input.ends[1]);
  std::string program = "dot";
  std::string layout = "-K" + engine;
  std::string format = "-Tsvg";
  std::string out = "-o" + file;
  std::array<char*, 5> arguments{program.data(), layout.data(), format.data(), out.data(), nullptr};
  pid_t child = -1;
  const int error =
      posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw std::runtime_error(
        fmt::format("dot could not be started ({}); install graphviz", std::strerror(error)));
  }
  return child;
}

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      return; // dot has ended; its exit status tells why
    }
    text.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
}

} // namespace

void write_svg(const plan::Drawing& drawing, const std::string& file) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe input;
  const pid_t child = start(drawing.engine, file, input);
  input.close_end(0);
  write_all(input.ends[1], drawing.text);
  input.close_end(1);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error(fmt::format("dot failed; {} may be missing or cut short", file));
  }
}

} // namespace weir::app
