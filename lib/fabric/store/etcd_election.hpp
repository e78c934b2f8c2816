// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "store/etcd_calls.hpp"
#include "store/store.hpp"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace weir::store {

/// One of several that want to lead: waits in etcd's election for its turn, and then keeps the
/// lease on which it leads. A thread of its own asks.
class EtcdElection {
 public:
  /// `calls` outlives it. `name` is the election's key, `value` what others read of who leads.
  EtcdElection(EtcdCalls& calls, std::string name, std::string value);
  /// Gives the lease back, so that another leads at once.
  ~EtcdElection();
  EtcdElection(const EtcdElection&) = delete;
  EtcdElection& operator=(const EtcdElection&) = delete;

  /// By which key it leads, and the revision that made it.
  struct Key {
    std::string key;
    std::int64_t revision = 0;
  };

  // Any thread.
  Leadership leadership() const;
  Key key() const;
  /// Etcd has answered lately: a question has a chance.
  bool is_heard() const;
  /// A transaction has found that another leads.
  void lose();
  /// What etcd said last, if it is no good: leadership() has it.
  void note_answer(const grpc::Status& status);

 private:
  class Campaign;
  enum class Pulse : std::uint8_t { alive, silent, gone };

  void run();
  bool grant();
  bool win();
  void hold();
  Pulse keep_alive();
  void look_for_leader();
  void count_standbys();
  void revoke();
  bool pause();
  bool is_stopped() const;
  void enter(Standing standing);

  EtcdCalls& calls_;
  const std::string name_;
  const std::string value_;
  std::int64_t lease_ = 0;   // of the thread
  mutable std::mutex mutex_; // guards all below
  std::condition_variable stopped_;
  Standing standing_ = Standing::stands_by;
  Key key_;
  std::string leader_;
  std::string trouble_;
  std::optional<std::uint64_t> standbys_;
  std::uint64_t heard_ms_ = 0; // when the last question was asked that the lease's keeper answered
  bool is_stopped_ = false;
  std::thread thread_; // the last: it uses all others
};

} // namespace weir::store
