// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::host {

/// A part of what a descriptor stands for: of a dma-buf, or anything else that can be mapped.
struct DmabufRange {
  int descriptor = -1;
  std::uint64_t offset = 0; // bytes
  std::size_t bytes = 0;
};

/// The part as memory of this process, until the end. The descriptor may be closed before. Throws
/// std::invalid_argument for a part that is not there, and Error where the CPU cannot reach it.
class MappedDmabuf {
 public:
  explicit MappedDmabuf(const DmabufRange& range);
  ~MappedDmabuf();
  MappedDmabuf(const MappedDmabuf&) = delete;
  MappedDmabuf& operator=(const MappedDmabuf&) = delete;

  std::span<std::uint8_t> bytes() const { return bytes_; }

 private:
  std::span<std::uint8_t> pages_;
  std::span<std::uint8_t> bytes_; // of those
};

} // namespace weir::host
