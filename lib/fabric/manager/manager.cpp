// SPDX-License-Identifier: BSD-3-Clause
#include "manager/manager.hpp"

#include "jobs/loop.hpp"
#include "manager/fabric_metrics.hpp"
#include "manager/mailbox.hpp"
#include "manager/pem_file.hpp"
#include "manager/service.hpp"
#include "manager/switch_calls.hpp"
#include "store/sqlite_store.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <future>
#include <grpc/support/log.h>
#include <grpcpp/server_builder.h>
#include <stdexcept>
#include <sys/stat.h>
#include <thread>
#include <utility>

namespace weir::manager {
namespace {

constexpr std::chrono::milliseconds kLook{200};      // at the time, where nothing else happens
constexpr std::chrono::milliseconds kLastCalls{500}; // calls under way get so long at the end
constexpr std::chrono::seconds kViewPatience{2};
constexpr int kMostRequestBytes = 1 << 20;
constexpr int kSignOfLifeMs = 30'000; // a client that does not answer is gone

/// What was there before the first start of any manager.
v1::FabricRecord first_record() {
  v1::FabricRecord record;
  record.set_schema(1);
  record.set_epoch(1);
  record.set_next_ring(std::uint64_t{1} << 31);
  record.set_next_job(1);
  return record;
}

/// One more start than the store has seen.
jobs::LeaderTerm next_term(store::Store& store) {
  const auto stored = store.read("fabric");
  v1::FabricRecord record = first_record();
  if (!stored || (!stored->empty() && !record.ParseFromString(*stored))) {
    throw std::runtime_error("the store has no record of a fabric that can be read");
  }
  record.set_starts(record.starts() + 1);
  const store::Change change{"fabric", record.SerializeAsString()};
  if (store.write({&change, 1}) != store::Written::done) {
    throw std::runtime_error("the store cannot be written");
  }
  return {record.epoch(), record.starts()};
}

std::shared_ptr<grpc::ServerCredentials> server_credentials_for(const std::string& address,
                                                                const Config& config) {
  if (address.starts_with("unix:")) {
    return grpc::InsecureServerCredentials();
  }
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = contents_of(config.tls->client_authority);
  options.pem_key_cert_pairs = {
      {contents_of(config.tls->key), contents_of(config.tls->certificate)}};
  return grpc::SslServerCredentials(options);
}

} // namespace

struct Manager::Parts : jobs::Outside {
  Parts(const Config& given, Note told);

  void start_server();
  void end_server();
  void work_until_closed();

  // What the loop has others do.
  void claim(jobs::SwitchIndex at, const v1::ClaimFabricRequest& request) override {
    switches->claim(at, request);
  }

  void apply(jobs::SwitchIndex at, const v1::ApplyRingsRequest& request) override {
    switches->apply(at, request);
  }

  void remove(jobs::SwitchIndex at, const v1::RemoveRingsRequest& request) override {
    switches->remove(at, request);
  }

  void watch(jobs::SwitchIndex at, const v1::WatchSwitchRequest& request) override {
    switches->watch(at, request);
  }

  void tell(jobs::CallId call, const v1::JobEvent& event) override { service.tell(call, event); }

  void end(jobs::CallId call, const jobs::Outcome& outcome) override { service.end(call, outcome); }

  void note(const std::string& kind, const std::string& sentence) override {
    tell_note(kind, sentence);
  }

  void stop(const std::string& why) override {
    fenced = why;
    is_stopped = true;
  }

