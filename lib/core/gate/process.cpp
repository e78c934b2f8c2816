// SPDX-License-Identifier: BSD-3-Clause
#include "gate/process.hpp"

#include "gate/channel.hpp"
#include "text/number.hpp"
#include "text/printable.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace weir::gate {
namespace {

constexpr std::chrono::seconds kRestartPause{1};

/// Beside this program in a build folder, else where it is installed.
std::string program() {
  std::error_code none;
  const auto beside =
      std::filesystem::read_symlink("/proc/self/exe", none).parent_path() / "weir-gate";
  return std::filesystem::exists(beside, none) ? beside.string() : WEIR_GATE;
}

/// What the new process has, and how it begins.
class SpawnSettings {
 public:
  explicit SpawnSettings(const std::vector<int>& kept) {
    posix_spawn_file_actions_init(&actions_);
    for (const int descriptor : kept) {
      posix_spawn_file_actions_adddup2(&actions_, descriptor, descriptor); // not closed by exec
    }
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      posix_spawn_file_actions_addopen(&actions_, standard, "/dev/null", 2, 0);
    }
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }

  ~SpawnSettings() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }

  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  int spawn(pid_t& process, std::vector<std::string> words) const {
    std::vector<char*> argv;
    for (std::string& word : words) {
      argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    return posix_spawn(&process, argv[0], &actions_, &attributes_, argv.data(), environ);
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

bool has_hung_up(int channel) {
  pollfd awaited{channel, 0, 0};
  return poll(&awaited, 1, 0) == 1;
}

} // namespace

Process::Process(std::vector<net::ListeningSocket> doors, Orders orders, Tell tell)
    : doors_(std::move(doors)), orders_(std::move(orders)), tell_(std::move(tell)) {
  start();
}

Process::~Process() {
  end();
}

/// It sees the end of its channel.
void Process::end() {
  if (channel_ >= 0) {
    close(std::exchange(channel_, -1));
  }
  if (process_ > 0) {
    kill(process_, SIGKILL);
    waitpid(std::exchange(process_, 0), nullptr, 0);
  }
}

void Process::start() {
  due_ = Clock::now() + kRestartPause;
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    tell_(Incident::refused, fmt::format("the gate does not start: {}", std::strerror(errno)));
    return;
  }
  std::vector<int> kept{pair[1]};
  std::vector<std::string> words = words_of(orders_);
  words.insert(words.begin(), program());
  words.push_back(std::to_string(pair[1]));
  for (const net::ListeningSocket& door : doors_) {
    kept.push_back(door.descriptor());
    words.push_back(std::to_string(door.descriptor()));
  }
  const int error = SpawnSettings(kept).spawn(process_, std::move(words));
  close(pair[1]);
  channel_ = pair[0];
  if (error != 0) {
    process_ = 0;
    tell_(Incident::refused, fmt::format("{} does not start: {}", program(), std::strerror(error)));
    end();
  }
}

/// It may have been taken over: all that it can say here is a signal's number.
void Process::tell_of_signal(std::string_view number) {
  const std::optional<unsigned> signal = text::parsed<unsigned>(number);
  if (signal && *signal > 0 && *signal < static_cast<unsigned>(NSIG)) {
    tell_(Incident::connection_killed,
          fmt::format("a client's connection ended its process in the gate by signal {}; others "
                      "go on",
                      *signal));
  }
}

std::optional<int> Process::take() {
  const std::optional<Message> message = receive(channel_);
  if (!message) {
    return std::nullopt;
  }
  if (message->news == News::connection) {
    return message->descriptor;
  }
  if (message->news == News::ended) {
    tell_of_signal(message->text);
  } else if (message->news == News::files) {
    tell_(Incident::refused,
          fmt::format("{}; new connections are served with what the files had before",
                      text::printable(message->text)));
  }
  return std::nullopt;
}

/// One that has been taken over may leave its channel to a child and exit.
bool Process::has_exited() {
  if (process_ <= 0 || waitpid(process_, nullptr, WNOHANG) != process_) {
    return false;
  }
  process_ = 0;
  return true;
}

void Process::look_after(Clock::time_point now) {
  if (channel_ >= 0 && (has_exited() || has_hung_up(channel_))) {
    end();
    tell_(Incident::acceptor_ended, "the gate has ended, and is started again; connections go on");
  }
  if (channel_ < 0 && now >= due_) {
    start();
  }
}

} // namespace weir::gate
