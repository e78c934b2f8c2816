// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/api/group.hpp"
#include "host/collective/slice.hpp"

#include <cstdint>
#include <thread>

namespace weir::app {

/// How a rank comes to the end of a call.
enum class Waiting : std::uint8_t {
  sleep, // as it is meant to
  spin,  // as a proxy thread does that has many things to look at
};

/// Returns when the call is done. Throws host::Error.
inline void finish(host::Pending& call, Waiting waiting) {
  while (waiting == Waiting::spin && !call.test()) {
    std::this_thread::yield();
  }
  call.wait();
}

/// Makes a rank's calls, one at a time.
class RankCalls {
 public:
  virtual ~RankCalls() = default;

  virtual host::Place place() const = 0;
  virtual std::uint32_t epoch() const = 0;
  /// Returns when the call is done. Throws host::Error.
  virtual void make(const void* in, void* out, const host::Call& call) = 0;
};

/// By a group, which must outlive it.
class GroupCalls : public RankCalls {
 public:
  explicit GroupCalls(host::Group& group, Waiting waiting = Waiting::sleep)
      : group_(group), waiting_(waiting) {}

  host::Place place() const override { return {group_.rank(), group_.world()}; }

  std::uint32_t epoch() const override { return group_.epoch(); }

  void make(const void* in, void* out, const host::Call& call) override {
    host::Pending pending = group_.start(in, out, call);
    finish(pending, waiting_);
  }

 private:
  host::Group& group_;
  const Waiting waiting_;
};

} // namespace weir::app
