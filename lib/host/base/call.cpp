// SPDX-License-Identifier: BSD-3-Clause
#include "host/base/call.hpp"

#include <fmt/format.h>

namespace weir::host {

std::optional<CallKind> call_kind_named(std::string_view name) {
  const auto* const row = std::ranges::find(kCallRows, name, &CallRow::name);
  return row != kCallRows.end() ? std::optional(row->kind) : std::nullopt;
}

CallBody encode(const Call& call) {
  return {wire::be64(call.count),
          static_cast<std::uint8_t>(call.kind),
          static_cast<std::uint8_t>(call.type),
          static_cast<std::uint8_t>(call.operation),
          static_cast<std::uint8_t>(call.finish),
          wire::be16(call.is_sparse() ? call.block : call.root)};
}

Call decode(const CallBody& body, std::uint64_t sequence) {
  Call call{.sequence = sequence,
            .kind = static_cast<CallKind>(body.kind),
            .count = body.count.get(),
            .type = static_cast<DataType>(body.type),
            .operation = static_cast<Operation>(body.operation),
            .finish = static_cast<Finish>(body.finish)};
  (call.is_sparse() ? call.block : call.root) = body.root_or_block.get();
  return call;
}

std::string describe(const Call& call) {
  std::string text(name_of(call.kind));
  const bool is_by_operator = call.type == kAsOperator;
  if (call.has_data()) {
    text += fmt::format(" of {} {}", call.count, is_by_operator ? "bytes" : name_of(call.type));
  }
  if (is_by_operator) {
    text += fmt::format(", operator {}", static_cast<unsigned>(call.operation) - kFirstOperator);
  } else if (call.reduces()) {
    text +=
        fmt::format(", {}", call.finish == Finish::average ? "average" : name_of(call.operation));
  }
  if (call.is_sparse()) {
    text +=
        call.block == 0 ? ", in blocks of any size" : fmt::format(", in blocks of {}", call.block);
  }
  if (call.has_root()) {
    text += fmt::format(", {} rank {}", call.row().receives == op::Who::root ? "to" : "from",
                        call.root);
  }
  return text;
}

} // namespace weir::host
