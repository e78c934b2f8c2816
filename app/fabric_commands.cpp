// SPDX-License-Identifier: BSD-3-Clause
#include "fabric_commands.hpp"

#include "manager/pem_file.hpp"
#include "manager/picture_findings.hpp"
#include "manager/picture_svg.hpp"
#include "manager/scheduler_files.hpp"
#include "text/list.hpp"
#include "text/token_text.hpp"
#include "usage_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>
#include <weir/v1/fabric.grpc.pb.h>

namespace weir::app {
namespace {

constexpr std::chrono::seconds kPatience{30};
constexpr std::chrono::seconds kPatienceWithOne{3}; // of several managers
constexpr int kRounds = 5;                          // over several managers: one of them takes over
constexpr std::uint64_t kMostWithin = 3600;
constexpr std::chrono::milliseconds kFirstPause{500};

constexpr std::string_view kWords =
    "fabric show [--svg FILE]           the switches, their links and loads, and the jobs\n"
    "fabric jobs [--json]               the jobs: their hosts, rings and trees\n"
    "fabric plan --hosts HOSTS [--rings N] [--without SWITCH]... [--json]\n"
    "                                   which trees a job of these hosts would have\n"
    "fabric why JOB|REQUEST|SWITCH|LINK [--json]\n"
    "                                   why it is so\n"
    "fabric end JOB [--why TEXT]        takes the job's rings down\n"
    "fabric drain switch|host|link NAME [--why TEXT] [--now]\n"
    "                                   nothing new on it; --now: jobs on it end\n"
    "fabric undrain switch|host|link NAME\n"
    "fabric allocation list [--json]    what schedulers have granted, and its jobs\n"
    "fabric allocation grant NAME --hosts HOSTS [--tenant TENANT] [--anew]\n"
    "                                   hosts for jobs, until it ends; granted again it is the "
    "same,\n"
    "                                   with --anew another one, and the former ends\n"
    "fabric allocation end NAME         its jobs end at once\n"
    "fabric allocation token NAME --file FILE\n"
    "                                   for $WEIR_TOKEN_FILE, by a host's certificate; FILE is "
    "new\n"
    "fabric export --slurm              topology.conf: which hosts are near each other\n"
    "fabric export --kubernetes [--keys KEY,KEY,...]\n"
    "                                   the same as labels of nodes, from the leaf outwards\n"
    "fabric claim                       after a backup was restored: the manager begins again, "
    "with\n"
    "                                   a higher term, and ids that were never given\n"
    "fabric adopt [--without SWITCH]... the same, and jobs that the store has lost are taken over "
    "from\n"
    "                                   the switches, which all must be reached but these\n"
    "--within SECONDS                   with any of them: the managers are asked once, and each "
    "has\n"
    "                                   its share of the time\n";

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
  constexpr std::array<std::string_view, 9> with_value{"--svg",     "--hosts",  "--rings",
                                                       "--without", "--within", "--why",
                                                       "--keys",    "--tenant", "--file"};
  constexpr std::array<std::string_view, 5> alone{"--now", "--json", "--slurm", "--kubernetes",
                                                  "--anew"};
  Order order;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (std::ranges::find(alone, word) != alone.end()) {
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

/// With managers that do not answer.
struct Patience {
  std::chrono::milliseconds with_one;
  int rounds = 1;
};

Patience patience_of(const Order& order, std::size_t managers) {
  if (const std::string within = order.option("--within"); !within.empty()) {
    const std::chrono::seconds all(std::min(kMostWithin, number_of(within, "seconds")));
    return {std::chrono::milliseconds(all) / std::max<std::size_t>(1, managers)};
  }
  return managers == 1 ? Patience{kPatience} : Patience{kPatienceWithOne, kRounds};
}

std::vector<std::string> keys_in(const std::string& list) {
  const std::vector<std::string_view> words = text::words_of(list);
  if (std::ranges::find(words, "") != words.end()) {
    throw UsageError(fmt::format("--keys: found '{}'; allowed: keys with commas between", list));
  }
  return {words.begin(), words.end()};
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

/// A file that was not there before, for its owner alone to read. It goes if nothing was written.
class SecretFile {
 public:
  explicit SecretFile(const std::string& path) : path_(path) {
    constexpr mode_t for_owner_alone = 0400;
    descriptor_ = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, for_owner_alone);
    if (descriptor_ < 0) {
      throw rpc::CallError(fmt::format("{}: {}; allowed: a new file", path, std::strerror(errno)));
    }
  }

  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;

  ~SecretFile() {
    if (descriptor_ >= 0) {
      close(descriptor_);
      unlink(path_.c_str());
    }
  }

  void write(const std::string& text) {
    const bool is_written = ::write(descriptor_, text.data(), text.size()) == std::ssize(text);
    if (!is_written || fsync(descriptor_) != 0) {
      throw rpc::CallError(fmt::format("{} cannot be written", path_));
    }
    close(std::exchange(descriptor_, -1));
  }

 private:
  const std::string path_;
  int descriptor_ = -1;
};

/// Calls the manager that leads, and prints what it says.
class Desk {
 public:
  Desk(const std::vector<std::string>& managers, const rpc::ClientTls& tls, Patience patience)
      : managers_(managers), patience_(patience) {
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
    std::string text =
        fmt::format("fabric {}, {}\n\n", picture.fabric(), manager::lead_of(picture));
    if (!picture.doubt().empty()) {
      text += picture.doubt() + "\n\n";
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

  std::string jobs(const Order& order) {
    const auto list = ask<v1::ListJobsResponse>(&v1::Fabric::Stub::ListJobs, v1::ListJobsRequest());
    return order.options.contains("--json") ? json_of(list)
                                            : with_doubt(list, table_of(list.jobs()));
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
    if (order.options.contains("--json")) {
      return json_of(plan);
    }
    std::string text = fmt::format("hosts: {}\n", fmt::join(plan.hosts(), ", "));
    for (const v1::PlannedTree& tree : plan.trees()) {
      text += fmt::format("tree over {}: {}\n", fmt::join(tree.switches(), ", "), tree.shape());
    }
    return with_doubt(plan, text);
  }

  std::string why(const Order& order) {
    v1::ExplainRequest request;
    request.set_name(order.words.at(1));
    const auto why = ask<v1::ExplainResponse>(&v1::Fabric::Stub::Explain, request);
    return order.options.contains("--json") ? json_of(why) : with_doubt(why, why.text());
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

  std::string exported(const Order& order) {
    const bool is_slurm = order.options.contains("--slurm");
    if (is_slurm == order.options.contains("--kubernetes")) {
      throw UsageError(
          fmt::format("found fabric export for {}; allowed: --slurm or --kubernetes\n{}",
                      is_slurm ? "two" : "nobody", kWords));
    }
    const std::string keys = order.option("--keys");
    const auto picture =
        ask<v1::FabricPicture>(&v1::Fabric::Stub::GetFabric, v1::GetFabricRequest());
    try {
      return is_slurm ? manager::slurm_of(picture)
                      : manager::kubernetes_of(picture, keys.empty() ? manager::kTopographKeys
                                                                     : keys_in(keys));
    } catch (const manager::NotForSchedulers& error) {
      throw rpc::CallError(error.what());
    }
  }

  std::string allocations(const Order& order) {
    const auto list = ask<v1::ListAllocationsResponse>(&v1::Fabric::Stub::ListAllocations,
                                                       v1::ListAllocationsRequest());
    if (order.options.contains("--json")) {
      return json_of(list);
    }
    std::string text = fmt::format("{:24} {:8} {:12} hosts\n", "allocation", "tenant", "jobs");
    for (const v1::Allocation& one : list.allocations()) {
      text += fmt::format(
          "{:24} {:8} {:12} {}\n", one.name(), one.tenant().empty() ? "-" : one.tenant(),
          fmt::format("{}", fmt::join(one.jobs(), ",")), fmt::join(one.hosts(), ","));
    }
    return with_doubt(list, text);
  }

  std::string grant(const Order& order) {
    v1::GrantAllocationRequest request;
    request.set_name(order.words.at(2));
    request.set_hosts(order.option("--hosts"));
    request.set_tenant(order.option("--tenant"));
    request.set_anew(order.options.contains("--anew"));
    const auto granted =
        ask<v1::GrantAllocationResponse>(&v1::Fabric::Stub::GrantAllocation, request);
    return fmt::format("granted: {}, allocation {}\n", request.name(), granted.allocation());
  }

  std::string end_allocation(const Order& order) {
    v1::EndAllocationRequest request;
    request.set_name(order.words.at(2));
    const auto ended = ask<v1::EndAllocationResponse>(&v1::Fabric::Stub::EndAllocation, request);
    return fmt::format("ended: {}; its jobs: {}\n", request.name(),
                       ended.jobs_size() == 0 ? "none"
                                              : fmt::format("{}", fmt::join(ended.jobs(), ", ")));
  }

  /// For nobody's eyes: it is never printed.
  std::string token(const Order& order) {
    const std::string file = order.option("--file");
    if (file.empty()) {
      throw UsageError(fmt::format("found fabric allocation token without --file\n{}", kWords));
    }
    v1::IssueTokenRequest request;
    request.set_name(order.words.at(2));
    SecretFile secret(file); // first: each token that is issued takes the place of an older one
    const auto issued = ask<v1::IssueTokenResponse>(&v1::Fabric::Stub::IssueToken, request);
    secret.write(text::token_text({issued.allocation(), issued.token()}));
    return fmt::format("written: {}\n", file);
  }

  std::string claim(const Order&) {
    v1::ClaimResponse claimed;
    // Once: the answer to one that was carried out may be lost.
    end_unless_ok(ask_each(&v1::Fabric::Stub::Claim, v1::ClaimRequest(), claimed));
    return words_of(claimed) +
           not_reached(claimed, "one that knows a later epoch will refuse the manager: claim once "
                                "more then");
  }

  std::string adopt(const Order& order) {
    v1::AdoptRequest request;
    const auto [first, last] = order.options.equal_range("--without");
    for (auto without = first; without != last; ++without) {
      request.add_without(without->second);
    }
    v1::ClaimResponse claimed;
    end_unless_ok(ask_each(&v1::Fabric::Stub::Adopt, request, claimed)); // once, as a claim
    return words_of(claimed) + not_reached(claimed, "the manager waits for each; without one: "
                                                    "`weirctl fabric adopt --without NAME`");
  }

 private:
  template <typename Request, typename Response>
  using Call = grpc::Status (v1::Fabric::Stub::*)(grpc::ClientContext*, const Request&, Response*);

  static std::string words_of(const v1::ClaimResponse& claimed) {
    return fmt::format("claimed: epoch {}, rings from {}, jobs from {}; the manager {}\n",
                       claimed.epoch(), claimed.next_ring(), claimed.next_job(),
                       claimed.goes_on() ? "goes on" : "ends, to begin again");
  }

  static std::string not_reached(const v1::ClaimResponse& claimed, std::string_view advice) {
    return claimed.unheard().empty()
               ? ""
               : fmt::format("not reached: {}; {}\n", fmt::join(claimed.unheard(), ", "), advice);
  }

  /// Of each what it said; the first that leads is the last that is asked.
  template <typename Request, typename Response>
  grpc::Status ask_each(Call<Request, Response> call, const Request& request, Response& response) {
    std::string said;
    for (std::size_t at = 0; at < stubs_.size(); ++at) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + patience_.with_one);
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
    for (int round = 1;
         round < patience_.rounds && status.error_code() == grpc::StatusCode::UNAVAILABLE;
         ++round, pause *= 2) {
      std::this_thread::sleep_for(pause);
      status = ask_each(call, request, response);
    }
    end_unless_ok(status);
    return response;
  }

  static void end_unless_ok(const grpc::Status& status) {
    switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return;
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

  /// The answer's fields, by the names of proto/.
  static std::string json_of(const google::protobuf::Message& answer) {
    google::protobuf::util::JsonPrintOptions options;
    options.preserve_proto_field_names = true;
    options.always_print_primitive_fields = true;
    std::string text;
    if (!google::protobuf::util::MessageToJsonString(answer, &text, options).ok()) {
      throw rpc::CallError("the answer cannot be written as JSON");
    }
    return text + "\n";
  }

  template <typename Answer>
  static std::string with_doubt(const Answer& answer, const std::string& text) {
    return answer.doubt().empty() ? text : answer.doubt() + "\n" + text;
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
  const Patience patience_;
  std::vector<std::unique_ptr<v1::Fabric::Stub>> stubs_; // by manager
};

/// The first word, or two.
std::string verb_of(const Order& order) {
  if (order.words.empty()) {
    return "help";
  }
  const bool has_two = order.words.front() == "allocation" && order.words.size() > 1;
  return has_two ? fmt::format("allocation {}", order.words[1]) : order.words.front();
}

} // namespace

std::string fabric_command(const std::vector<std::string>& managers, const rpc::ClientTls& tls,
                           const std::vector<std::string>& words) {
  const Order order = order_of(words);
  const std::string verb = verb_of(order);

  struct Verb {
    std::string_view name;
    std::size_t words;
    std::function<std::string(Desk&)> act;
  };

  const std::array verbs{
      Verb{"show", 1, [&](Desk& desk) { return desk.show(order); }},
      Verb{"jobs", 1, [&](Desk& desk) { return desk.jobs(order); }},
      Verb{"plan", 1, [&](Desk& desk) { return desk.plan(order); }},
      Verb{"why", 2, [&](Desk& desk) { return desk.why(order); }},
      Verb{"end", 2, [&](Desk& desk) { return desk.end(order); }},
      Verb{"drain", 3, [&](Desk& desk) { return desk.drain(order); }},
      Verb{"undrain", 3, [&](Desk& desk) { return desk.undrain(order); }},
      Verb{"allocation list", 2, [&](Desk& desk) { return desk.allocations(order); }},
      Verb{"allocation grant", 3, [&](Desk& desk) { return desk.grant(order); }},
      Verb{"allocation end", 3, [&](Desk& desk) { return desk.end_allocation(order); }},
      Verb{"allocation token", 3, [&](Desk& desk) { return desk.token(order); }},
      Verb{"export", 1, [&](Desk& desk) { return desk.exported(order); }},
      Verb{"claim", 1, [&](Desk& desk) { return desk.claim(order); }},
      Verb{"adopt", 1, [&](Desk& desk) { return desk.adopt(order); }},
  };
  const auto found = std::ranges::find(verbs, verb, &Verb::name);
  if (verb == "help") {
    return std::string(kWords);
  }
  if (found == verbs.end() || order.words.size() != found->words) {
    throw UsageError(fmt::format("found fabric {}; allowed:\n{}", fmt::join(words, " "), kWords));
  }
  Desk desk(managers, tls, patience_of(order, managers.size()));
  return found->act(desk);
}

} // namespace weir::app
