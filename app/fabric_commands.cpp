// SPDX-License-Identifier: BSD-3-Clause
#include "fabric_commands.hpp"

#include "manager/pem_file.hpp"
#include "manager/picture_svg.hpp"
#include "usage_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <fstream>
#include <functional>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <weir/v1/fabric.grpc.pb.h>

namespace weir::app {
namespace {

constexpr std::chrono::seconds kPatience{30};
constexpr std::chrono::seconds kPatienceWithOne{3}; // of several managers
constexpr int kRounds = 5;                          // over several managers: one of them takes over
constexpr std::chrono::milliseconds kFirstPause{500};

constexpr std::string_view kWords =
    "fabric show [--svg FILE]           the switches, their links and loads, and the jobs\n"
    "fabric jobs                        the jobs: their hosts, rings and trees\n"
    "fabric plan --hosts HOSTS [--rings N] [--without SWITCH]...\n"
    "                                   which trees a job of these hosts would have\n"
    "fabric why JOB|REQUEST|SWITCH|LINK why it is so\n"
    "fabric end JOB [--why TEXT]        takes the job's rings down\n"
    "fabric drain switch|host|link NAME [--why TEXT] [--now]\n"
    "                                   nothing new on it; --now: jobs on it end\n"
    "fabric undrain switch|host|link NAME\n";

/// Words, and options with their values.
struct Order {
  std::vector<std::string> words;
  std::multimap<std::string, std::string> options;

  std::string option(const std::string& name) const {
    const auto found = options.find(name);
    return found == options.end() ? "" : found->second;
  }
};

Order order_of(const std::vector<std::string>& words) {
  constexpr std::array<std::string_view, 5> with_value{"--svg", "--hosts", "--rings", "--without",
                                                       "--why"};
  Order order;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word == "--now") {
      order.options.emplace(word, "");
    } else if (std::ranges::find(with_value, word) != with_value.end()) {
      if (at + 1 == words.size()) {
        throw UsageError(fmt::format("found {} without a value\n{}", word, kWords));
      }
      order.options.emplace(word, words[++at]);
    } else if (word.starts_with("--")) {
      throw UsageError(fmt::format("found {}; allowed:\n{}", word, kWords));
    } else {
      order.words.push_back(word);
    }
  }
  return order;
}

std::uint64_t number_of(const std::string& text, std::string_view what) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw UsageError(fmt::format("found '{}'; allowed: {}", text, what));
  }
  return number;
}

std::shared_ptr<grpc::ChannelCredentials> credentials_for(const std::string& server,
                                                          const rpc::ClientTls& tls) {
  if (server.starts_with("unix:")) {
    return grpc::InsecureChannelCredentials();
  }
  return grpc::SslCredentials({.pem_root_certs = manager::contents_of(tls.authority),
                               .pem_private_key = manager::contents_of(tls.key),
                               .pem_cert_chain = manager::contents_of(tls.certificate)});
}

