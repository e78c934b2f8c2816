// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Between the control service's messages (proto/weir/v1/switch.proto) and what they stand for.

#include "command/answer.hpp"

#include <chrono>
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>
#include <weir/v1/switch.pb.h>

namespace weir::rpc {

/// A message breaks a limit. what() has what was found and what is allowed.
class WrongMessage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr int kMostWords = 16;
inline constexpr std::size_t kMostWordBytes = 4096;
inline constexpr std::chrono::milliseconds kShortestPeriod{100};
inline constexpr std::chrono::milliseconds kLongestPeriod{3'600'000};

using WordList = google::protobuf::RepeatedPtrField<std::string>;

/// Each throws WrongMessage.
command::Words words_of(const WordList& words);
std::string line_of(const v1::CompleteRequest& request);
std::chrono::milliseconds period_of(const v1::WatchStatisticsRequest& request);

void write(const report::Report& report, google::protobuf::RepeatedPtrField<v1::Table>& tables);
void write(const command::Answer& answer, v1::ExecuteResponse& response);

/// What a message takes until it has been sent: itself, and its text.
std::size_t bytes_of(const google::protobuf::Message& message);

/// Tables that came in a message. They refer to it, and it may not move.
class ReceivedReport {
 public:
  /// Throws WrongMessage if a row has not one cell for each column.
  explicit ReceivedReport(google::protobuf::RepeatedPtrField<v1::Table> tables);
  ReceivedReport(const ReceivedReport&) = delete;
  ReceivedReport& operator=(const ReceivedReport&) = delete;

  const report::Report& report() const { return report_; }

 private:
  void read(const v1::Table& message);

  google::protobuf::RepeatedPtrField<v1::Table> tables_;
  std::deque<std::vector<report::Column>> columns_;
  std::deque<report::TableShape> shapes_;
  report::Report report_;
};

} // namespace weir::rpc
