// SPDX-License-Identifier: BSD-3-Clause
#include "metrics/collector.hpp"

#include "metrics/catalogue.hpp"
#include "metrics/sheet.hpp"
#include "report/answers.hpp"
#include "report/questions.hpp"

#include <algorithm>
#include <map>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace weir::metrics {
namespace {

constexpr std::chrono::seconds kLifeOfAnswers{1};
constexpr const char* kUp = "weir_up";
constexpr const char* kUpHelp = "1: the switch answers. 0: an lcore did not stop for a question.";

/// Each question is asked once.
class Answers {
 public:
  explicit Answers(control::Switch& weir) : weir_(weir) {}

  /// The metric's table in the answer about `argument`; empty: the question's fallback. nullptr
  /// when the metric is none of that ring.
  const report::Table* table_of(const Metric& metric, const std::string& argument) {
    const std::pair key{metric.question, argument};
    auto known = answers_.find(key);
    if (known == answers_.end()) {
      known = answers_.emplace(key, question_of(metric).ask(weir_, argument, {})).first;
    }
    const auto found = std::ranges::find(known->second, metric.table,
                                         [](const auto& table) { return table.shape; });
    if (found != known->second.end()) {
      return &*found;
    }
    if (metric.scope == Scope::each_ring_below_a_switch) {
      return nullptr;
    }
    throw std::logic_error(std::string(metric.name) + " is not in the answer of its question");
  }

 private:
  static const report::Question& question_of(const Metric& metric) {
    const auto questions = report::questions();
    const auto found = std::ranges::find(questions, metric.question, &report::Question::telemetry);
    if (found == questions.end()) {
      throw std::logic_error(std::string(metric.name) + " asks what nobody answers");
    }
    return *found;
  }

  control::Switch& weir_;
  std::map<std::pair<std::string_view, std::string>, report::Report> answers_;
};

/// Asks all that the metrics tell of a ring. False when it was withdrawn meanwhile.
bool has_answers_of(Answers& answers, const std::string& ring) {
  try {
    for (const Metric& metric : catalogue()) {
      if (metric.scope != Scope::whole_switch) {
        answers.table_of(metric, ring);
      }
    }
    return true;
  } catch (const report::UnknownName&) {
    return false;
  } catch (const control::NoSuchRing&) {
    return false;
  }
}

void collect(control::Switch& weir, Sheet& sheet) {
  Answers answers(weir);
  std::vector<std::string> rings = report::ring_ids(weir);
  std::erase_if(rings, [&](const std::string& ring) { return !has_answers_of(answers, ring); });
  for (const Metric& metric : catalogue()) {
    if (metric.scope == Scope::whole_switch) {
      sheet.add(metric, *answers.table_of(metric, ""));
      continue;
    }
    for (const std::string& ring : rings) {
      if (const report::Table* table = answers.table_of(metric, ring)) {
        sheet.add(metric, *table, ring);
      }
    }
  }
}

std::vector<prometheus::MetricFamily> families_of(control::Switch& weir) {
  try {
    Sheet sheet;
    sheet.add_gauge(kUp, kUpHelp, 1.0);
    collect(weir, sheet);
    return sheet.take();
  } catch (const std::exception&) { // an lcore does not stop, or no memory is left
    Sheet sheet;
    sheet.add_gauge(kUp, kUpHelp, 0.0);
    return sheet.take();
  }
}

} // namespace

std::shared_ptr<const std::string> Collector::text() {
  const auto now = Clock::now();
  if (!asked_at_ || now - *asked_at_ >= kLifeOfAnswers) {
    last_ = std::make_shared<const std::string>(
        prometheus::TextSerializer().Serialize(families_of(weir_)));
    asked_at_ = now;
  }
  return last_;
}

} // namespace weir::metrics
