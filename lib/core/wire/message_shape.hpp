// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/headers.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weir::wire {

/// The fields in which all ranks' headers of one message must agree (docs/protocol.md §2).
struct MessageShape {
  std::uint32_t data_bytes = 0; // msg_len: tensor data after the INA header
  std::uint16_t root = 0;
  Operation operation{};
  DataType data_type{};
  Collective collective{};

  static MessageShape of(const InaHeader& ina) {
    return {.data_bytes = ina.message_length.get(),
            .root = ina.root.get(),
            .operation = static_cast<Operation>(ina.operation),
            .data_type = static_cast<DataType>(ina.data_type),
            .collective = static_cast<Collective>(ina.collective)};
  }

  std::uint64_t message_bytes() const { return std::uint64_t{data_bytes} + kInaHeaderBytes; }

  bool is_by_operator() const { return data_type == kAsOperator; }

  /// As if by member; in two comparisons.
  [[gnu::always_inline]] bool operator==(const MessageShape& other) const {
    constexpr std::size_t bytes = offsetof(MessageShape, collective) + sizeof collective;
    static_assert(bytes == sizeof data_bytes + sizeof root + sizeof operation + sizeof data_type +
                               sizeof collective,
                  "there are no bytes between the members");
    return std::memcmp(this, &other, bytes) == 0;
  }
};

} // namespace weir::wire
