// SPDX-License-Identifier: BSD-3-Clause
#include "manager/gate_log.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

namespace weir::manager::gate_log_test {
namespace {

using gate::Incident;
using std::chrono::milliseconds;
using Line = std::optional<std::string>;

constexpr GateLog::Clock::time_point kStart(std::chrono::hours(1));

TEST(GateLog, HasALineASecondOfWhatWasKilledAndCountsAll) {
  GateLog log;
  EXPECT_EQ(log.note(Incident::connection_killed, "killed", kStart), Line("killed"));
  for (int time = 1; time < 1000; ++time) {
    EXPECT_EQ(log.note(Incident::connection_killed, "killed", kStart + milliseconds(time)), Line());
  }
  EXPECT_EQ(log.note(Incident::acceptor_ended, "ended", kStart), Line("ended"));
  EXPECT_EQ(log.note(Incident::connection_killed, "killed", kStart + milliseconds(1000)),
            Line("killed; 999 times more before"));
  EXPECT_EQ(log.connections(), 1001U);
  EXPECT_EQ(log.acceptors(), 1U);
}

TEST(GateLog, RepeatsAComplaintEachMinute) {
  GateLog log;
  EXPECT_EQ(log.note(Incident::refused, "no key", kStart), Line("no key"));
  EXPECT_EQ(log.note(Incident::refused, "no key", kStart + milliseconds(59'999)), Line());
  EXPECT_EQ(log.note(Incident::refused, "another", kStart + milliseconds(59'999)), Line("another"));
  EXPECT_EQ(log.note(Incident::refused, "no key", kStart + milliseconds(60'000)), Line("no key"));
  EXPECT_EQ(log.note(Incident::refused, "no key", kStart + milliseconds(120'000)), Line("no key"));
  EXPECT_EQ(log.connections() + log.acceptors(), 0U);
}

} // namespace
} // namespace weir::manager::gate_log_test
