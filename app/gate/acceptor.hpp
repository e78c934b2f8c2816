// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "rpc/tls_files.hpp"

#include <chrono>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace weir::gate {

/// Takes connections and gives each a process of its own, so that what a client does to the
/// libraries that read it befalls its own connection alone. It reads nothing of clients itself.
class Acceptor {
 public:
  static constexpr std::size_t kMostConnections = 64;
  static constexpr std::size_t kMostOfAnAddress = 16;

  /// `doors` listen. News go to the switch by `channel`.
  Acceptor(int channel, std::vector<int> doors, config::TlsFiles files);

  /// Until the switch has gone.
  void run();

 private:
  using Clock = std::chrono::steady_clock;

  struct Connection {
    pid_t process;
    std::string address;
  };

  void let_in(int door);
  bool has_room(const std::string& address) const;
  void begin(int client, std::string address);
  [[noreturn]] void serve(int client, int to_switch);
  /// The files may be others by now: those of the last look if they cannot be used.
  void read_files();
  void look_after_processes();
  void tell_end_of(const Connection& connection, int status);

  const int channel_;
  const std::vector<int> doors_;
  const config::TlsFiles files_;
  std::optional<rpc::PemTexts> texts_;
  std::string complaint_; // about the files
  std::list<Connection> connections_;
  std::map<std::string, Clock::time_point> barred_until_; // addresses whose process was killed
};

} // namespace weir::gate
