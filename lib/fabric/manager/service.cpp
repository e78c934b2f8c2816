// SPDX-License-Identifier: BSD-3-Clause
#include "manager/service.hpp"

#include "gate/peer.hpp"
#include "jobs/words.hpp"
#include "random/random_bytes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::manager {
namespace {

using jobs::Code;
using jobs::Outcome;

// gRPC has no more room for words than 8 KiB, in which a letter may take three times its bytes.
constexpr std::size_t kMostWords = 2048;

grpc::Status status_of(const Outcome& outcome) {
  const std::string words = jobs::beginning_of(outcome.words, kMostWords);
  switch (outcome.code) {
  case Code::ok:
    return grpc::Status::OK;
  case Code::invalid:
    return {grpc::StatusCode::INVALID_ARGUMENT, words};
  case Code::not_allowed:
    return {grpc::StatusCode::PERMISSION_DENIED, words};
  case Code::exhausted:
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, words};
  case Code::impossible:
    return {grpc::StatusCode::FAILED_PRECONDITION, words};
  case Code::not_found:
    return {grpc::StatusCode::NOT_FOUND, words};
  case Code::aborted:
  case Code::refused:
    return {grpc::StatusCode::ABORTED, words};
  case Code::over:
  case Code::no_answer:
  case Code::unavailable:
    break;
  }
  return {grpc::StatusCode::UNAVAILABLE, words};
}

/// By a token, whatever his name is.
Door door_of(std::uint64_t allocation) {
  return allocation == 0 ? Door::users : Door::anybody;
}

/// Empty: he has no certificate. Throws Refused.
std::string name_of(const gate::Peer& peer) {
  if (peer.common_names.size() > 1) {
    throw jobs::Loop::Refused(
        Code::not_allowed,
        fmt::format("certificate: found {} common names; allowed: one", peer.common_names.size()));
  }
  return peer.common_names.empty() ? "" : peer.common_names.front();
}

/// Who comes by a Unix socket is root, or the manager's own user: the door has asked the kernel.
/// Else the certificate's common name decides; there may be none. Throws Refused.
jobs::Caller caller_of(const gate::Peer& peer, const Config& config, Door door) {
  if (peer.is_local) {
    return {.name = "", .is_operator = true};
  }
  const std::string name = name_of(peer);
  const auto is_in = [&](const std::vector<std::string>& names) {
    return !name.empty() && std::ranges::find(names, name) != names.end();
  };
  const bool is_tenant =
      !name.empty() && std::ranges::find(config.site.tenants, name, &jobs::Tenant::name) !=
                           config.site.tenants.end();
  jobs::Caller caller{.name = name,
                      .is_operator = is_in(config.operators),
                      .is_scheduler = is_in(config.schedulers)};
  if (door == Door::users && !caller.is_operator && !is_tenant) {
    throw jobs::Loop::Refused(Code::not_allowed,
                              fmt::format("certificate: found the common name '{}'; allowed: a "
                                          "name under operators or under tenants",
                                          name));
  }
  return caller;
}

/// Whom a rate is for. Without one name in a certificate he is his address: what else he says of
/// himself may be another one's.
std::string rate_name_of(const gate::Peer& peer) {
  return peer.common_names.size() == 1 ? "named " + peer.common_names.front()
                                       : "at " + peer.address;
}

/// Throws Refused for a token that is none.
template <typename Request>
jobs::Caller who_asks(const jobs::Loop& loop, const jobs::Caller& caller, const Request& request) {
  return request.allocation() == 0 ? caller
                                   : loop.bearer_of(caller, request.allocation(), request.token());
}

/// Throws Refused.
std::string new_token() {
  constexpr std::size_t bytes = 32;
  const auto drawn = random_bytes<bytes>();
  return {drawn.begin(), drawn.end()};
}

Outcome too_many_requests() {
  return {Code::unavailable,
          fmt::format("found more than {} requests in a second; allowed: the same a little later",
                      Service::kRequestsPerSecond)};
}

