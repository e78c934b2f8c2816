// SPDX-License-Identifier: BSD-3-Clause
#include "check_server.hpp"

#include "control/memory.hpp"
#include "output.hpp"
#include "server/questions.hpp"
#include "server/read_facts.hpp"
#include "text/json.hpp"
#include "text/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weir::app {
namespace {

using server::Finding;
using server::Rank;

struct Answer {
  std::string_view question;
  Finding finding;
};

using Answers = std::vector<Answer>;

std::size_t count(const Answers& answers, Rank rank) {
  return std::ranges::count(answers, rank,
                            [](const Answer& answer) { return answer.finding.rank; });
}

Answers ask_all(const config::Config& config) {
  const server::Facts facts = server::read_facts(server::Tree(), config);
  const server::Case given{config, facts, control::needed_mib(config)};
  Answers answers;
  for (const server::Question& question : server::questions()) {
    for (const Finding& finding : question.ask(given)) {
      answers.push_back({question.name, finding});
    }
  }
  return answers;
}

std::string as_text(const Answers& answers) {
  std::string text;
  for (const auto& [question, finding] : answers) {
    text += fmt::format("{:<9}{:<18}{}\n", name_of(finding.rank), question,
                        text::printable(finding.found));
    if (!finding.mend.empty()) {
      text += fmt::format("{:27}mend: {}\n", "", text::printable(finding.mend));
    }
  }
  const std::size_t wrong = count(answers, Rank::wrong);
  return text + fmt::format("the switch would {}: wrong {}, warnings {}, unknown {}, fine {}\n",
                            wrong == 0 ? "start" : "not start", wrong,
                            count(answers, Rank::warning), count(answers, Rank::unknown),
                            count(answers, Rank::fine));
}

std::string as_json(const Answers& answers, const std::string& file) {
  std::string findings;
  for (const auto& [question, finding] : answers) {
    findings +=
        fmt::format("{}\n    {{\"question\": {}, \"rank\": {}, \"found\": {}, \"mend\": {}}}",
                    findings.empty() ? "" : ",", text::json_string(question),
                    text::json_string(name_of(finding.rank)), text::json_string(finding.found),
                    text::json_string(finding.mend));
  }
  return fmt::format("{{\n  \"configuration\": {},\n  \"wrong\": {},\n  \"warning\": {},\n  "
                     "\"unknown\": {},\n  \"fine\": {},\n  \"findings\": [{}\n  ]\n}}\n",
                     text::json_string(file), count(answers, Rank::wrong),
                     count(answers, Rank::warning), count(answers, Rank::unknown),
                     count(answers, Rank::fine), findings);
}

} // namespace

Forecast check_server(const config::Config& config, Form form) {
  const Answers answers = ask_all(config);
  print(form == Form::json ? as_json(answers, config.file) : as_text(answers));
  return count(answers, Rank::wrong) == 0 ? Forecast::starts : Forecast::does_not;
}

} // namespace weir::app
