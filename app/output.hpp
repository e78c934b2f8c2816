// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What a program writes reaches its file whole, or the program ends with an error that names the
/// file and the cause.

#include <stdexcept>
#include <string>
#include <string_view>

namespace weir::app {

/// "FILE: cannot be written: cause".
class OutputError : public std::runtime_error {
 public:
  /// `error` is an errno.
  OutputError(std::string_view file, int error);
};

/// Prints on standard output at once. Never throws: who does long work goes on when standard output
/// takes nothing more, and finish_output() tells it at the end.
void say(std::string_view text);

/// The same for text that is all that was asked for. Errors: OutputError.
void print(std::string_view text);

/// For a program's last moment: whether all that was printed has reached standard output. Errors:
/// OutputError with the first cause.
void finish_output();

/// The same for a program that serves others as well. A reader that has gone, such as a terminal or
/// a pipe's other end, is no error of it.
void finish_log();

/// Writes a whole file; "-" is standard output. Errors: OutputError.
void write_file(const std::string& file, std::string_view text);

} // namespace weir::app
