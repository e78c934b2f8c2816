// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/api/group.hpp"
#include "host/collective/slice.hpp"

#include <cstdint>

namespace weir::app {

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
  explicit GroupCalls(host::Group& group) : group_(group) {}

  host::Place place() const override { return {group_.rank(), group_.world()}; }

  std::uint32_t epoch() const override { return group_.epoch(); }

  void make(const void* in, void* out, const host::Call& call) override {
    group_.start(in, out, call).wait();
  }

 private:
  host::Group& group_;
};

} // namespace weir::app
