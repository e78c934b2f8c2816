// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/mapped_dmabuf.hpp"

#include "host/base/error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weir::host {
namespace {

/// A dma-buf and a file have a length; what has none, mmap judges. Nothing of an empty file is to
/// be touched, though it can be mapped.
void check(const DmabufRange& range) {
  struct stat known {};

  if (fstat(range.descriptor, &known) != 0) {
    throw std::invalid_argument(fmt::format("dmabuf.fd: found {}: {}; allowed: an open descriptor",
                                            range.descriptor, std::strerror(errno)));
  }
  const auto whole = static_cast<std::uint64_t>(known.st_size);
  const bool has_length = whole != 0 || S_ISREG(known.st_mode);
  const bool is_inside = range.offset <= whole && range.bytes <= whole - range.offset;
  if (range.bytes == 0 || range.bytes > PTRDIFF_MAX || (has_length && !is_inside)) {
    throw std::invalid_argument(
        fmt::format("dmabuf: found {} bytes from {} on, of a descriptor with {}; allowed: 1 and "
                    "more, inside",
                    range.bytes, range.offset, whole));
  }
}

std::size_t page_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

} // namespace

MappedDmabuf::MappedDmabuf(const DmabufRange& range) {
  check(range);
  const std::size_t before = range.offset % page_bytes();
  const std::size_t length = before + range.bytes;
  void* const pages = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, range.descriptor,
                           static_cast<off_t>(range.offset - before));
  if (pages == MAP_FAILED) {
    throw Error(ErrorCode::transport_failure, std::nullopt,
                fmt::format("descriptor {}: {} bytes from {} on cannot be mapped: {}; allowed: a "
                            "dma-buf that was exported to be read and written by the CPU, by which "
                            "the library copies what a device does not take by itself",
                            range.descriptor, range.bytes, range.offset, std::strerror(errno)));
  }
  pages_ = {static_cast<std::uint8_t*>(pages), length};
  bytes_ = pages_.subspan(before);
}

MappedDmabuf::~MappedDmabuf() {
  munmap(pages_.data(), pages_.size());
}

} // namespace weir::host
