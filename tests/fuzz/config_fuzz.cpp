// SPDX-License-Identifier: BSD-3-Clause

/// Any text gives a configuration or a ConfigError. An accepted one can be turned into rings.

#include "config/config.hpp"
#include "ring/ring_set.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const weir::config::Config config = weir::config::parse_config(text, "fuzz");
    const weir::ring::RingSet rings(config.rings);
  } catch (const weir::config::ConfigError&) {
    return 0;
  }
  return 0;
}