/// Calls the manager that leads, and prints what it says.
class Desk {
 public:
  Desk(const std::vector<std::string>& managers, const rpc::ClientTls& tls) : managers_(managers) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetMaxReceiveMessageSize(-1);
    if (!tls.name.empty()) {
      arguments.SetSslTargetNameOverride(tls.name);
    }
    for (const std::string& manager : managers_) {
      stubs_.push_back(v1::Fabric::NewStub(
          grpc::CreateCustomChannel(manager, credentials_for(manager, tls), arguments)));
    }
  }

  std::string show(const Order& order) {
    const auto picture =
        ask<v1::FabricPicture>(&v1::Fabric::Stub::GetFabric, v1::GetFabricRequest());
    if (const std::string file = order.option("--svg"); !file.empty()) {
      std::ofstream stream(file);
      stream << manager::svg_of(picture, manager::SvgUse::file);
      if (!stream.flush()) {
        throw rpc::CallError(fmt::format("{} cannot be written", file));
      }
      return fmt::format("written: {}\n", file);
    }
    std::string text = fmt::format("fabric {}, led by {} with term {}\n\n", picture.fabric(),
                                   picture.manager(), picture.term());
    if (picture.store_is_lost()) {
      text += "the manager's store does not answer: this is from its memory\n\n";
    }
    text += fmt::format("{:16} {:10} {:>11} {:>8}\n", "switch", "state", "rings", "frames");
    for (const v1::PictureSwitch& one : picture.switches()) {
      const double most = std::max<double>(1, static_cast<double>(one.most_frames()));
      text +=
          fmt::format("{:16} {:10} {:>5}/{:<5} {:>6.0f} %  {}\n", one.name(), one.state(),
                      one.rings(), one.most_rings(), 100 * static_cast<double>(one.frames()) / most,
                      one.drained().empty() ? one.why() : one.drained());
    }
    text += fmt::format("\n{:32} {:>8}  jobs\n", "link", "load");
    for (const v1::PictureLink& link : picture.links()) {
      text += fmt::format("{:32} {:>6.0f} %  {}{}\n",
                          fmt::format("{} {} – {} {}", link.one(), link.one_port(), link.other(),
                                      link.other_port()),
                          100 * link.load(), fmt::join(link.jobs(), ", "), words_of(link));
    }
    return text + "\n" + table_of(picture.jobs());
  }

  std::string jobs() {
    return table_of(
        ask<v1::ListJobsResponse>(&v1::Fabric::Stub::ListJobs, v1::ListJobsRequest()).jobs());
  }

  std::string plan(const Order& order) {
    v1::PlanJobRequest request;
    request.set_hosts(order.option("--hosts"));
    if (const std::string rings = order.option("--rings"); !rings.empty()) {
      request.mutable_request()->set_rings_wanted(
          static_cast<std::uint32_t>(number_of(rings, "a number of rings")));
    }
    const auto [first, last] = order.options.equal_range("--without");
    for (auto without = first; without != last; ++without) {
      request.add_without(without->second);
    }
    const auto plan = ask<v1::PlanJobResponse>(&v1::Fabric::Stub::PlanJob, request);
    std::string text = fmt::format("hosts: {}\n", fmt::join(plan.hosts(), ", "));
    for (const v1::PlannedTree& tree : plan.trees()) {
      text += fmt::format("tree over {}: {}\n", fmt::join(tree.switches(), ", "), tree.shape());
    }
    return text;
  }

  std::string why(const std::string& name) {
    v1::ExplainRequest request;
    request.set_name(name);
    return ask<v1::ExplainResponse>(&v1::Fabric::Stub::Explain, request).text();
  }

  std::string end(const Order& order) {
    v1::EndJobRequest request;
    request.set_job(number_of(order.words.at(1), "a job's number"));
    request.set_why(order.option("--why"));
    ask<v1::EndJobResponse>(&v1::Fabric::Stub::EndJob, request);
    return "";
  }

  std::string drain(const Order& order) {
    v1::DrainRequest request;
    request.set_kind(order.words.at(1));
    request.set_name(order.words.at(2));
    request.set_why(order.option("--why"));
    request.set_now(order.options.contains("--now"));
    const auto response = ask<v1::DrainResponse>(&v1::Fabric::Stub::Drain, request);
    return fmt::format(
        "jobs on it: {}\n",
        response.jobs_size() == 0 ? "none" : fmt::format("{}", fmt::join(response.jobs(), ", ")));
  }

  std::string undrain(const Order& order) {
    v1::UndrainRequest request;
    request.set_kind(order.words.at(1));
    request.set_name(order.words.at(2));
    ask<v1::UndrainResponse>(&v1::Fabric::Stub::Undrain, request);
    return "";
  }

 private:
  template <typename Request, typename Response>
  using Call = grpc::Status (v1::Fabric::Stub::*)(grpc::ClientContext*, const Request&, Response*);

  /// Of each what it said; the first that leads is the last that is asked.
  template <typename Request, typename Response>
  grpc::Status ask_each(Call<Request, Response> call, const Request& request, Response& response) {
    std::string said;
    for (std::size_t at = 0; at < stubs_.size(); ++at) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() +
                           (stubs_.size() == 1 ? kPatience : kPatienceWithOne));
      grpc::Status status = (*stubs_[at].*call)(&context, request, &response);
      const bool is_silent =
          stubs_.size() > 1 && status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
      if (status.error_code() != grpc::StatusCode::UNAVAILABLE && !is_silent) {
        return status;
      }
      said += fmt::format("{}{}: {}", said.empty() ? "" : "; ", managers_[at],
                          is_silent ? "silent" : status.error_message());
    }
    return {grpc::StatusCode::UNAVAILABLE, said};
  }

  template <typename Response, typename Request>
  Response ask(Call<Request, Response> call, const Request& request) {
    Response response;
    grpc::Status status = ask_each(call, request, response);
    auto pause = kFirstPause;
    for (int round = 1; round < kRounds && stubs_.size() > 1 &&
                        status.error_code() == grpc::StatusCode::UNAVAILABLE;
         ++round, pause *= 2) {
      std::this_thread::sleep_for(pause);
      status = ask_each(call, request, response);
    }
    switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return response;
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::NOT_FOUND:
      throw rpc::WrongCall(status.error_message());
    case grpc::StatusCode::UNAVAILABLE:
      throw rpc::CallError(
          fmt::format("no answer from {}; does a manager run and lead, and is this "
                      "its address (--server, $WEIR_MANAGER)?",
                      status.error_message()));
    default:
      throw rpc::CallError(status.error_message());
    }
  }

  static std::string words_of(const v1::PictureLink& link) {
    const std::string down = link.is_down() ? "  is down" : "";
    return link.drained().empty() ? down : fmt::format("{}  {}", down, link.drained());
  }

  template <typename Jobs>
  static std::string table_of(const Jobs& jobs) {
    std::string text =
        fmt::format("{:>5} {:12} {:8} {:8} hosts\n", "job", "name", "tenant", "state");
    for (const v1::Job& job : jobs) {
      text += fmt::format("{:>5} {:12} {:8} {:8} {}\n", job.id(), job.name(),
                          job.tenant().empty() ? "-" : job.tenant(), job.state(),
                          fmt::join(job.hosts(), ","));
      for (int ring = 0; ring < job.rings_size(); ++ring) {
        text += fmt::format("      ring {}: {}\n", job.rings(ring), job.shapes(ring));
      }
      if (!job.why().empty()) {
        text += fmt::format("      {}\n", job.why());
      }
      if (job.waits_for_size() != 0) {
        text += fmt::format("      waits for {}\n", fmt::join(job.waits_for(), ", "));
      }
    }
    return text;
  }

  const std::vector<std::string> managers_;
  std::vector<std::unique_ptr<v1::Fabric::Stub>> stubs_; // by manager
};

} // namespace

