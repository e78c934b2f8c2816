// SPDX-License-Identifier: BSD-3-Clause
#include "host/bootstrap/call.hpp"

#include <fmt/format.h>

#include <array>

namespace weir::host {

std::string_view name_of(CallKind kind) {
  constexpr std::array<std::string_view, kCallKinds> names{
      "all-reduce", "reduce", "broadcast", "all-gather", "reduce-scatter", "barrier"};
  const auto index = static_cast<std::size_t>(kind);
  return index < names.size() ? names[index] : "unknown call";
}

std::optional<CallKind> call_kind_named(std::string_view name) {
  for (std::uint8_t kind = 0; kind < kCallKinds; ++kind) {
    if (name_of(static_cast<CallKind>(kind)) == name) {
      return static_cast<CallKind>(kind);
    }
  }
  return std::nullopt;
}

CallBody encode(const Call& call) {
  return {wire::be64(call.count),
          static_cast<std::uint8_t>(call.kind),
          static_cast<std::uint8_t>(call.type),
          static_cast<std::uint8_t>(call.operation),
          static_cast<std::uint8_t>(call.finish),
          wire::be16(call.root)};
}

Call decode(const CallBody& body, std::uint64_t sequence) {
  return {.sequence = sequence,
          .kind = static_cast<CallKind>(body.kind),
          .count = body.count.get(),
          .type = static_cast<DataType>(body.type),
          .operation = static_cast<Operation>(body.operation),
          .finish = static_cast<Finish>(body.finish),
          .root = body.root.get()};
}

std::string describe(const Call& call) {
  std::string text(name_of(call.kind));
  if (call.kind != CallKind::barrier) {
    text += fmt::format(" of {} {}", call.count, name_of(call.type));
  }
  if (call.reduces()) {
    text +=
        fmt::format(", {}", call.finish == Finish::average ? "average" : name_of(call.operation));
  }
  if (call.has_root()) {
    text += fmt::format(", {} rank {}", call.kind == CallKind::reduce ? "to" : "from", call.root);
  }
  return text;
}

} // namespace weir::host
