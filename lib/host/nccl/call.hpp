// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/nccl/abi.hpp"

#include <exception>
#include <stdexcept>
#include <string>

namespace weir::nccl {

/// What a call of NCCL's ends with, and the sentence for its log.
class Failure : public std::runtime_error {
 public:
  Failure(Result result, const std::string& text) : std::runtime_error(text), result_(result) {}

  Result result() const { return result_; }

 private:
  Result result_;
};

/// From the first init on; before it nothing is logged.
void set_logger(Logger logger);
/// A line of NCCL's log, begun with "Weir: ". NCCL_DEBUG=WARN or INFO shows it.
void log_line(LogLevel level, const std::string& text);

/// Runs a call of NCCL's: no exception passes, and each failure is one line in NCCL's log.
template <typename Body>
Result call(const Body& body) noexcept {
  try {
    body();
    return Result::success;
  } catch (const Failure& failure) {
    log_line(LogLevel::warn, failure.what());
    return failure.result();
  } catch (const std::exception& error) {
    log_line(LogLevel::warn, error.what());
    return Result::internal_error;
  }
}

} // namespace weir::nccl
