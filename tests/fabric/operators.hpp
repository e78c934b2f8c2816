// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "program/loaded_operators.hpp"
#include "values.hpp"
#include "wire/operator_table.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::fabric {

/// Operators of the users' own that jobs may fold by: number 0 depends on the order of ranks and on
/// the tree; 1 clips and has a flag in each packet.
inline constexpr std::size_t kOperatorTexts = 2;

/// All of them; the second one for rings with these ids alone.
program::LoadedOperators loaded_operators(const std::vector<std::uint32_t>& rings_of_second);
wire::OperatorTable operator_table();

/// How a message's bytes lie in packets.
struct PacketCut {
  std::size_t mtu = 0;
  std::size_t message_bytes = 0; // the INA header included
};

/// What the operator of this number makes of tensors, as its text says: worked out here, without
/// the program.
std::vector<std::uint8_t> fold_by_operator(Operation number, const Tensors& tensors,
                                           const PacketCut& cut);

} // namespace weir::fabric
