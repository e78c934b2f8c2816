// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::host {

/// Tensors that are reduced as one, as if they lay one after the other without gaps. Offsets count
/// bytes from the first one's beginning.
class TensorList {
 public:
  struct Tensor {
    const std::uint8_t* in = nullptr;
    std::uint8_t* out = nullptr; // may be `in`
    std::size_t bytes = 0;
  };

  explicit TensorList(std::vector<Tensor> tensors);

  std::span<const Tensor> tensors() const { return tensors_; }

  /// The bytes of `in` where they lie, if they are of one tensor. Empty otherwise.
  std::span<const std::uint8_t> find(std::size_t offset, std::size_t bytes) const;

  /// The same of `out`.
  std::span<std::uint8_t> find_target(std::size_t offset, std::size_t bytes) const;

  /// Copies bytes of `in`, whatever tensors they are of.
  void gather(std::size_t offset, std::span<std::uint8_t> to) const;

  /// Copies bytes to `out`, whatever tensors they are of.
  void scatter(std::size_t offset, std::span<const std::uint8_t> from) const;

 private:
  struct Place {
    const Tensor& tensor;
    std::size_t offset; // in it
  };

  std::size_t index_at(std::size_t offset) const;
  std::optional<Place> place_of(std::size_t offset, std::size_t bytes) const;
  template <typename Visitor>
  void visit(std::size_t offset, std::size_t bytes, Visitor visitor) const;

  std::vector<Tensor> tensors_;
  std::vector<std::size_t> ends_; // offsets
};

} // namespace weir::host