Outcome too_many_calls() {
  return {Code::unavailable,
          fmt::format("{} calls wait for the manager's answer; come again", Mailbox::kMostCalls)};
}

class Answer : public grpc::ServerUnaryReactor {
 public:
  void OnDone() override { delete this; }
};

} // namespace

/// Who may ask nothing hears so of the manager that leads: another one may have another file.
struct Service::Asker {
  std::optional<jobs::Caller> caller;
  Outcome refused;
};

Service::Asker Service::asker_of(const gate::Peer& peer, Door door) const {
  try {
    return {caller_of(peer, config_, door), {}};
  } catch (const jobs::Loop::Refused& refused) {
    return {std::nullopt, {refused.code(), refused.what()}};
  }
}

std::optional<Outcome> Service::not_taken(const gate::Peer& peer, Mailbox::Work work) {
  if (peer.is_local) { // root and the manager's own user are never turned away
    mailbox_.add(std::move(work));
    return std::nullopt;
  }
  if (!rates_.lets_pass(rate_name_of(peer), net::RequestShares::Clock::now())) {
    return too_many_requests();
  }
  return mailbox_.add_call(std::move(work)) ? std::nullopt : std::optional(too_many_calls());
}

Outcome Service::no_leader() const {
  return {Code::unavailable, lead_.who_leads()};
}

/// An owner's call. Written by the mailbox's thread, read by gRPC's.
class Service::Holder : public grpc::ServerWriteReactor<v1::JobEvent> {
 public:
  Holder(Service& service, jobs::CallId call) : service_(service), call_(call) {}

  void tell(const v1::JobEvent& event) {
    const std::lock_guard lock(mutex_);
    if (!end_) {
      events_.push_back(event);
      go_on();
    }
  }

  /// The first counts.
  void end(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    if (!end_) {
      end_ = status;
      go_on();
    }
  }

  void OnWriteDone(bool is_written) override {
    const std::lock_guard lock(mutex_);
    is_writing_ = false;
    events_.pop_front();
    if (!is_written && !end_) {
      end_ = grpc::Status::CANCELLED;
    }
    go_on();
  }

  void OnCancel() override { end(grpc::Status::CANCELLED); }

  /// The loop never hears of it.
  void refuse(const grpc::Status& status) {
    is_refused_ = true;
    end(status);
  }

  void OnDone() override {
    service_.forget(call_);
    if (!is_refused_) {
      service_.tell_loop_of_end(call_);
    }
    delete this;
  }

 private:
  void go_on() {
    if (is_writing_ || is_finished_) {
      return;
    }
    const bool is_cancelled = end_ && end_->error_code() == grpc::StatusCode::CANCELLED;
    if (!events_.empty() && !is_cancelled) {
      is_writing_ = true;
      StartWrite(&events_.front());
    } else if (end_) {
      is_finished_ = true;
      Finish(*end_);
    }
  }

  Service& service_;
  const jobs::CallId call_;
  std::atomic<bool> is_refused_ = false;
  std::mutex mutex_; // guards all below
  std::deque<v1::JobEvent> events_;
  std::optional<grpc::Status> end_;
  bool is_writing_ = false;
  bool is_finished_ = false;
};

grpc::ServerWriteReactor<v1::JobEvent>* Service::HoldJob(grpc::CallbackServerContext* context,
                                                         const v1::HoldJobRequest* request) {
  Holder* holder = nullptr;
  jobs::CallId call = 0;
  {
    const std::lock_guard lock(mutex_);
    call = ++last_call_;
    holder = new Holder(*this, call);
    holders_[call] = holder;
  }
  const gate::Peer peer = gate::peer_of(*context);
  const auto refused =
      not_taken(peer, [this, call, asker = asker_of(peer, door_of(request->allocation())),
                       request = *request] {
        if (jobs::Loop* const loop = lead_.loop(); loop == nullptr) {
          end(call, no_leader());
        } else if (asker.caller) {
          loop->on_hold(call, *asker.caller, request, store::boot_time_ms());
        } else {
          end(call, asker.refused);
        }
      });
  if (refused) {
    refuse(call, *refused);
  }
  return holder;
}

