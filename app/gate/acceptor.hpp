// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gate/orders.hpp"
#include "gate/tls_files.hpp"

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
  /// `doors` listen. News go to the service by `channel`.
  Acceptor(int channel, std::vector<int> doors, Orders orders);

  /// Until the service has gone.
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
  [[noreturn]] void serve(int client, int to_service, const std::string& address);
  /// The files may be others by now: those of the last look if they cannot be used.
  void read_files();
  void look_after_processes();
  void tell_end_of(const Connection& connection, int status);

  const int channel_;
  const std::vector<int> doors_;
  const Orders orders_;
  std::optional<PemTexts> texts_;
  std::string complaint_; // about the files
  std::list<Connection> connections_;
  std::map<std::string, Clock::time_point> barred_until_; // addresses whose process was killed
};

} // namespace weir::gate
