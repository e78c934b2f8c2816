// SPDX-License-Identifier: BSD-3-Clause
#include "operators.hpp"

#include "weir/ina.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>

namespace weir::fabric {
namespace {

constexpr std::array<std::string_view, kOperatorTexts> kTexts{
    "weir-operator 1\nname halved\nread u8 v\nlanes u32\nidentity none\nstart acc = v\n"
    "fold acc = (acc + v) >> 1\nfinish out = wrap(acc)\n",
    "weir-operator 1\nname clipped\nread i8 v\nlanes i16\nidentity v 0\nstart acc = v\n"
    "fold acc = acc + v\nfinish flag 9 when acc > 127 | acc < -128\n  out = clip(acc)\n"};

/// All scenarios share them.
const std::array<std::shared_ptr<const program::Operator>, kOperatorTexts>& operators() {
  static const std::array loaded{program::Operator::load(kTexts[0]),
                                 program::Operator::load(kTexts[1])};
  return loaded;
}

constexpr std::size_t kFlags = 8; // bytes at a packet's end

/// Bytes begin to end of each tensor are one packet.
void clip_packet(std::vector<std::uint8_t>& sum, const Tensors& tensors, std::size_t begin,
                 std::size_t end) {
  const std::size_t flags = end - kFlags;
  for (std::size_t at = begin; at < flags; ++at) {
    std::int16_t total = 0;
    for (const std::vector<std::uint8_t>& one : tensors) {
      total = static_cast<std::int16_t>(total + static_cast<std::int8_t>(one[at]));
    }
    const int kept = std::clamp<int>(total, -128, 127);
    sum[at] = static_cast<std::uint8_t>(kept);
    sum[flags + 1] |= kept == total ? 0 : 2; // flag 9
  }
  for (std::size_t at = flags; at < end; ++at) {
    for (const std::vector<std::uint8_t>& one : tensors) {
      sum[at] |= one[at];
    }
  }
}

} // namespace

program::LoadedOperators loaded_operators(const std::vector<std::uint32_t>& rings_of_second) {
  std::vector<program::LoadedOperator> rows{{operators()[0], {{}}}, {operators()[1], {}}};
  for (const std::uint32_t ring : rings_of_second) {
    rows[1].owners.push_back({.tenant = {}, .ring = ring});
  }
  return program::LoadedOperators(std::move(rows));
}

wire::OperatorTable operator_table() {
  wire::OperatorTable table;
  for (const auto& one : operators()) {
    table.add(one->digest());
  }
  return table;
}

std::vector<std::uint8_t> fold_by_operator(Operation number, const Tensors& tensors,
                                           const PacketCut& cut) {
  std::vector<std::uint8_t> sum(tensors.front().size());
  if (static_cast<std::uint8_t>(number) == kFirstOperator) {
    for (std::size_t at = 0; at < sum.size(); ++at) {
      unsigned half = tensors.front()[at];
      for (std::size_t rank = 1; rank < tensors.size(); ++rank) {
        half = (half + tensors[rank][at]) / 2;
      }
      sum[at] = static_cast<std::uint8_t>(half);
    }
    return sum;
  }
  const std::size_t message = (cut.message_bytes - kInaHeaderBytes) / 8 * 8;
  for (std::size_t at = 0; at < sum.size();) {
    const std::size_t inside = at % message;
    const std::size_t most = inside == 0 ? cut.mtu - kInaHeaderBytes : cut.mtu;
    const std::size_t end = std::min({at + most, at - inside + message, sum.size()});
    clip_packet(sum, tensors, at, end);
    at = end;
  }
  return sum;
}

} // namespace weir::fabric
