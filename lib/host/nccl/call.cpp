// SPDX-License-Identifier: BSD-3-Clause
#include "host/nccl/call.hpp"

#include <atomic>

namespace weir::nccl {
namespace {

std::atomic<Logger> nccls_logger{nullptr};

} // namespace

void set_logger(Logger logger) {
  nccls_logger = logger;
}

void log_line(LogLevel level, const std::string& text) {
  if (const Logger logger = nccls_logger; logger != nullptr) {
    logger(level, kInitAndNet, "weir", 0, "Weir: %s", text.c_str());
  }
}

} // namespace weir::nccl
