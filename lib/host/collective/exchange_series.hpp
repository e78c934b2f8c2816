// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/collective/slice.hpp"

#include <cstdint>

namespace weir::host {

/// A collective between all ranks, as the channels carry it.
struct Exchange {
  Call call;
  CallBuffers buffers;
};

/// A call that takes several exchanges. The result of one decides the next, so calls behind it wait
/// until its last one has begun: else the ranks' messages would have different orders.
class ExchangeSeries {
 public:
  enum class Step : std::uint8_t {
    next,   // current() is another one, and may begin
    done,   // that was the last
    differs // the ranks made different calls: nothing follows until rank 0 says who called what
  };

  virtual ~ExchangeSeries() = default;

  /// The one under way.
  virtual Exchange current() = 0;
  /// Whether it is the last one.
  virtual bool is_last() const = 0;
  /// Takes its result. After `differs`, does nothing and says so again.
  virtual Step advance() = 0;
};

} // namespace weir::host
