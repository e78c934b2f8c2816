// SPDX-License-Identifier: BSD-3-Clause
#include "metrics/catalogue.hpp"
#include "metrics/sheet.hpp"
#include "report/questions.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <gmock/gmock.h>
#include <regex>
#include <set>

namespace weir::metrics::metrics_test {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using report::Column;
using report::Table;
using report::TableShape;
using testing::ElementsAre;

constexpr std::array kColumns{Column{"rank", "rank"}, Column{"packets", "packets"},
                              Column{"waited_ms", "waited for ms"}};
constexpr TableShape kRanks{"ranks", kColumns, {}};
constexpr std::array kBuckets{Column{"from", "from"}, Column{"to", "to"}, Column{"count", "count"}};
constexpr TableShape kTimes{"times", kBuckets, {}};

Table ranks() {
  Table table(kRanks);
  table.rows = {{std::uint64_t{0}, std::uint64_t{7}, std::string("-")},
                {std::uint64_t{1}, std::uint64_t{9}, std::string("1500.0")}};
  return table;
}

Metric packets() {
  return {.name = "packets_total",
          .help = "Packets.",
          .kind = Kind::counter,
          .table = &kRanks,
          .value = "packets",
          .label = "rank"};
}

std::string labels_of(const ClientMetric& metric) {
  std::string text;
  for (const auto& [name, value] : metric.label) {
    text += name + "=" + value + " ";
  }
  return text;
}

TEST(Sheet, ARowForEachLabel) {
  Sheet sheet;
  sheet.add(packets(), ranks(), "12");
  const std::vector<MetricFamily> families = sheet.take();
  ASSERT_EQ(families.size(), 1U);
  EXPECT_EQ(families[0].name, "packets_total");
  EXPECT_EQ(families[0].help, "Packets.");
  EXPECT_EQ(families[0].type, MetricType::Counter);
  ASSERT_EQ(families[0].metric.size(), 2U);
  EXPECT_EQ(labels_of(families[0].metric[1]), "ring=12 rank=1 ");
  EXPECT_EQ(families[0].metric[1].counter.value, 9.0);
}

TEST(Sheet, ALabelWithinAnother) {
  Metric of_links = packets();
  of_links.within = "waited_ms";
  Sheet sheet;
  sheet.add(of_links, ranks());
  const std::vector<MetricFamily> families = sheet.take();
  ASSERT_EQ(families.at(0).metric.size(), 1U) << "a row with - for a label has no value";
  EXPECT_EQ(labels_of(families[0].metric[0]), "waited_ms=1500.0 rank=1 ");
}

TEST(Sheet, RowsOfOneNameAreOneFamily) {
  Metric sent = packets();
  sent.fixed = {"class", "ring"};
  Metric other = packets();
  other.fixed = {"class", "other"};
  Sheet sheet;
  sheet.add(sent, ranks());
  sheet.add(other, ranks());
  const std::vector<MetricFamily> families = sheet.take();
  ASSERT_EQ(families.size(), 1U);
  ASSERT_EQ(families[0].metric.size(), 4U);
  EXPECT_EQ(labels_of(families[0].metric[2]), "class=other rank=0 ");
}

TEST(Sheet, TextIsANumberOrNone) {
  Metric waited = packets();
  waited.kind = Kind::gauge;
  waited.value = "waited_ms";
  waited.unit = 1e-3;
  Sheet sheet;
  sheet.add(waited, ranks());
  const std::vector<MetricFamily> families = sheet.take();
  EXPECT_EQ(families.at(0).type, MetricType::Gauge);
  EXPECT_EQ(families.at(0).metric.at(0).gauge.value, 0.0);
  EXPECT_DOUBLE_EQ(families.at(0).metric.at(1).gauge.value, 1.5);
}

TEST(Sheet, AKnownLabelWithoutARowIsZero) {
  Metric known = packets();
  known.known = [] { return std::vector<std::string>{"0", "1", "2"}; };
  Sheet sheet;
  sheet.add(known, ranks());
  const std::vector<MetricFamily> families = sheet.take();
  ASSERT_EQ(families.at(0).metric.size(), 3U);
  EXPECT_EQ(labels_of(families[0].metric[2]), "rank=2 ");
  EXPECT_EQ(families[0].metric[2].counter.value, 0.0);
}

TEST(Sheet, AHistogramsCountsAddUp) {
  Table times(kTimes);
  times.rows = {{std::uint64_t{1}, std::uint64_t{1}, std::uint64_t{3}},
                {std::uint64_t{4}, std::uint64_t{7}, std::uint64_t{2}}};
  const Metric metric{.name = "slot_seconds",
                      .help = "",
                      .kind = Kind::histogram,
                      .table = &kTimes,
                      .value = "count",
                      .unit = 1e-9,
                      .label = ""};
  Sheet sheet;
  sheet.add(metric, times, "12");
  const std::vector<MetricFamily> families = sheet.take();
  const ClientMetric::Histogram& histogram = families.at(0).metric.at(0).histogram;
  EXPECT_EQ(labels_of(families[0].metric[0]), "ring=12 ");
  EXPECT_EQ(histogram.sample_count, 5U);
  EXPECT_TRUE(std::isnan(histogram.sample_sum));
  ASSERT_EQ(histogram.bucket.size(), 48U); // 0, 1, 3, 7 ... ns, and no bound
  const std::array<std::pair<std::uint64_t, double>, 5> due{
      {{0, 0.0}, {3, 1e-9}, {3, 3e-9}, {5, 7e-9}, {5, 15e-9}}};
  for (std::size_t i = 0; i < due.size(); ++i) {
    EXPECT_EQ(histogram.bucket[i].cumulative_count, due[i].first) << i;
    EXPECT_DOUBLE_EQ(histogram.bucket[i].upper_bound, due[i].second) << i;
  }
  EXPECT_EQ(histogram.bucket[47].cumulative_count, 5U);
  EXPECT_TRUE(std::isinf(histogram.bucket[47].upper_bound));
}

TEST(Sheet, AColumnThatIsNotThere) {
  Metric wrong = packets();
  wrong.value = "bytes";
  Sheet sheet;
  EXPECT_THROW(sheet.add(wrong, ranks()), std::logic_error);
}

bool has_column(const TableShape& table, std::string_view key) {
  return std::ranges::count(table.columns, key, &Column::key) == 1;
}

TEST(Catalogue, EachMetricIsInAnAnswer) {
  for (const Metric& metric : catalogue()) {
    SCOPED_TRACE(metric.name);
    const auto questions = report::questions();
    const auto question =
        std::ranges::find(questions, metric.question, &report::Question::telemetry);
    ASSERT_NE(question, questions.end());
    EXPECT_EQ(std::ranges::count(question->tables, metric.table), 1);
    EXPECT_TRUE(has_column(*metric.table, metric.value));
    EXPECT_TRUE(metric.label.empty() || has_column(*metric.table, metric.label));
  }
}

// https://prometheus.io/docs/practices/naming: base units, _total for counters.
TEST(Catalogue, NamesAreAsPrometheusWantsThem) {
  const std::regex shape("weir_[a-z]+(_[a-z]+)*");
  std::set<std::string_view> seen;
  std::string_view last;
  for (const Metric& metric : catalogue()) {
    SCOPED_TRACE(metric.name);
    EXPECT_TRUE(std::regex_match(std::string(metric.name), shape));
    EXPECT_EQ(metric.name.ends_with("_total"), metric.kind == Kind::counter);
    EXPECT_TRUE(metric.name == last || seen.insert(metric.name).second) << "in two places";
    EXPECT_EQ(metric.help.empty(), metric.name == last);
    last = metric.name;
  }
}

} // namespace
} // namespace weir::metrics::metrics_test