  const Config& config;
  const Note tell_note;
  store::SqliteStore store;
  const jobs::LeaderTerm term;
  Mailbox mailbox;
  std::optional<jobs::Loop> loop; // of the mailbox's thread, while it leads
  Service service;
  std::optional<SwitchCalls> switches;
  std::unique_ptr<grpc::Server> server;
  std::string fenced;
  std::atomic<bool> is_stopped{false};
};

Manager::Parts::Parts(const Config& given, Note told)
    : config(given), tell_note(std::move(told)), store(given.sqlite), term(next_term(store)),
      service(given, mailbox, [this] { return loop ? &*loop : nullptr; }) {
  const auto if_leads = [this](auto work) {
    if (loop && !is_stopped) {
      work(*loop);
    }
  };
  switches.emplace(
      config, mailbox,
      SwitchEvents{[=](auto at, const auto& outcome, const auto& answer) {
                     if_leads([&](jobs::Loop& leads) {
                       leads.on_claimed(at, outcome, answer, boot_time_ms());
                     });
                   },
                   [=](auto at, auto number, const auto& outcome) {
                     if_leads([&](jobs::Loop& leads) {
                       leads.on_ordered(at, number, outcome, boot_time_ms());
                     });
                   },
                   [=](auto at, const auto& seen) {
                     if_leads([&](jobs::Loop& leads) { leads.on_seen(at, seen, boot_time_ms()); });
                   },
                   [=](auto at, const auto& outcome) {
                     if_leads([&](jobs::Loop& leads) {
                       leads.on_watch_ended(at, outcome, boot_time_ms());
                     });
                   }});
}

/// The socket's file is for this user alone.
void Manager::Parts::start_server() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) {
    gpr_set_log_function([](gpr_log_func_args*) {});
  }
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMostRequestBytes);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kSignOfLifeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kSignOfLifeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  for (const std::string& address : config.listen) {
    builder.AddListeningPort(address, server_credentials_for(address, config));
  }
  builder.RegisterService(&service);
  constexpr mode_t for_owner_alone = 0177;
  const mode_t before = umask(for_owner_alone);
  server = builder.BuildAndStart();
  umask(before);
  if (server == nullptr) {
    throw std::runtime_error(fmt::format("listen: found {}; allowed: addresses of this machine at "
                                         "which nobody listens, and folders that there are",
                                         fmt::join(config.listen, ", ")));
  }
}

/// Calls wait for the mailbox's thread, which is this one.
void Manager::Parts::end_server() {
  loop.reset();
  service.end_all({jobs::Code::unavailable, "the manager stops"});
  std::thread ending([this] {
    server->Shutdown(std::chrono::system_clock::now() + kLastCalls);
    server->Wait();
    switches.reset();
    mailbox.close();
  });
  while (!mailbox.is_closed()) {
    for (const Mailbox::Work& work : mailbox.take(kLook)) {
      work();
    }
  }
  ending.join();
}

Manager::Manager(const Config& config, Note note)
    : parts_(std::make_unique<Parts>(config, std::move(note))) {
  parts_->start_server();
}

Manager::~Manager() = default;

std::string Manager::run() {
  Parts& parts = *parts_;
  parts.loop.emplace(parts.config.site, parts.store, parts,
                     jobs::Loop::Identity{parts.config.name, parts.term});
  parts.tell_note("leads",
                  fmt::format("{} leads the fabric {} with term {}.{}", parts.config.name,
                              parts.config.site.fabric, parts.term.epoch, parts.term.number));
  parts.loop->begin(boot_time_ms());
  while (!parts.is_stopped) {
    for (const Mailbox::Work& work : parts.mailbox.take(kLook)) {
      work();
    }
    if (!parts.is_stopped) {
      parts.loop->on_time(boot_time_ms());
    }
  }
  parts.end_server();
  return parts.fenced;
}

void Manager::stop() {
  parts_->is_stopped = true;
  parts_->mailbox.add([] {});
}

std::shared_ptr<const Manager::Answer> Manager::view() {
  auto made = std::make_shared<std::promise<std::shared_ptr<const Answer>>>();
  auto answer = made->get_future();
  parts_->mailbox.add([this, made] {
    if (!parts_->loop) {
      made->set_value(nullptr);
      return;
    }
    auto view = std::make_shared<Answer>();
    view->picture = parts_->loop->picture({.name = "", .is_operator = true});
    view->drawn = std::chrono::system_clock::now();
    view->metrics = metrics_of(view->picture, parts_->loop->counts());
    made->set_value(std::move(view));
  });
  return answer.wait_for(kViewPatience) == std::future_status::ready ? answer.get() : nullptr;
}

} // namespace weir::manager
