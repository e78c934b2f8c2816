// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weir::program {

/// "clipped-i8-sum: loaded; digest …; at most … ns for a KiB and rank", and the end of the line.
inline std::string loaded_in_words(std::string_view name, std::string_view digest, double price) {
  return fmt::format("{}: loaded; digest {}; at most {:.0f} ns for a KiB and rank\n", name, digest,
                     price);
}

/// An operator as people speak of it; the digest in hexadecimal.
struct Spoken {
  std::string name;
  std::string digest;
};

inline constexpr std::size_t kFewestDigits = 8; // of a digest

/// The place of the one that is meant by a name, or by a digest's first digits. Throws
/// std::invalid_argument, which names the digests where the word is of several.
inline std::size_t place_of(std::string_view word, const std::vector<Spoken>& known) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const bool is_start = word.size() >= kFewestDigits && known[i].digest.starts_with(word);
    if (is_start || known[i].name == word) {
      found.push_back(i);
    }
  }
  if (found.empty()) {
    throw std::invalid_argument(fmt::format(
        "operator: found {}, which none has; allowed: a name, or {} digits or more, of one of "
        "show operators",
        word, kFewestDigits));
  }
  if (found.size() > 1) {
    std::string digests;
    for (const std::size_t place : found) {
      digests += (digests.empty() ? "" : ", ") + known[place].digest;
    }
    throw std::invalid_argument(
        fmt::format("operator: found {}, which {} have; allowed: {} digits or more of one of {}",
                    word, found.size(), kFewestDigits, digests));
  }
  return found.front();
}

/// A packet: 32 bytes in a line, in hexadecimal, behind the first one's place.
inline std::string packet_in_words(std::string_view packet) {
  constexpr std::size_t in_line = 32;
  std::string words;
  for (std::size_t at = 0; at < packet.size(); ++at) {
    if (at % in_line == 0) {
      words += fmt::format("{}{:04}  ", at == 0 ? "" : "\n", at);
    }
    words += fmt::format("{:02x}", static_cast<unsigned char>(packet[at]));
  }
  return words + "\n";
}

/// An error of a file's text, as compilers say it: "FILE:3: found …" where it begins with "line 3:
/// ".
inline std::string in_file(std::string_view file, std::string_view error) {
  constexpr std::string_view line = "line ";
  if (error.starts_with(line)) {
    error.remove_prefix(line.size());
    return fmt::format("{}:{}", file, error);
  }
  return fmt::format("{}: {}", file, error);
}

} // namespace weir::program
