// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/transport/transport.hpp"
#include "weir/ina.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace weir::host {

/// One lane's share of a tensor.
struct Slice {
  const std::uint8_t* in = nullptr;
  std::uint8_t* out = nullptr; // may be in
  std::size_t bytes = 0;       // whole elements
  DataType type = DataType::f32;
  Operation operation = Operation::sum;
};

/// How a slice becomes its reduction: messages to the successor, messages from the predecessor. One
/// per lane; no I/O, no clock.
class Reducer {
 public:
  virtual ~Reducer() = default;

  /// Only when idle.
  virtual void begin(const Slice& slice) = 0;
  /// The next message to send, as far as one may be sent now.
  virtual std::optional<OutgoingMessage> next() = 0;
  /// The next message of the predecessor. Throws weir::Error when it is not what is due.
  virtual void accept(std::uint32_t immediate, std::span<const std::uint8_t> message) = 0;
  /// The oldest message under way was acknowledged.
  virtual void complete() = 0;

  /// Bytes of the slice's result that are in.
  virtual std::size_t bytes_done() const = 0;
  /// Results are in, messages acknowledged: the buffers are the caller's.
  virtual bool is_idle() const = 0;
  /// What it waits for, for an error's text.
  virtual std::string describe() const = 0;
};

} // namespace weir::host
