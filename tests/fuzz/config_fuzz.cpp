// SPDX-License-Identifier: BSD-3-Clause

/// Any text is a configuration or a ConfigError, and what is accepted can be turned into rings.

#include "conn/ring_directory.hpp"
#include "control/config.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const weir::control::Config config = weir::control::parse_config(text, "fuzz");
    const weir::conn::RingDirectory directory(config.rings);
  } catch (const weir::control::ConfigError&) {
    return 0;
  }
  return 0;
}
