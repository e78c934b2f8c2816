// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "weir/ina.hpp"
#include "wire/big_endian.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::host {

/// The collectives of MPI. The switch knows all-reduce, broadcast and barrier; the others are made
/// of these (docs/protocol.md §2).
enum class CallKind : std::uint8_t {
  all_reduce = 0,
  reduce = 1,         // all-reduce, of which the root alone keeps the result
  broadcast = 2,      //
  all_gather = 3,     // broadcasts whose root is each rank in turn
  reduce_scatter = 4, // all-reduce, of which each rank keeps its share
  barrier = 5,
  sparse_all_reduce = 6, // all-reduces of a bitmap and of the blocks that some rank has
};

inline constexpr std::uint8_t kCallKinds = 7;
inline constexpr std::uint8_t kDenseCallKinds =
    6; // the first ones, whose ranks bring whole tensors

/// "all-reduce" and so on.
std::string_view name_of(CallKind kind);
std::optional<CallKind> call_kind_named(std::string_view name);

/// What becomes of a reduction's result on the hosts.
enum class Finish : std::uint8_t {
  none = 0,
  average = 1, // of a sum: divided by the number of ranks
};

/// What the ranks of one call must agree on.
struct Call {
  std::uint64_t sequence = 0; // 1, 2, … of the job
  CallKind kind = CallKind::all_reduce;
  std::uint64_t count = 0; // elements; of one rank's share in an all-gather and a reduce-scatter
  DataType type = DataType::f32;
  Operation operation = Operation::sum; // where something is reduced
  Finish finish = Finish::none;
  std::uint16_t root = 0;  // of reduce and broadcast
  std::uint16_t block = 0; // elements of a block in a sparse all-reduce; 0: the ranks choose

  bool operator==(const Call&) const = default;

  bool reduces() const {
    return kind == CallKind::all_reduce || kind == CallKind::reduce ||
           kind == CallKind::reduce_scatter || kind == CallKind::sparse_all_reduce;
  }

  bool has_root() const { return kind == CallKind::reduce || kind == CallKind::broadcast; }
};

/// A call between hosts, without its number.
struct CallBody {
  wire::be64 count;
  std::uint8_t kind;
  std::uint8_t type;
  std::uint8_t operation;
  std::uint8_t finish;
  wire::be16 root_or_block;
};

static_assert(sizeof(CallBody) == 14);

CallBody encode(const Call& call);
Call decode(const CallBody& body, std::uint64_t sequence);

/// For errors: "reduce of 100 f32, sum, to rank 2".
std::string describe(const Call& call);

} // namespace weir::host
