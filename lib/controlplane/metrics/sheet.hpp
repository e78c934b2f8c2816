// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "metrics/catalogue.hpp"

#include <prometheus/metric_family.h>
#include <string>
#include <vector>

namespace weir::metrics {

/// The families of one scrape, made from the answers' tables.
class Sheet {
 public:
  /// The table's values of this metric. Metrics of one name must follow each other. Throws
  /// std::logic_error if the table lacks a column that the metric names.
  void add(const Metric& metric, const report::Table& table);
  /// The same with the label `ring`.
  void add(const Metric& metric, const report::Table& table, const std::string& ring);
  /// A gauge of its own, without labels.
  void add_gauge(const std::string& name, const std::string& help, double value);

  std::vector<prometheus::MetricFamily> take() { return std::move(families_); }

 private:
  using Labels = std::vector<prometheus::ClientMetric::Label>;

  void add_all(const Metric& metric, const report::Table& table, const Labels& common);
  void add_rows(const Metric& metric, const report::Table& table, const Labels& common);
  void add_absent(const Metric& metric, const report::Table& table, const Labels& common);
  void add_histogram(const Metric& metric, const report::Table& table, const Labels& common);
  void add_value(const Metric& metric, Labels labels, double value);
  prometheus::MetricFamily& family_of(const Metric& metric);

  std::vector<prometheus::MetricFamily> families_;
};

} // namespace weir::metrics
