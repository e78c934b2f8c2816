// SPDX-License-Identifier: BSD-3-Clause
#include "events/text_sink.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace weir::events {

void TextSink::put(const Event& event) {
  fmt::print(stderr, "weir: {}\n", line_of(event));
}

} // namespace weir::events