void Service::tell(jobs::CallId call, const v1::JobEvent& event) {
  const std::lock_guard lock(mutex_);
  if (const auto holder = holders_.find(call); holder != holders_.end()) {
    holder->second->tell(event);
  }
}

void Service::end(jobs::CallId call, const Outcome& outcome) {
  const std::lock_guard lock(mutex_);
  if (const auto holder = holders_.find(call); holder != holders_.end()) {
    holder->second->end(status_of(outcome));
  }
}

void Service::refuse(jobs::CallId call, const Outcome& outcome) {
  const std::lock_guard lock(mutex_);
  if (const auto holder = holders_.find(call); holder != holders_.end()) {
    holder->second->refuse(status_of(outcome));
  }
}

void Service::end_all(const Outcome& outcome) {
  const std::lock_guard lock(mutex_);
  for (const auto& [call, holder] : holders_) {
    holder->end(status_of(outcome));
  }
}

void Service::forget(jobs::CallId call) {
  const std::lock_guard lock(mutex_);
  holders_.erase(call);
}

void Service::tell_loop_of_end(jobs::CallId call) {
  mailbox_.add([this, call] {
    if (jobs::Loop* const loop = lead_.loop()) {
      loop->on_call_ended(call, store::boot_time_ms());
    }
  });
}

/// Does `work(loop, caller)` by the mailbox's thread, and ends the call with what it throws.
template <typename Work>
grpc::ServerUnaryReactor* Service::answered(grpc::CallbackServerContext* context, Work work,
                                            Door door) {
  auto* const answer = new Answer;
  const gate::Peer peer = gate::peer_of(*context);
  const auto refused =
      not_taken(peer, [this, answer, asker = asker_of(peer, door), work = std::move(work)] {
        Outcome outcome;
        try {
          if (jobs::Loop* const loop = lead_.loop(); loop == nullptr) {
            outcome = no_leader();
          } else if (asker.caller) {
            work(*loop, *asker.caller);
          } else {
            outcome = asker.refused;
          }
        } catch (const jobs::Loop::Refused& refused) {
          outcome = {refused.code(), refused.what()};
        }
        answer->Finish(status_of(outcome));
      });
  if (refused) {
    answer->Finish(status_of(*refused));
  }
  return answer;
}

grpc::ServerUnaryReactor* Service::EndJob(grpc::CallbackServerContext* context,
                                          const v1::EndJobRequest* request, v1::EndJobResponse*) {
  return answered(
      context,
      [request](jobs::Loop& loop, const jobs::Caller& caller) {
        loop.end_job(who_asks(loop, caller, *request), request->job(), request->why(),
                     store::boot_time_ms());
      },
      door_of(request->allocation()));
}

grpc::ServerUnaryReactor* Service::PlanJob(grpc::CallbackServerContext* context,
                                           const v1::PlanJobRequest* request,
                                           v1::PlanJobResponse* response) {
  return answered(
      context,
      [request, response](jobs::Loop& loop, const jobs::Caller& caller) {
        *response = loop.plan(who_asks(loop, caller, request->request()), *request);
      },
      door_of(request->request().allocation()));
}

grpc::ServerUnaryReactor* Service::ListJobs(grpc::CallbackServerContext* context,
                                            const v1::ListJobsRequest*,
                                            v1::ListJobsResponse* response) {
  return answered(context, [response](jobs::Loop& loop, const jobs::Caller& caller) {
    response->set_doubt(loop.doubt());
    for (v1::Job& job : loop.jobs(caller)) {
      *response->add_jobs() = std::move(job);
    }
  });
}

grpc::ServerUnaryReactor* Service::GetFabric(grpc::CallbackServerContext* context,
                                             const v1::GetFabricRequest*,
                                             v1::FabricPicture* response) {
  return answered(context, [response](jobs::Loop& loop, const jobs::Caller& caller) {
    *response = loop.picture(caller);
  });
}

