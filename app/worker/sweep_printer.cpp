// SPDX-License-Identifier: BSD-3-Clause
#include "worker/sweep_printer.hpp"

#include "complaint.hpp"
#include "output.hpp"
#include "worker/group_lines.hpp"

#include <fmt/format.h>

#include <string_view>

namespace weir::app {
namespace {

std::size_t measurements_of(const SweepOptions& options) {
  std::size_t measurements = 0;
  for (const host::Call& call : options.calls) {
    for (const Placement placement : options.placements) {
      measurements += placement == Placement::in_place || can_be_out_of_place(call) ? 1 : 0;
    }
  }
  return measurements;
}

constexpr std::string_view kProgram = "weir-worker";

class TablePrinter : public SweepPrinter {
 public:
  TablePrinter(const SweepSetting& setting, const SweepOptions& options)
      : options_(options), world_(setting.place.world), bar_(measurements_of(options)) {
    say(sweep_heading(setting, options));
  }

  void call_begins(const host::Call& call, Placement placement, std::uint32_t iteration) override {
    const auto about = [&] {
      return fmt::format("{}, {}, call {} of {}", host::describe(call), name_of(placement),
                         iteration, options_.warm_ups + options_.iterations);
    };
    if (iteration == 1) {
      bar_.next(about());
    } else if (bar_.is_due()) {
      bar_.show(about());
    }
  }

  void result_is_wrong(const std::string& what) override {
    bar_.wipe();
    complain(kProgram, what);
  }

  void row_is_done(const SweepRow& row) override {
    bar_.wipe();
    if (kind_ != row.call.kind) {
      kind_ = row.call.kind;
      say(table_heading(row.call.kind, options_.placements));
    }
    say(table_row(row, options_.placements, world_));
  }

  void print_ending(std::span<const SweepRow> rows, const Sweep& /*sweep*/) override {
    say(sweep_ending(rows, world_));
  }

 private:
  const SweepOptions& options_;
  std::uint16_t world_ = 0;
  std::optional<host::CallKind> kind_; // of the last row
  ProgressBar bar_;
};

class LinePrinter : public SweepPrinter {
 public:
  LinePrinter(const host::Group& group, std::string_view mark) : group_(group), mark_(mark) {
    say(fmt::format("{}{}", mark_, greeting_of(group, "")));
  }

  void call_begins(const host::Call& /*call*/, Placement /*placement*/,
                   std::uint32_t /*iteration*/) override {}

  void result_is_wrong(const std::string& what) override { complain(kProgram, what); }

  void row_is_done(const SweepRow& /*row*/) override {}

  void print_ending(std::span<const SweepRow> rows, const Sweep& sweep) override {
    say(fmt::format("{}result: rank={} rows={} wrong={} retransmissions={} algorithm={}\n", mark_,
                    group_.rank(), rows.size(), sweep.own_wrong(), retransmissions_of(group_),
                    name_of(group_.algorithm())));
  }

 private:
  const host::Group& group_;
  const std::string_view mark_;
};

} // namespace

std::unique_ptr<SweepPrinter> make_printer(const SweepOptions& options, const host::Group& group) {
  if (group.rank() == 0) {
    return std::make_unique<TablePrinter>(setting_of(group), options);
  }
  return std::make_unique<LinePrinter>(group, options.line_mark);
}

SweepSetting setting_of(const host::Group& group) {
  return {.place = {group.rank(), group.world()},
          .epoch = group.epoch(),
          .algorithm = std::string(name_of(group.algorithm())),
          .reason = group.fallback_reason(),
          .rings = group.rings(),
          .missing_rings = group.missing_rings()};
}

} // namespace weir::app
