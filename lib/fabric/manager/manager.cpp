// SPDX-License-Identifier: BSD-3-Clause
#include "manager/manager.hpp"

#include "gate/doors.hpp"
#include "jobs/loop.hpp"
#include "manager/fabric_metrics.hpp"
#include "manager/gate_log.hpp"
#include "manager/leader_words.hpp"
#include "manager/mailbox.hpp"
#include "manager/pem_file.hpp"
#include "manager/service.hpp"
#include "manager/switch_calls.hpp"
#include "store/boot_time.hpp"
#include "store/etcd_store.hpp"
#include "store/sqlite_store.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <grpc/support/log.h>
#include <grpcpp/server_builder.h>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

namespace weir::manager {
namespace {

constexpr std::chrono::milliseconds kLook{200}; // at the time, where nothing else happens
constexpr std::chrono::milliseconds kNoWait{0};
constexpr std::chrono::seconds kViewPatience{2};
constexpr std::chrono::seconds kStoreLearns{3};            // that another one leads
constexpr std::size_t kMostBytes = std::size_t{512} << 20; // of all connections

/// What was there before the first start of any manager.
v1::FabricRecord first_record() {
  v1::FabricRecord record;
  record.set_schema(1);
  record.set_epoch(1);
  record.set_next_ring(std::uint64_t{1} << 31);
  record.set_next_job(1);
  return record;
}

std::unique_ptr<store::Store> open_store(const Config& config) {
  if (!config.etcd) {
    return std::make_unique<store::SqliteStore>(config.sqlite);
  }
  const EtcdFiles& files = *config.etcd;
  const auto text_of = [](const std::string& file) {
    return file.empty() ? "" : contents_of(file);
  };
  const store::EtcdAccess access{.servers = files.servers,
                                 .certificate = text_of(files.certificate),
                                 .key = text_of(files.key),
                                 .authority = text_of(files.authority)};
  return std::make_unique<store::EtcdStore>(access, config.site.fabric, leader_value(config));
}

/// Numbered by the store, or else one more start than it has seen. None: the store does not answer.
std::optional<jobs::LeaderTerm> next_term(store::Store& store, const store::Leadership& lead) {
  const auto stored = store.read("fabric");
  if (!stored) {
    return std::nullopt;
  }
  v1::FabricRecord record = first_record();
  if (!stored->empty() && !record.ParseFromString(*stored)) {
    throw std::runtime_error("the store has no record of a fabric that can be read");
  }
  record.set_starts(record.starts() + 1);
  const store::Change change{"fabric", record.SerializeAsString()};
  if (store.write({&change, 1}) != store::Written::done) {
    return std::nullopt;
  }
  return jobs::LeaderTerm{record.epoch(), lead.number != 0 ? lead.number : record.starts()};
}

gate::Doors::Places places_of(const Config& config) {
  constexpr std::string_view local = "unix:";
  gate::Doors::Places places;
  for (const std::string& address : config.listen) {
    if (address.starts_with(local)) {
      places.local.push_back(address.substr(local.size()));
    } else {
      places.remote.push_back(address);
    }
  }
  return places;
}

/// Where there are schedulers, a job's token may stand for a certificate.
gate::Orders orders_of(const Config& config) {
  gate::Orders orders{&gate::kOfManager,
                      config.schedulers.empty() ? gate::Certificates::required
                                                : gate::Certificates::asked_for,
                      {}};
  if (config.tls) {
    const TlsFiles& files = *config.tls;
    orders.files = {files.certificate, files.key, files.client_authority};
  }
  return orders;
}

} // namespace

struct Manager::Parts : jobs::Outside {
  Parts(const Config& given, jobs::Origin stored, Note told);
  ~Parts() override;
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  void start_server();
  void close_doors();
  void tell_of_gate(gate::Incident incident, const std::string& sentence);
  void end_server();
  void stand_by();
  void try_to_lead(const store::Leadership& now);
  void begin_to_lead(const jobs::LeaderTerm& term);
  void lead();
  bool is_followed() const;
  std::shared_ptr<Answer> view();

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

