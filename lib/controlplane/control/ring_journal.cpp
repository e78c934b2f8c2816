// SPDX-License-Identifier: BSD-3-Clause
#include "control/ring_journal.hpp"

#include "control/forgotten_rings.hpp"
#include "files/descriptor.hpp"
#include "files/replaced_file.hpp"
#include "files/trusted_folder.hpp"
#include "ring/ring.hpp"
#include "text/printable.hpp"
#include "weir/ina.hpp"
#include "weir/limits.hpp"
#include "wire/address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <system_error>
#include <unistd.h>

namespace weir::control {
namespace {

using Neighbours = RingJournal::Neighbours;

constexpr std::string_view kTenant = "tenant=";
constexpr std::string_view kEscapedTenant = "tenant-escaped="; // its odd bytes as %XX
constexpr std::string_view kLine = "IP addresses, then tenant=NAME if it was a tenant's";
constexpr std::string_view kWithoutMemory =
    "To start without what the switch remembered, move the file away; raw data of earlier jobs can "
    "pass then";

/// Graphic ASCII: such a name stands in a line as it is.
bool is_plain(char byte) {
  return byte > ' ' && byte <= '~';
}

/// A name of any bytes, without blanks and ends of lines.
std::string escaped(std::string_view name) {
  std::string out;
  for (const char byte : name) {
    out += is_plain(byte) && byte != '%' ? std::string(1, byte)
                                         : fmt::format("%{:02X}", static_cast<unsigned char>(byte));
  }
  return out;
}

/// nullopt: escaped() does not write that.
std::optional<std::string> unescaped(std::string_view text) {
  std::string name;
  for (std::size_t at = 0; at < text.size(); ++at) {
    name += text[at];
    if (text[at] == '%') {
      const std::string_view digits = text.substr(at + 1, 2);
      unsigned byte = 0;
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
      if (digits.size() != 2 || error != std::errc{} || end != digits.data() + digits.size()) {
        return std::nullopt;
      }
      name.back() = static_cast<char>(byte);
      at += digits.size();
    }
  }
  return name;
}

std::string tenant_word(const std::string& tenant) {
  return std::ranges::all_of(tenant, is_plain)
             ? fmt::format("{}{}", kTenant, tenant)
             : fmt::format("{}{}", kEscapedTenant, escaped(tenant));
}

/// The name that tenant_word() has written so; nullopt: it is no such word.
std::optional<std::string> tenant_in(std::string_view word) {
  if (word.starts_with(kEscapedTenant)) {
    return unescaped(word.substr(kEscapedTenant.size()));
  }
  return word.starts_with(kTenant) ? std::optional<std::string>(word.substr(kTenant.size()))
                                   : std::nullopt;
}

std::string line_of(const ring::RingSpec& ring) {
  std::string line;
  for (const ring::Member& member : ring.members) {
    line += (line.empty() ? "" : " ") + wire::to_string(member.ip);
  }
  return line + (ring.tenant.empty() ? "" : " " + tenant_word(ring.tenant)) + "\n";
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

/// Whether a line of this class may have begun so when the switch was killed while it wrote it. A
/// disk that has lost its power may have zeros where the rest was to be.
bool may_be_half_a_line(std::string_view text) {
  const std::string_view half = text.substr(0, text.find('\0'));
  const std::vector<std::string_view> words = words_of(half);
  const bool are_words_whole =
      std::all_of(words.begin(), words.empty() ? words.end() : words.end() - 1,
                  [](std::string_view word) { return wire::parse_ip(word).has_value(); });
  const auto begins = [&](std::string_view whole) {
    return words.back().starts_with(whole) || whole.starts_with(words.back());
  };
  const bool is_last_begun = words.empty() ||
                             words.back().find_first_not_of("0123456789abcdef.:") == half.npos ||
                             begins(kTenant) || begins(kEscapedTenant);
  const bool has_zeros_only = text.find_first_not_of('\0', half.size()) == text.npos;
  return are_words_whole && is_last_begun && has_zeros_only;
}

/// <A member, its successor>, where this switch is between them.
std::vector<Neighbours> neighbours_in(const ring::Ring& ring) {
  std::vector<Neighbours> neighbours;
  for (std::uint16_t sender = 0; sender < ring.senders(); ++sender) {
    neighbours.emplace_back(ring.source_of(sender), ring.destination_of(sender));
  }
  return neighbours;
}

/// What a line says of a ring, without what means nothing.
ring::RingSpec line_with(std::vector<ring::Member> members, const std::string& tenant) {
  return {.window = 1,
          .max_message_bytes = kInaHeaderBytes,
          .members = std::move(members),
          .children = {},
          .parent = {},
          .tenant = tenant};
}

SoleUse sole_use_of(const std::filesystem::path& directory) {
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  if (failure) {
    throw JournalError(
        fmt::format("state_directory: {}: {}; allowed: a directory that the switch may write to",
                    directory.string(), failure.message()));
  }
  if (const std::string flaw = files::why_not_trusted(directory); !flaw.empty()) {
    throw JournalError(fmt::format("state_directory: {}; allowed: a directory that only this user "
                                   "and root can change",
                                   flaw));
  }
  try {
    return SoleUse(directory);
  } catch (const InUse& error) {
    throw JournalError(fmt::format("state_directory: {}", error.what()));
  }
}

} // namespace

RingJournal::RingJournal(const std::filesystem::path& directory)
    : file_(directory / "rings"), sole_use_(sole_use_of(directory)) {
  read();
  append(""); // now, rather than when the first ring is added
  if (const std::error_code error = files::sync_entries(directory)) {
    throw JournalError(fmt::format("state_directory: {}: {}", directory.string(), error.message()));
  }
}

void RingJournal::read() {
  const std::string text = contents();
  std::size_t number = 1;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n', begin)) {
    read_line(std::string_view(text).substr(begin, end - begin), number++);
    begin = end + 1;
  }
  if (begin != text.size()) {
    cut_half_a_line(std::string_view(text).substr(begin), number, begin);
  }
}

/// All of the file. What cannot be read is not taken for empty.
std::string RingJournal::contents() const {
  const files::Descriptor file(file_, O_RDONLY | O_CREAT);
  std::string text;
  std::array<char, 65536> part{};
  ssize_t bytes = file.get() < 0 ? -1 : 1;
  while (bytes > 0) {
    bytes = ::read(file.get(), part.data(), part.size());
    text.append(part.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  }
  if (bytes < 0) {
    throw JournalError(fmt::format("{}: cannot be read: {}; allowed: a file that the switch may "
                                   "read and write. {}",
                                   file_.string(), std::strerror(errno), kWithoutMemory));
  }
  return text;
}

/// Its ring was never added: remember() returns when the line is whole.
void RingJournal::cut_half_a_line(std::string_view half, std::size_t number, std::size_t begin) {
  if (!may_be_half_a_line(half)) {
    fail_at(number, half);
  }
  std::error_code error;
  std::filesystem::resize_file(file_, begin, error);
  if (error) {
    throw JournalError(fmt::format("{}: {}", file_.string(), error.message()));
  }
}

void RingJournal::fail_at(std::size_t number, std::string_view found) const {
  constexpr std::size_t longest = 60;
  throw JournalError(fmt::format("{}:{}: found '{}'{}; allowed: {}. {}", file_.string(), number,
                                 text::printable(found.substr(0, longest)),
                                 found.size() > longest ? " ..." : "", kLine, kWithoutMemory));
}

void RingJournal::read_line(std::string_view line, std::size_t number) {
  ring::RingSpec ring = line_with({}, {});
  for (const std::string_view word : words_of(line)) {
    const auto address = ring.tenant.empty() ? wire::parse_ip(word) : std::nullopt;
    const auto tenant = ring.tenant.empty() ? tenant_in(word) : std::nullopt;
    if (address) {
      ring.members.push_back({*address, std::nullopt});
    } else if (tenant && !tenant->empty()) {
      ring.tenant = *tenant;
    } else {
      fail_at(number, word);
    }
  }
  if (ring.members.size() < kMinWorld || ring.members.size() > kMaxWorld) {
    throw JournalError(fmt::format("{}:{}: found {} addresses; allowed: {} to {}", file_.string(),
                                   number, ring.members.size(), kMinWorld, kMaxWorld));
  }
  if (!knows(ring)) {
    note(ring);
  }
}

bool RingJournal::knows(const ring::RingSpec& ring) const {
  return std::ranges::all_of(neighbours_in(ring::Ring(ring)), [this](const Neighbours& neighbours) {
    return neighbours_.contains(neighbours);
  });
}

void RingJournal::note(const ring::RingSpec& ring) {
  remembered_.push_back(ring);
  for (const Neighbours& neighbours : neighbours_in(ring::Ring(ring))) {
    neighbours_.insert(neighbours);
  }
}

/// One, or where other switches have a part in the ring one for each two neighbours that are new.
std::vector<ring::RingSpec> RingJournal::lines_for(const ring::RingSpec& spec) const {
  const ring::Ring ring(spec);
  std::vector<ring::RingSpec> lines;
  if (!ring.is_in_tree()) {
    lines.push_back(spec);
    return lines;
  }
  for (const Neighbours& neighbours : neighbours_in(ring)) {
    if (!neighbours_.contains(neighbours)) {
      lines.push_back(line_with({{neighbours.first, {}}, {neighbours.second, {}}}, spec.tenant));
    }
  }
  return lines;
}

void RingJournal::remember(const ring::RingSpec& ring) {
  if (knows(ring)) {
    return;
  }
  const std::vector<ring::RingSpec> lines = lines_for(ring);
  std::string text;
  for (const ring::RingSpec& line : lines) {
    text += line_of(line);
  }
  append(text);
  std::ranges::for_each(lines, [this](const ring::RingSpec& line) { note(line); });
}

/// Leaves the file as it was if the disk does not take all lines.
void RingJournal::append(const std::string& lines) const {
  const files::Descriptor file(file_, O_WRONLY | O_CREAT);
  const off_t end = file.get() < 0 ? -1 : lseek(file.get(), 0, SEEK_END);
  errno = end < 0 ? errno : ENOSPC; // write(2) sets none when a part of them found room
  const bool is_written =
      end >= 0 &&
      write(file.get(), lines.data(), lines.size()) == static_cast<ssize_t>(lines.size()) &&
      fsync(file.get()) == 0;
  if (is_written) {
    return;
  }
  const int error = errno;
  if (end >= 0 && ftruncate(file.get(), end) != 0) {
    fmt::print(stderr, "weir: {}: half a line is at its end\n", file_.string());
  }
  throw JournalError(fmt::format("{}: {}; allowed: a file that the switch may write to",
                                 file_.string(), std::strerror(error)));
}

std::size_t forget_rings_of(const std::string& tenant, const std::filesystem::path& directory) {
  const RingJournal journal(directory);
  std::string others;
  std::size_t forgotten = 0;
  for (const ring::RingSpec& ring : journal.remembered()) {
    others += ring.tenant == tenant ? "" : line_of(ring);
    forgotten += ring.tenant == tenant ? 1 : 0;
  }
  const std::filesystem::path file = directory / "rings";
  if (const std::error_code error = files::replace(file, others)) {
    throw JournalError(fmt::format("{}: {}", file.string(), error.message()));
  }
  return forgotten;
}

} // namespace weir::control