std::string fabric_command(const std::vector<std::string>& managers, const rpc::ClientTls& tls,
                           const std::vector<std::string>& words) {
  const Order order = order_of(words);
  const std::string verb = order.words.empty() ? "help" : order.words.front();

  struct Verb {
    std::string_view name;
    std::size_t words;
    std::function<std::string(Desk&)> act;
  };

  const std::array verbs{
      Verb{"show", 1, [&](Desk& desk) { return desk.show(order); }},
      Verb{"jobs", 1, [&](Desk& desk) { return desk.jobs(); }},
      Verb{"plan", 1, [&](Desk& desk) { return desk.plan(order); }},
      Verb{"why", 2, [&](Desk& desk) { return desk.why(order.words.at(1)); }},
      Verb{"end", 2, [&](Desk& desk) { return desk.end(order); }},
      Verb{"drain", 3, [&](Desk& desk) { return desk.drain(order); }},
      Verb{"undrain", 3, [&](Desk& desk) { return desk.undrain(order); }},
  };
  const auto found = std::ranges::find(verbs, verb, &Verb::name);
  if (verb == "help") {
    return std::string(kWords);
  }
  if (found == verbs.end() || order.words.size() != found->words) {
    throw UsageError(fmt::format("found fabric {}; allowed:\n{}", fmt::join(words, " "), kWords));
  }
  Desk desk(managers, tls);
  return found->act(desk);
}

} // namespace weir::app
