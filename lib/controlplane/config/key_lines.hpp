// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "yaml/reader.hpp"

#include <string_view>

namespace weir::config {

/// Where keys stand in a file that has been read without an error: for errors that are found later.
class KeyLines {
 public:
  /// `file` stands for the text in errors.
  KeyLines(std::string_view text, std::string_view file);

  /// Of a key as errors write it, "rings[0].members[2].ip". For one that is not there: the line on
  /// which the map begins that it would be in.
  int line_of(std::string_view key) const;

 private:
  yaml::Reader root_;
};

} // namespace weir::config
