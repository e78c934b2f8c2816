// SPDX-License-Identifier: BSD-3-Clause
#include "host/mpi/report.hpp"

#include "files/unread_bytes.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <unistd.h>
#include <utility>

namespace weir::mpi {
namespace {

constexpr std::size_t kMostNotes = 16;
constexpr std::chrono::seconds kLongestLastWords{1};

constexpr std::array<std::string_view, kWays> kReasons{"by Weir",
                                                       "Weir is off",
                                                       "with wrong arguments",
                                                       "between two groups",
                                                       "one rank",
                                                       "all ranks behind one NIC",
                                                       "more than 256 ranks",
                                                       "an operation that Weir has not",
                                                       "a type that Weir has not",
                                                       "parts of unequal size",
                                                       "below WEIR_THRESHOLD",
                                                       "of more than 2 GiB",
                                                       "the communicator had no ring yet",
                                                       "no ring was to be had"};

} // namespace

std::string_view reason_of(Way way) {
  return kReasons.at(static_cast<std::size_t>(way));
}

void Report::count(Collective collective, Mode mode, Way way, std::uint64_t bytes) {
  Counts& counts = counts_.at(static_cast<std::size_t>(collective))
                       .at(static_cast<std::size_t>(mode))
                       .at(static_cast<std::size_t>(way));
  counts.calls.fetch_add(1, std::memory_order_relaxed);
  counts.bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void Report::note(std::string sentence) {
  const std::scoped_lock lock(mutex_);
  if (notes_.size() < kMostNotes) {
    notes_.push_back(std::move(sentence));
  } else {
    ++more_notes_;
  }
}

std::string Report::row(Collective collective, Mode mode) const {
  const auto& ways =
      counts_.at(static_cast<std::size_t>(collective)).at(static_cast<std::size_t>(mode));
  std::string reasons;
  std::uint64_t by_mpi = 0;
  for (std::size_t way = 1; way < kWays; ++way) {
    if (const std::uint64_t calls = ways.at(way).calls; calls > 0) {
      by_mpi += calls;
      reasons += fmt::format("{}{} {}", reasons.empty() ? ": " : ", ", calls, kReasons.at(way));
    }
  }
  const Counts& weir = ways.front();
  if (weir.calls + by_mpi == 0) {
    return "";
  }
  return fmt::format("weir_mpi:   {}: {} by Weir ({} bytes), {} by MPI{}\n",
                     name_of(collective, mode), weir.calls.load(), weir.bytes.load(), by_mpi,
                     reasons);
}

std::string Report::text(std::uint64_t threshold) const {
  std::string text =
      fmt::format("weir_mpi: calls of rank 0; WEIR_THRESHOLD is {} bytes:\n", threshold);
  for (std::size_t collective = 0; collective < kCollectives; ++collective) {
    for (std::size_t mode = 0; mode < kModes; ++mode) {
      text += row(static_cast<Collective>(collective), static_cast<Mode>(mode));
    }
  }
  const std::scoped_lock lock(mutex_);
  for (const std::string& sentence : notes_) {
    text += fmt::format("weir_mpi:   {}\n", sentence);
  }
  if (more_notes_ > 0) {
    text += fmt::format("weir_mpi:   and {} more communicators\n", more_notes_);
  }
  return text;
}

Report& report() {
  static Report the_report;
  return the_report;
}

void say(const std::string& line) {
  const std::string text = "weir_mpi: " + line + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr); // in one piece, as other ranks write too
}

void say_last_words(const std::string& line) {
  say(line);
  files::wait_until_read(STDERR_FILENO, kLongestLastWords);
}

} // namespace weir::mpi
