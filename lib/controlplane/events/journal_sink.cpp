// SPDX-License-Identifier: BSD-3-Clause
#include "events/text_sink.hpp"
#include "text/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

namespace weir::events {
namespace {

/// Whether standard error is the stream that systemd has connected to the journal
/// (systemd.exec(5), $JOURNAL_STREAM).
bool is_read_by_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM"); // NOLINT: nobody sets it

  struct stat status {};

  return stream != nullptr && fstat(STDERR_FILENO, &status) == 0 &&
         fmt::format("{}:{}", status.st_dev, status.st_ino) == stream;
}

/// "WEIR_RING=7" (systemd.journal-fields(7)).
std::string journal_field(std::string_view name, std::string_view value) {
  std::string field = fmt::format("WEIR_{}=", name);
  std::ranges::transform(field, field.begin(),
                         [](char c) { return static_cast<char>(std::toupper(c)); });
  return field.append(value);
}

class JournalSink : public LineSink {
 public:
  void put(const Event& event) override {
    const EventRow& row = row_of(event.kind);
    std::vector<std::string> fields{
        fmt::format("MESSAGE={}", text::printable(event.text)),
        fmt::format("PRIORITY={}", static_cast<int>(row.severity)),
        "SYSLOG_IDENTIFIER=weir",
        journal_field("event", row.name),
    };
    for (const Field& field : event.fields) {
      fields.push_back(journal_field(field.name, field.value));
    }
    std::vector<iovec> parts;
    for (std::string& field : fields) {
      parts.push_back({field.data(), field.size()});
    }
    if (sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) < 0) {
      text_.put(event);
    }
  }

 private:
  TextSink text_; // while the journal does not listen
};

} // namespace

std::unique_ptr<LineSink> sink_of_this_process() {
  if (is_read_by_journal()) {
    return std::make_unique<JournalSink>();
  }
  return std::make_unique<TextSink>();
}

} // namespace weir::events
