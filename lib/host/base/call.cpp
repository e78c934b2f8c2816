// SPDX-License-Identifier: BSD-3-Clause
#include "host/base/call.hpp"

#include <fmt/format.h>

#include <array>

namespace weir::host {
namespace {

bool is_sparse(CallKind kind) {
  return kind == CallKind::sparse_all_reduce;
}

} // namespace

std::string_view name_of(CallKind kind) {
  constexpr std::array<std::string_view, kCallKinds> names{
      "all-reduce",     "reduce",  "broadcast",        "all-gather",
      "reduce-scatter", "barrier", "sparse-all-reduce"};
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
          wire::be16(is_sparse(call.kind) ? call.block : call.root)};
}

Call decode(const CallBody& body, std::uint64_t sequence) {
  const auto kind = static_cast<CallKind>(body.kind);
  const std::uint16_t root_or_block = body.root_or_block.get();
  return {.sequence = sequence,
          .kind = kind,
          .count = body.count.get(),
          .type = static_cast<DataType>(body.type),
          .operation = static_cast<Operation>(body.operation),
          .finish = static_cast<Finish>(body.finish),
          .root = is_sparse(kind) ? std::uint16_t{0} : root_or_block,
          .block = is_sparse(kind) ? root_or_block : std::uint16_t{0}};
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
  if (is_sparse(call.kind)) {
    text +=
        call.block == 0 ? ", in blocks of any size" : fmt::format(", in blocks of {}", call.block);
  }
  if (call.has_root()) {
    text += fmt::format(", {} rank {}", call.kind == CallKind::reduce ? "to" : "from", call.root);
  }
  return text;
}

} // namespace weir::host
