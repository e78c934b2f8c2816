// SPDX-License-Identifier: BSD-3-Clause
#include "events/text_sink.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace weir::events {

void TextSink::put(const Event& event) {
  std::fputs(fmt::format("weir: {}\n", line_of(event)).c_str(),
             stderr); // a lost terminal is no error
}

} // namespace weir::events
