// SPDX-License-Identifier: BSD-3-Clause
#include "metrics/sheet.hpp"

#include "frame/counters.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <utility>

namespace weir::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;
using report::Cell;
using report::Table;

/// What a cell says that has no number and no name: a row that has it for a label has no value.
constexpr std::string_view kNothing = "-";

std::size_t column_of(const Table& table, std::string_view key) {
  const auto& columns = table.shape->columns;
  const auto found = std::ranges::find(columns, key, &report::Column::key);
  if (found == columns.end()) {
    throw std::logic_error("the table " + std::string(table.shape->name) + " has no column " +
                           std::string(key));
  }
  return static_cast<std::size_t>(found - columns.begin());
}

/// A text that is no number, such as "-", is 0.
double number_of(const Cell& cell) {
  if (const auto* whole = std::get_if<std::uint64_t>(&cell)) {
    return static_cast<double>(*whole);
  }
  if (const auto* real = std::get_if<double>(&cell)) {
    return *real;
  }
  return std::strtod(std::get<std::string>(cell).c_str(), nullptr);
}

std::string text_of(const Cell& cell) {
  const auto* whole = std::get_if<std::uint64_t>(&cell);
  return whole != nullptr ? std::to_string(*whole) : std::get<std::string>(cell);
}

MetricType type_of(Kind kind) {
  switch (kind) {
  case Kind::counter:
    return MetricType::Counter;
  case Kind::gauge:
    return MetricType::Gauge;
  case Kind::histogram:
    return MetricType::Histogram;
  }
  return MetricType::Untyped;
}

} // namespace

void Sheet::add(const Metric& metric, const Table& table) {
  add_all(metric, table, {});
}

void Sheet::add(const Metric& metric, const Table& table, const std::string& ring) {
  add_all(metric, table, {{"ring", ring}});
}

void Sheet::add_gauge(const std::string& name, const std::string& help, double value) {
  ClientMetric metric;
  metric.gauge.value = value;
  families_.push_back({name, help, MetricType::Gauge, {metric}});
}

void Sheet::add_all(const Metric& metric, const Table& table, const Labels& common) {
  if (metric.kind == Kind::histogram) {
    add_histogram(metric, table, common);
    return;
  }
  Labels labels = common;
  if (!metric.fixed.name.empty()) {
    labels.push_back({std::string(metric.fixed.name), std::string(metric.fixed.value)});
  }
  add_rows(metric, table, labels);
  if (metric.known != nullptr) {
    add_absent(metric, table, labels);
  }
}

void Sheet::add_rows(const Metric& metric, const Table& table, const Labels& common) {
  const std::size_t value = column_of(table, metric.value);
  for (const std::vector<Cell>& row : table.rows) {
    Labels labels = common;
    for (const std::string_view label : {metric.within, metric.label}) {
      if (!label.empty()) {
        labels.push_back({std::string(label), text_of(row[column_of(table, label)])});
      }
    }
    if (std::ranges::count(labels, kNothing, &ClientMetric::Label::value) != 0) {
      continue;
    }
    add_value(metric, std::move(labels), number_of(row[value]) * metric.unit);
  }
}

/// A counter must be there before it grows, or its first growth is not seen.
void Sheet::add_absent(const Metric& metric, const Table& table, const Labels& common) {
  const std::size_t label = column_of(table, metric.label);
  for (const std::string& known : metric.known()) {
    const bool is_there = std::ranges::any_of(
        table.rows, [&](const std::vector<Cell>& row) { return text_of(row[label]) == known; });
    if (!is_there) {
      Labels labels = common;
      labels.push_back({std::string(metric.label), known});
      add_value(metric, std::move(labels), 0.0);
    }
  }
}

/// All bounds, also of buckets that have not counted: a bucket must be there before it grows, and
/// only equal bounds can be summed. The last bucket has no bound.
void Sheet::add_histogram(const Metric& metric, const Table& table, const Labels& common) {
  const std::size_t bound = column_of(table, "to");
  const std::size_t count = column_of(table, metric.value);
  ClientMetric value;
  value.label = common;
  ClientMetric::Histogram& histogram = value.histogram;
  histogram.sample_sum = std::numeric_limits<double>::quiet_NaN();
  auto row = table.rows.begin();
  for (std::size_t bucket = 0; bucket < frame::Histogram::kBuckets; ++bucket) {
    const auto most = static_cast<double>(frame::Histogram::most_of(bucket));
    if (row != table.rows.end() && number_of((*row)[bound]) == most) {
      histogram.sample_count += static_cast<std::uint64_t>(number_of((*row)[count]));
      ++row;
    }
    const bool is_last = bucket + 1 == frame::Histogram::kBuckets;
    histogram.bucket.push_back(
        {histogram.sample_count,
         is_last ? std::numeric_limits<double>::infinity() : most * metric.unit});
  }
  family_of(metric).metric.push_back(std::move(value));
}

void Sheet::add_value(const Metric& metric, Labels labels, double value) {
  ClientMetric added;
  added.label = std::move(labels);
  (metric.kind == Kind::counter ? added.counter.value : added.gauge.value) = value;
  family_of(metric).metric.push_back(std::move(added));
}

prometheus::MetricFamily& Sheet::family_of(const Metric& metric) {
  if (families_.empty() || families_.back().name != metric.name) {
    families_.push_back(
        {std::string(metric.name), std::string(metric.help), type_of(metric.kind), {}});
  }
  return families_.back();
}

} // namespace weir::metrics
