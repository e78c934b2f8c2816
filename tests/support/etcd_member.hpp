// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "support/free_address.hpp"
#include "support/temporary_folder.hpp"

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace weir::test {

/// Debian's package etcd-server, unpacked by tools/prepare, or installed by somebody. Empty: there
/// is none.
inline std::string etcd_program() {
  for (const char* const file :
       {WEIR_SOURCE_ROOT "/build/etcd-server/usr/bin/etcd", "/usr/bin/etcd"}) {
    if (access(file, X_OK) == 0) {
      return file;
    }
  }
  return "";
}

/// An etcd of one member on loopback, with its data in a folder of its own.
class EtcdMember {
 public:
  EtcdMember() : url_("http://" + free_address()), process_(start()) {}

  ~EtcdMember() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }

  EtcdMember(const EtcdMember&) = delete;
  EtcdMember& operator=(const EtcdMember&) = delete;

  const std::string& url() const { return url_; }

  void pause() const { kill(process_, SIGSTOP); }

  void go_on() const { kill(process_, SIGCONT); }

 private:
  pid_t start() const {
    const std::string peer = "http://" + free_address();
    std::vector<std::string> words{etcd_program(),
                                   "--data-dir=" + (folder_.path() / "data").string(),
                                   "--listen-client-urls=" + url_,
                                   "--advertise-client-urls=" + url_,
                                   "--listen-peer-urls=" + peer,
                                   "--initial-advertise-peer-urls=" + peer,
                                   "--initial-cluster=default=" + peer,
                                   "--log-level=error"};
    std::vector<char*> arguments;
    for (std::string& word : words) {
      arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    const std::string log = (folder_.path() / "log").string();
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
      dup2(file, STDOUT_FILENO);
      dup2(file, STDERR_FILENO);
      execv(arguments.front(), arguments.data());
      _exit(127);
    }
    return child;
  }

  const TemporaryFolder folder_{"weir-etcd"};
  const std::string url_;
  const pid_t process_;
};

} // namespace weir::test
