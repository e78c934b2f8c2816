// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/headers.hpp"

#include <cstdint>

namespace weir::wire {

/// The fields in which all ranks' headers of one message must agree (docs/protocol.md §2).
struct MessageShape {
  Operation operation{};
  DataType data_type{};
  Collective collective{};
  std::uint16_t root = 0;
  std::uint32_t data_bytes = 0; // msg_len: tensor data after the INA header

  static MessageShape of(const InaHeader& ina) {
    return {static_cast<Operation>(ina.operation), static_cast<DataType>(ina.data_type),
            static_cast<Collective>(ina.collective), ina.root.get(), ina.message_length.get()};
  }

  std::uint64_t message_bytes() const { return std::uint64_t{data_bytes} + kInaHeaderBytes; }

  [[gnu::always_inline]] bool operator==(const MessageShape&) const = default;
};

} // namespace weir::wire
