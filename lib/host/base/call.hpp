// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "op/collectives.hpp"
#include "weir/ina.hpp"
#include "wire/big_endian.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::host {

/// The collectives of MPI. The switch knows all-reduce, broadcast and barrier; the others are made
/// of these (docs/protocol.md §2).
enum class CallKind : std::uint8_t {
  all_reduce = 0,
  reduce = 1,
  broadcast = 2,
  all_gather = 3,
  reduce_scatter = 4,
  barrier = 5,
  sparse_all_reduce = 6,
};

/// How much of a tensor a rank brings to a call, or gets from it.
enum class Amount : std::uint8_t {
  nothing,
  share,           // the call's count of elements
  share_of_each,   // as many for each rank, in the order of the ranks
  share_in_blocks, // those blocks of a share that are not 0
};

/// Describes a call. A new one is a new row.
struct CallRow {
  CallKind kind{};
  std::string_view name;
  Collective collective{}; // of its messages; several roots in turn if each rank brings a share
  op::Who contributes{};   // whose data make the result
  op::Who receives{};      // who keeps it, or a part of it
  Amount brings{};         // of each rank that contributes
  Amount gets{};           // of each rank that receives
};

inline constexpr auto kCallRows = [] {
  using enum op::Who;
  using enum Amount;
  using Kind = CallKind;
  using On = Collective;
  return std::to_array<CallRow>({
      {Kind::all_reduce, "all-reduce", On::all_reduce, everybody, everybody, share, share},
      {Kind::reduce, "reduce", On::all_reduce, everybody, root, share, share},
      {Kind::broadcast, "broadcast", On::broadcast, root, everybody, share, share},
      {Kind::all_gather, "all-gather", On::broadcast, everybody, everybody, share, share_of_each},
      {Kind::reduce_scatter, "reduce-scatter", On::all_reduce, everybody, everybody, share_of_each,
       share},
      {Kind::barrier, "barrier", On::barrier, nobody, nobody, nothing, nothing},
      {Kind::sparse_all_reduce, "sparse-all-reduce", On::all_reduce, everybody, everybody,
       share_in_blocks, share},
  });
}();

inline constexpr std::uint8_t kCallKinds = kCallRows.size();

static_assert(std::ranges::all_of(kCallRows,
                                  [](const CallRow& row) {
                                    return &row == &kCallRows[static_cast<std::size_t>(row.kind)];
                                  }),
              "a row stands at its call's number");

/// Calls whose ranks bring whole tensors.
inline constexpr auto kDenseCalls = [] {
  constexpr auto is_dense = [](const CallRow& row) {
    return row.brings != Amount::share_in_blocks;
  };
  std::array<CallKind, std::ranges::count_if(kCallRows, is_dense)> kinds{};
  auto* next = kinds.begin();
  for (const CallRow& row : kCallRows) {
    if (is_dense(row)) {
      *next++ = row.kind;
    }
  }
  return kinds;
}();

/// Of a number that is no call, which another rank may send: one that has a count and moves
/// nothing.
inline constexpr CallRow kUnknownCall{
    .name = "unknown call", .brings = Amount::share, .gets = Amount::share};

constexpr const CallRow& row_of(CallKind kind) {
  const auto number = static_cast<std::size_t>(kind);
  return number < kCallRows.size() ? kCallRows[number] : kUnknownCall;
}

/// "all-reduce" and so on.
constexpr std::string_view name_of(CallKind kind) {
  return row_of(kind).name;
}

std::optional<CallKind> call_kind_named(std::string_view name);

/// What a call's count counts: elements of so many bytes. 0 for a number that is no type.
inline std::size_t bytes_of_element(DataType type) {
  return type == kAsOperator ? 1 : element_size(type);
}

/// What becomes of a reduction's result on the hosts.
enum class Finish : std::uint8_t {
  none = 0,
  average = 1, // of a sum: divided by the number of ranks
};

/// What the ranks of one call must agree on. Of kAsOperator the count is in bytes.
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

  const CallRow& row() const { return row_of(kind); }

  /// Whether an operation combines the ranks' data.
  bool reduces() const {
    return row().collective == Collective::all_reduce && row().contributes == op::Who::everybody;
  }

  bool has_root() const {
    return row().contributes == op::Who::root || row().receives == op::Who::root;
  }

  bool has_data() const { return row().brings != Amount::nothing; }

  bool is_sparse() const { return row().brings == Amount::share_in_blocks; }

  /// In the longer of input and result: one, or one of each rank.
  std::uint16_t shares(std::uint16_t world) const {
    const bool is_of_each =
        row().brings == Amount::share_of_each || row().gets == Amount::share_of_each;
    return is_of_each ? world : std::uint16_t{1};
  }
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