  void begin_again(const std::string& why) override {
    claimed = why;
    is_stopped = true;
  }

  const Config& config;
  const jobs::Origin origin;
  const Note tell_note;
  const std::unique_ptr<store::Store> store;
  Mailbox mailbox;
  std::optional<jobs::Loop> loop; // of the mailbox's thread, while it leads
  Service service;
  std::optional<SwitchCalls> switches;
  GateLog gate_log;
  gate::Doors doors;
  std::unique_ptr<grpc::Server> server;
  std::thread doorkeeper;
  std::string fenced;
  std::string claimed;
  std::atomic<bool> is_stopped{false};
};

Manager::Parts::Parts(const Config& given, jobs::Origin stored, Note told)
    : config(given), origin(stored), tell_note(std::move(told)), store(open_store(given)),
      service(given, mailbox,
              {[this] { return loop ? &*loop : nullptr; },
               [this] {
                 return fmt::format("{} stands by: {}", config.name,
                                    who_leads(store->leadership()));
               }}),
      doors(places_of(given), orders_of(given),
            [this](auto incident, const auto& sentence) { tell_of_gate(incident, sentence); }) {
  const auto if_leads = [this](auto work) {
    if (loop && !is_stopped) {
      work(*loop);
    }
  };
  switches.emplace(config, mailbox,
                   SwitchEvents{[=](auto at, const auto& outcome, const auto& answer) {
                                  if_leads([&](jobs::Loop& leads) {
                                    leads.on_claimed(at, outcome, answer, store::boot_time_ms());
                                  });
                                },
                                [=](auto at, auto number, const auto& outcome) {
                                  if_leads([&](jobs::Loop& leads) {
                                    leads.on_ordered(at, number, outcome, store::boot_time_ms());
                                  });
                                },
                                [=](auto at, const auto& seen) {
                                  if_leads([&](jobs::Loop& leads) {
                                    leads.on_seen(at, seen, store::boot_time_ms());
                                  });
                                },
                                [=](auto at, const auto& outcome) {
                                  if_leads([&](jobs::Loop& leads) {
                                    leads.on_watch_ended(at, outcome, store::boot_time_ms());
                                  });
                                }});
}

Manager::Parts::~Parts() {
  close_doors();
}

void Manager::Parts::start_server() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) {
    gpr_set_log_function([](gpr_log_func_args*) {});
  }
  grpc::ServerBuilder builder;
  builder.SetResourceQuota(grpc::ResourceQuota("weir.manager").Resize(kMostBytes));
  builder.RegisterService(&service);
  doors.lead_to(builder);
  server = builder.BuildAndStart();
  if (server == nullptr) {
    throw std::runtime_error("listen: gRPC does not start its server");
  }
  doorkeeper = std::thread([this] {
    while (doors.serve()) {
    }
  });
}

void Manager::Parts::close_doors() {
  doors.close();
  if (doorkeeper.joinable()) {
    doorkeeper.join();
  }
}

/// By the doorkeeper, and before it begins.
void Manager::Parts::tell_of_gate(gate::Incident incident, const std::string& sentence) {
  if (const auto line = gate_log.note(incident, sentence, GateLog::Clock::now())) {
    tell_note(std::string(gate::word_of(incident)), *line);
  }
}

