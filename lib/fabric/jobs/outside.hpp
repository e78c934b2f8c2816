// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "jobs/site.hpp"

#include <cstdint>
#include <string>
#include <weir/v1/fabric.pb.h>
#include <weir/v1/switch.pb.h>

namespace weir::jobs {

/// Milliseconds of a clock that nobody sets.
using Time = std::uint64_t;

/// A call HoldJob.
using CallId = std::uint64_t;

/// How an order or a call ended.
enum class Code : std::uint8_t {
  ok,
  refused,     // by the switch, for good: its words say why
  no_answer,   // it is not known whether it was done
  over,        // a higher term leads
  invalid,     // a request that cannot be
  not_allowed, // not the caller's
  exhausted,   // something is short
  impossible,  // no tree reaches all
  aborted,     // a switch refused, and all is taken back
  unavailable, // no leader, no store
  not_found,
};

struct Outcome {
  Code code = Code::ok;
  std::string words;
};

/// What the loop has others do. Answers come back as the loop's events.
class Outside {
 public:
  virtual ~Outside() = default;

  virtual void claim(SwitchIndex at, const v1::ClaimFabricRequest& request) = 0;
  virtual void apply(SwitchIndex at, const v1::ApplyRingsRequest& request) = 0;
  virtual void remove(SwitchIndex at, const v1::RemoveRingsRequest& request) = 0;
  /// Until it ends by itself.
  virtual void watch(SwitchIndex at, const v1::WatchSwitchRequest& request) = 0;
  virtual void tell(CallId call, const v1::JobEvent& event) = 0;
  /// The call's end.
  virtual void end(CallId call, const Outcome& outcome) = 0;
  /// A line of the log: a word that programs look for, and a sentence.
  virtual void note(const std::string& kind, const std::string& sentence) = 0;
  /// The manager leads no more. It gives no order after this.
  virtual void stop(const std::string& why) = 0;
  /// The same, of one that would lead with a higher epoch if it were started again.
  virtual void begin_again(const std::string& why) = 0;
};

} // namespace weir::jobs
