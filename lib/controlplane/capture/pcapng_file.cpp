// SPDX-License-Identifier: BSD-3-Clause
#include "capture/pcapng_file.hpp"

#include <fmt/format.h>

#include <cassert>
#include <cerrno>
#include <concepts>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weir::capture {
namespace {

enum class BlockType : std::uint32_t {
  section = 0x0a0d0d0a,
  interface = 1,
  statistics = 5,
  packet = 6, // Enhanced Packet Block
};

// Options, by block.
constexpr std::uint16_t kComment = 1;          // of all
constexpr std::uint16_t kUserApplication = 4;  // of a section
constexpr std::uint16_t kInterfaceName = 2;    // of an interface
constexpr std::uint16_t kTimeResolution = 9;   // likewise
constexpr std::uint16_t kPacketFlags = 2;      // of a packet
constexpr std::uint16_t kInterfaceDropped = 5; // of statistics

constexpr std::uint32_t kByteOrder = 0x1a2b3c4d;
constexpr std::uint64_t kUnknownLength = UINT64_MAX; // of a section
constexpr std::uint16_t kEthernet = 1;               // LINKTYPE_ETHERNET
constexpr std::uint8_t kNanoseconds = 9;             // 10^-9 s

/// A block at the end of a buffer. Everything in it is padded to four bytes; its length stands at
/// its begin and its end.
class Block {
 public:
  Block(std::vector<std::uint8_t>& out, BlockType type) : out_(out), start_(out.size()) {
    number(static_cast<std::uint32_t>(type));
    number(std::uint32_t{0}); // the length, once it is known
  }

  ~Block() {
    const auto length = static_cast<std::uint32_t>(out_.size() - start_ + sizeof(std::uint32_t));
    assert(length % sizeof(std::uint32_t) == 0);
    number(length);
    std::memcpy(out_.data() + start_ + sizeof(std::uint32_t), &length, sizeof length);
  }

  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  template <std::unsigned_integral Number>
  void number(Number value) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
    out_.insert(out_.end(), bytes, bytes + sizeof value);
  }

  void time(std::uint64_t nanoseconds) {
    number(static_cast<std::uint32_t>(nanoseconds >> 32));
    number(static_cast<std::uint32_t>(nanoseconds));
  }

  void padded(std::span<const std::uint8_t> bytes) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
    out_.resize(out_.size() + -bytes.size() % 4);
  }

  void option(std::uint16_t code, std::string_view text) {
    number(code);
    number(static_cast<std::uint16_t>(text.size()));
    padded({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  }

  template <std::unsigned_integral Number>
  void option(std::uint16_t code, Number value) {
    option(code, std::string_view(reinterpret_cast<const char*>(&value), sizeof value));
  }

  void end_options() { number(std::uint32_t{0}); }

 private:
  std::vector<std::uint8_t>& out_;
  std::size_t start_;
};

int create(const std::string& name) {
  const int file = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0 && errno == EEXIST) {
    throw FileError(fmt::format("file: found '{}', which exists; allowed: a new file", name));
  }
  if (file < 0) {
    throw FileError(fmt::format("file: '{}' cannot be made: {}", name, std::strerror(errno)));
  }
  return file;
}

} // namespace

PcapngFile::PcapngFile(const std::string& name, std::span<const std::string> interfaces,
                       std::uint32_t most_bytes)
    : name_(name), file_(create(name)) {
  add_section();
  for (const std::string& interface : interfaces) {
    add_interface(interface, most_bytes);
  }
  try {
    flush();
  } catch (const FileError&) {
    close(file_);
    throw;
  }
}

PcapngFile::~PcapngFile() {
  close(file_);
}

void PcapngFile::add_section() {
  Block block(waiting_, BlockType::section);
  block.number(kByteOrder);
  block.number(std::uint16_t{1}); // version 1.0
  block.number(std::uint16_t{0});
  block.number(kUnknownLength);
  block.option(kUserApplication, "weir");
  block.end_options();
}

void PcapngFile::add_interface(std::string_view name, std::uint32_t most_bytes) {
  Block block(waiting_, BlockType::interface);
  block.number(kEthernet);
  block.number(std::uint16_t{0});
  block.number(most_bytes);
  block.option(kInterfaceName, name);
  block.option(kTimeResolution, kNanoseconds);
  block.end_options();
}

void PcapngFile::add(const PcapngPacket& packet) {
  Block block(waiting_, BlockType::packet);
  block.number(packet.interface);
  block.time(packet.time_ns);
  block.number(static_cast<std::uint32_t>(packet.bytes.size()));
  block.number(packet.length);
  block.padded(packet.bytes);
  block.option(kPacketFlags, static_cast<std::uint32_t>(packet.direction));
  block.option(kComment, packet.comment);
  block.end_options();
}

void PcapngFile::add_statistics(std::uint32_t interface, std::uint64_t time_ns,
                                std::uint64_t left_out, std::string_view comment) {
  Block block(waiting_, BlockType::statistics);
  block.number(interface);
  block.time(time_ns);
  block.option(kInterfaceDropped, left_out);
  block.option(kComment, comment);
  block.end_options();
}

void PcapngFile::flush() {
  std::size_t done = 0;
  while (done < waiting_.size()) {
    const ssize_t written = write(file_, waiting_.data() + done, waiting_.size() - done);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0) {
      const std::string reason = std::strerror(errno);
      take_back(size_);
      throw FileError(fmt::format("file: '{}' cannot be written: {}", name_, reason));
    }
    done += static_cast<std::size_t>(written);
  }
  size_ += done;
  waiting_.clear();
}

/// Cuts off a part of a block.
void PcapngFile::take_back(std::uint64_t size) {
  waiting_.clear();
  if (ftruncate(file_, static_cast<off_t>(size)) == 0) {
    lseek(file_, static_cast<off_t>(size), SEEK_SET);
  }
}

} // namespace weir::capture
