// SPDX-License-Identifier: BSD-3-Clause
#include "events/text_sink.hpp"

namespace weir::events {

std::unique_ptr<LineSink> sink_of_this_process() {
  return std::make_unique<TextSink>();
}

} // namespace weir::events
