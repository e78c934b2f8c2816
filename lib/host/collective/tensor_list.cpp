// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/tensor_list.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace weir::host {

TensorList::TensorList(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
  std::size_t end = 0;
  for (const Tensor& tensor : tensors_) {
    ends_.push_back(end += tensor.bytes);
  }
}

/// The tensor that has the byte; an empty one has none.
std::size_t TensorList::index_at(std::size_t offset) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(ends_, offset) - ends_.begin());
}

/// Where the bytes lie, if they are of one tensor.
std::optional<TensorList::Place> TensorList::place_of(std::size_t offset, std::size_t bytes) const {
  const std::size_t index = index_at(offset);
  if (index == ends_.size() || offset + bytes > ends_[index]) {
    return std::nullopt;
  }
  const Tensor& tensor = tensors_[index];
  return Place{tensor, offset - (ends_[index] - tensor.bytes)};
}

std::span<const std::uint8_t> TensorList::find(std::size_t offset, std::size_t bytes) const {
  const std::optional<Place> place = place_of(offset, bytes);
  return place ? std::span(place->tensor.in + place->offset, bytes)
               : std::span<const std::uint8_t>();
}

std::span<std::uint8_t> TensorList::find_target(std::size_t offset, std::size_t bytes) const {
  const std::optional<Place> place = place_of(offset, bytes);
  return place ? std::span(place->tensor.out + place->offset, bytes) : std::span<std::uint8_t>();
}

/// Calls visitor(tensor, offset in it, offset in the bytes, number of bytes) for each part.
template <typename Visitor>
void TensorList::visit(std::size_t offset, std::size_t bytes, Visitor visitor) const {
  std::size_t index = index_at(offset);
  for (std::size_t done = 0; done < bytes; ++index) {
    assert(index < tensors_.size());
    const Tensor& tensor = tensors_[index];
    const std::size_t part = std::min(ends_[index] - (offset + done), bytes - done);
    visitor(tensor, tensor.bytes - (ends_[index] - (offset + done)), done, part);
    done += part;
  }
}

void TensorList::gather(std::size_t offset, std::span<std::uint8_t> to) const {
  visit(offset, to.size(),
        [&](const Tensor& tensor, std::size_t at, std::size_t done, std::size_t bytes) {
          if (bytes != 0) {
            std::memcpy(to.data() + done, tensor.in + at, bytes);
          }
        });
}

void TensorList::scatter(std::size_t offset, std::span<const std::uint8_t> from) const {
  visit(offset, from.size(),
        [&](const Tensor& tensor, std::size_t at, std::size_t done, std::size_t bytes) {
          if (bytes != 0) {
            std::memcpy(tensor.out + at, from.data() + done, bytes);
          }
        });
}

} // namespace weir::host
