// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weir::capture {

/// A file that cannot be made or written. what() has its name and the reason.
class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Direction : std::uint32_t { unknown = 0, inbound = 1, outbound = 2 }; // as in epb_flags

struct PcapngPacket {
  std::uint32_t interface = 0;
  std::uint64_t time_ns = 0; // since 1970, UTC
  std::span<const std::uint8_t> bytes;
  std::uint32_t length = 0; // of the frame, without FCS; above bytes.size() if the copy was cut
  Direction direction{};
  std::string_view comment;
};

/// A pcapng file with one section of Ethernet packets (IETF draft-ietf-opsawg-pcapng). DPDK 22.11's
/// rte_pcapng and libpcap write no comments on packets. Blocks leave in the machine's byte order.
///
/// After each flush() the file is whole: it has no part of a block.
class PcapngFile {
 public:
  /// Makes the file, which must not exist. Interfaces have these names, in order; `most_bytes` of a
  /// frame are kept. Throws FileError.
  PcapngFile(const std::string& name, std::span<const std::string> interfaces,
             std::uint32_t most_bytes);
  ~PcapngFile();
  PcapngFile(const PcapngFile&) = delete;
  PcapngFile& operator=(const PcapngFile&) = delete;

  void add(const PcapngPacket& packet);

  /// Says of an interface how many packets it did not bring.
  void add_statistics(std::uint32_t interface, std::uint64_t time_ns, std::uint64_t left_out,
                      std::string_view comment);

  /// Throws FileError; then what was added since the last flush() is not in the file.
  void flush();

 private:
  void add_section();
  void add_interface(std::string_view name, std::uint32_t most_bytes);
  void take_back(std::uint64_t size);

  std::string name_;
  int file_;
  std::uint64_t size_ = 0; // bytes in the file
  std::vector<std::uint8_t> waiting_;
};

} // namespace weir::capture
