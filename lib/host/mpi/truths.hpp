// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

/// Integers as MPI's logical operations see them: each but 0 is true.
namespace weir::mpi {

/// A byte for each of `count` integers of `bytes` bytes, 1 to 8: 0 or 1.
std::vector<std::byte> truths_of(const std::byte* integers, std::size_t count, std::size_t bytes);

/// The same bytes as integers of `bytes` bytes.
void put_truths(const std::vector<std::byte>& truths, std::byte* integers, std::size_t bytes);

} // namespace weir::mpi