/// Calls wait for the mailbox's thread, which is this one.
void Manager::Parts::end_server() {
  loop.reset();
  service.end_all({jobs::Code::unavailable, "the manager stops"});
  close_doors();
  std::thread ending([this] {
    doors.end(*server);
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

Manager::Manager(const Config& config, jobs::Origin origin, Note note) {
  try {
    parts_ = std::make_unique<Parts>(config, origin, std::move(note));
  } catch (const net::ListenError& error) {
    throw std::runtime_error(fmt::format("listen: {}", error.what()));
  }
  parts_->start_server();
}

Manager::~Manager() = default;

/// Until it leads, or is stopped.
void Manager::Parts::stand_by() {
  std::string told;
  while (!is_stopped && !loop) {
    const store::Leadership now = store->leadership();
    if (now.standing == store::Standing::over) {
      stop(who_leads(now));
    } else if (now.standing == store::Standing::leads) {
      try_to_lead(now);
    }
    if (const std::string words = who_leads_and_why(store->leadership()); !loop && words != told) {
      told = words;
      tell_note("stands_by", fmt::format("{}: {}", config.name, words));
    }
    for (const Mailbox::Work& work : mailbox.take(loop ? kNoWait : kLook)) {
      work();
    }
  }
}

/// A store of one machine that does not answer is broken; of several, it will be back.
void Manager::Parts::try_to_lead(const store::Leadership& now) {
  if (const auto term = next_term(*store, now)) {
    begin_to_lead(*term);
  } else if (!config.etcd) {
    throw std::runtime_error("the store cannot be read or written");
  }
}

void Manager::Parts::begin_to_lead(const jobs::LeaderTerm& term) {
  loop.emplace(config.site, *store, *this, jobs::Loop::Identity{config.name, term});
  tell_note("leads", fmt::format("{} leads the fabric {} with term {}.{}", config.name,
                                 config.site.fabric, term.epoch, term.number));
  loop->begin(store::boot_time_ms(), origin);
}

void Manager::Parts::lead() {
  while (!is_stopped) {
    for (const Mailbox::Work& work : mailbox.take(kLook)) {
      work();
    }
    if (!is_stopped) {
      loop->on_time(store::boot_time_ms());
    }
  }
}

/// A switch may know of a new leader before this store does. If the store stays with it, the switch
/// has heard of another store, or this one is an old one: somebody has to look.
bool Manager::Parts::is_followed() const {
  const auto end = std::chrono::steady_clock::now() + kStoreLearns;
  while (config.etcd && std::chrono::steady_clock::now() < end) {
    if (store->leadership().standing != store::Standing::leads) {
      return true;
    }
    std::this_thread::sleep_for(kLook);
  }
  return false;
}

Manager::End Manager::run() {
  parts_->stand_by();
  parts_->lead();
  parts_->end_server();
  const bool is_fenced = !parts_->fenced.empty();
  return {parts_->fenced, is_fenced && parts_->is_followed(), parts_->claimed};
}

void Manager::stop() {
  parts_->is_stopped = true;
  parts_->mailbox.add([] {});
}

/// By the mailbox's thread.
std::shared_ptr<Manager::Answer> Manager::Parts::view() {
  auto view = std::make_shared<Answer>();
  view->drawn = std::chrono::system_clock::now();
  if (loop) {
    view->picture = loop->picture({.name = "", .is_operator = true});
    view->metrics =
        metrics_of(view->picture, loop->counts()) + metrics_of(store->leadership().standbys);
  } else if (!is_stopped) {
    view->standby = Standby{config.site.fabric, config.name, leader_name(store->leadership())};
    view->metrics = metrics_of(*view->standby);
  } else {
    return nullptr;
  }
  view->metrics += metrics_of(gate_log);
  return view;
}

std::shared_ptr<const Manager::Answer> Manager::view() {
  auto made = std::make_shared<std::promise<std::shared_ptr<Answer>>>();
  auto answer = made->get_future();
  parts_->mailbox.add([this, made] { made->set_value(parts_->view()); });
  if (answer.wait_for(kViewPatience) != std::future_status::ready) {
    return nullptr;
  }
  const std::shared_ptr<Answer> view = answer.get();
  if (view) {
    view->metrics +=
        metrics_of(certificate_ends(parts_->config)); // files: not by the loop's thread
  }
  return view;
}

} // namespace weir::manager
