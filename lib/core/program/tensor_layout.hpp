// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "program/fold_program.hpp"
#include "program/message_layout.hpp"

#include <cstddef>
#include <span>

namespace weir::program {

/// A tensor of so many elements (numbers of blocks, or structs) as packets of an operator.
class TensorLayout {
 public:
  TensorLayout(const FoldProgram& program, const MessageLayout& messages)
      : program_(program), messages_(messages) {}

  static constexpr std::size_t kMostElements = std::size_t{1} << 48;

  /// In a whole message. 0: none fits into a packet, and the layout is of no use.
  std::size_t elements_of_message() const;

  /// Bytes of a tensor with so many elements, a multiple of 8. 0 for more than kMostElements.
  std::size_t bytes_of(std::size_t elements) const;

  /// Where the element's struct, or its block's codes and its code in them, begin. Of codes of 4
  /// and 6 bits, the byte that has the first bit.
  std::size_t place_of(std::size_t element) const;

  /// Numbers to blocks and back. `packed` has bytes_of() the numbers.
  void pack(std::byte* packed, std::span<const float> numbers) const;
  void unpack(std::span<float> numbers, const std::byte* packed) const;

  /// The fold of `bytes` bytes of each input, packet by packet, from where a message begins. `out`
  /// is none of the inputs.
  void reduce(std::byte* out, const std::byte* const* inputs, unsigned count,
              std::size_t bytes) const;

 private:
  struct Packet {
    std::size_t offset = 0;
    std::size_t first = 0; // element
    std::size_t elements = 0;
  };

  /// From an element with which a message begins.
  template <typename Visit>
  void each_packet(std::size_t first, std::size_t elements, Visit&& visit) const;
  std::size_t first_of_message(std::size_t element) const;

  const FoldProgram& program_;
  MessageLayout messages_;
};

} // namespace weir::program
