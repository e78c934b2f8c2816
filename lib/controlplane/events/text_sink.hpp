// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "events/event_log.hpp"

namespace weir::events {

/// "weir: ring 7: …", a line each, to standard error.
class TextSink : public LineSink {
 public:
  void put(const Event& event) override;
};

} // namespace weir::events