grpc::ServerUnaryReactor* Service::Explain(grpc::CallbackServerContext* context,
                                           const v1::ExplainRequest* request,
                                           v1::ExplainResponse* response) {
  return answered(context, [request, response](jobs::Loop& loop, const jobs::Caller& caller) {
    response->set_text(loop.explain(caller, request->name()));
    response->set_doubt(loop.doubt());
  });
}

grpc::ServerUnaryReactor* Service::Drain(grpc::CallbackServerContext* context,
                                         const v1::DrainRequest* request,
                                         v1::DrainResponse* response) {
  return answered(context, [request, response](jobs::Loop& loop, const jobs::Caller& caller) {
    for (const std::uint64_t job : loop.drain(caller, *request, store::boot_time_ms())) {
      response->add_jobs(job);
    }
  });
}

grpc::ServerUnaryReactor* Service::Undrain(grpc::CallbackServerContext* context,
                                           const v1::UndrainRequest* request,
                                           v1::UndrainResponse*) {
  return answered(context, [request](jobs::Loop& loop, const jobs::Caller& caller) {
    loop.undrain(caller, *request, store::boot_time_ms());
  });
}

grpc::ServerUnaryReactor* Service::Claim(grpc::CallbackServerContext* context,
                                         const v1::ClaimRequest*, v1::ClaimResponse* response) {
  return answered(context, [response](jobs::Loop& loop, const jobs::Caller& caller) {
    *response = loop.claim(caller, store::boot_time_ms());
  });
}

grpc::ServerUnaryReactor* Service::Adopt(grpc::CallbackServerContext* context,
                                         const v1::AdoptRequest* request,
                                         v1::ClaimResponse* response) {
  return answered(context, [request, response](jobs::Loop& loop, const jobs::Caller& caller) {
    *response = loop.adopt(caller, *request, store::boot_time_ms());
  });
}

grpc::ServerUnaryReactor* Service::GrantAllocation(grpc::CallbackServerContext* context,
                                                   const v1::GrantAllocationRequest* request,
                                                   v1::GrantAllocationResponse* response) {
  return answered(
      context,
      [request, response](jobs::Loop& loop, const jobs::Caller& caller) {
        response->set_allocation(loop.grant(caller, *request, store::boot_time_ms()));
      },
      Door::anybody);
}

grpc::ServerUnaryReactor* Service::EndAllocation(grpc::CallbackServerContext* context,
                                                 const v1::EndAllocationRequest* request,
                                                 v1::EndAllocationResponse* response) {
  return answered(
      context,
      [request, response](jobs::Loop& loop, const jobs::Caller& caller) {
        for (const std::uint64_t job :
             loop.end_allocation(caller, request->name(), store::boot_time_ms())) {
          response->add_jobs(job);
        }
      },
      Door::anybody);
}

grpc::ServerUnaryReactor* Service::IssueToken(grpc::CallbackServerContext* context,
                                              const v1::IssueTokenRequest* request,
                                              v1::IssueTokenResponse* response) {
  return answered(
      context,
      [request, response](jobs::Loop& loop, const jobs::Caller& caller) {
        const std::string token = new_token();
        response->set_allocation(loop.issue_token(caller, request->name(), token));
        response->set_token(token);
      },
      Door::anybody);
}

grpc::ServerUnaryReactor* Service::ListAllocations(grpc::CallbackServerContext* context,
                                                   const v1::ListAllocationsRequest*,
                                                   v1::ListAllocationsResponse* response) {
  return answered(
      context,
      [response](jobs::Loop& loop, const jobs::Caller& caller) {
        response->set_doubt(loop.doubt());
        for (v1::Allocation& allocation : loop.allocations(caller)) {
          *response->add_allocations() = std::move(allocation);
        }
      },
      Door::anybody);
}

} // namespace weir::manager
