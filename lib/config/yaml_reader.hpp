// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// A YAML file read key by key, every value typed and bounded. Knows YAML and where things stand in
/// the file; knows nothing of what the keys mean.

#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::config {

/// Both ends included.
struct Range {
  std::uint64_t least;
  std::uint64_t most;
};

/// One place in a YAML file: a value, or the place where a key is missing. Remembers file, line and
/// key path ("rings[0].members[2].ip"), so that whatever is wrong with the value can be said in one
/// line: "FILE:LINE: KEY: found X; allowed: Y". Cheap to copy; copies share the file's text.
/// Every reading function throws ConfigError (control/config_error.hpp) when the value is not what
/// it reads.
class YamlReader {
 public:
  /// The root of the one document in `text`. `file` stands for the text in errors. Errors: text
  /// that is not YAML, control characters, no document, more than one.
  static YamlReader parse(std::string_view text, std::string_view file);

  /// "FILE:LINE: KEY: found X; allowed: Y" for a file as a whole, at its first line.
  [[noreturn]] static void fail_file(std::string_view file, std::string_view found,
                                     std::string_view allowed);

  [[noreturn]] void fail(std::string_view found, std::string_view allowed) const;

  const std::string& key() const { return key_; }

  /// Counted from 1. For a missing key the line on which its map begins; for a value behind an
  /// alias that of its anchor.
  int line() const { return line_; }

  bool is_present() const { return present_; }

  /// What stands here, as errors print it: a number as it is, any other scalar in quotes, or "a
  /// list".
  std::string found() const;

  /// Refuses anything but a map whose keys are all among `known` and appear once.
  void expect_map(std::span<const std::string_view> known) const;
  /// The value of `name` in this map, or the place where it is missing.
  YamlReader at(std::string_view name) const;
  /// The entries of this list; `what` names them in errors ("ports").
  std::vector<YamlReader> items(Range count, std::string_view what) const;

  /// A scalar, not empty and of printable characters; `allowed` describes it in errors.
  std::string text(std::string_view allowed) const;
  /// A whole number, decimal or 0x hexadecimal. A leading zero (octal in YAML 1.1, decimal in 1.2)
  /// is refused.
  std::uint64_t whole_number(Range range) const;
  std::uint64_t power_of_two(Range range) const;
  std::uint64_t one_of(std::span<const std::uint64_t> numbers) const;
  /// The position in `words` of the word that stands here.
  std::size_t one_of(std::span<const std::string_view> words) const;

 private:
  /// The whole file: its name in errors and its text.
  struct Source;

  YamlReader(std::shared_ptr<const Source> source, std::string key, int line)
      : source_(std::move(source)), key_(std::move(key)), line_(line) {}

  YamlReader child(const YAML::Node& node, std::string key, int line) const;
  std::string path_of(std::string_view name) const;
  void check_key(const YAML::Node& key, const YAML::Node& value,
                 std::span<const std::string_view> known) const;
  std::optional<std::uint64_t> number() const;
  int line_of_item(const YAML::Node& item) const;

  std::shared_ptr<const Source> source_;
  std::string key_;
  int line_ = 1;
  bool present_ = false;
  YAML::Node node_; // valid while present_
};

/// "a, b or c".
std::string join_or(std::span<const std::string_view> words);
std::string join_or(std::span<const std::uint64_t> numbers);

/// "; did you mean X?" when one of `words` is close to `word`, else nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> words);

/// `text` in double quotes, unprintable bytes escaped, cut where it is long.
std::string in_quotes(std::string_view text);

} // namespace weir::config
