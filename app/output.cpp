// SPDX-License-Identifier: BSD-3-Clause
#include "output.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace weir::app {
namespace {

constexpr std::string_view kStandardOutput = "standard output";

std::atomic<int> first_error = 0; // of standard output; 0: none

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// An errno; 0: all was written and has left the program's buffer.
int write_all(std::FILE* file, std::string_view text) {
  errno = 0;
  const bool is_whole = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool is_out = std::fflush(file) == 0;
  if (is_whole && is_out) {
    return 0;
  }
  return errno == 0 ? EIO : errno;
}

} // namespace

OutputError::OutputError(std::string_view file, int error)
    : std::runtime_error(fmt::format("{}: cannot be written: {}", file, std::strerror(error))) {}

void say(std::string_view text) {
  const int error = write_all(stdout, text);
  int none = 0;
  first_error.compare_exchange_strong(none, error);
}

void print(std::string_view text) {
  say(text);
  finish_output();
}

void finish_output() {
  say("");
  if (first_error != 0) {
    throw OutputError(kStandardOutput, first_error);
  }
}

void finish_log() {
  say("");
  const bool has_reader_gone = first_error == EPIPE || first_error == EIO;
  if (!has_reader_gone) {
    finish_output();
  }
}

void write_file(const std::string& file, std::string_view text) {
  if (file == "-") {
    return print(text);
  }
  std::unique_ptr<std::FILE, CloseFile> stream(std::fopen(file.c_str(), "we"));
  if (!stream) {
    throw OutputError(file, errno);
  }
  if (const int error = write_all(stream.get(), text); error != 0) {
    throw OutputError(file, error);
  }
  if (std::fclose(stream.release()) != 0) { // a network's file system may fail here
    throw OutputError(file, errno);
  }
}

} // namespace weir::app
