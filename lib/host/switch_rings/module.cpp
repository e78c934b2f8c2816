// SPDX-License-Identifier: BSD-3-Clause

/// The module libweir_switch.so: rings of a switch by its call HoldRing, or of a fabric's manager
/// by HoldJob, and regions of a switch by HoldRegion.

#include "host/switch_rings/module.h"

#include "files/whole_file.hpp"
#include "random/random_bytes.hpp"
#include "text/token_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/client_callback.h>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <vector>
#include <weir/v1/fabric.grpc.pb.h>
#include <weir/v1/switch.grpc.pb.h>

using namespace weir;

namespace {

constexpr std::chrono::milliseconds kLookPeriod{20}; // at whether the caller goes on waiting

std::string contents_of(std::string_view what, const std::string& file) {
  const std::optional<std::string> text = files::read_pem(file);
  if (!text) {
    throw std::runtime_error(
        fmt::format("{}: found '{}', {}; allowed: a PEM file", what, file, files::kNoPem));
  }
  return *text;
}

bool has_token(const weir_hold_order& order) {
  return *order.token_file != '\0';
}

/// Of the order's file; without one it is empty. Never named in an error.
text::Token token_of(const weir_hold_order& order) {
  if (!has_token(order)) {
    return {};
  }
  const auto content = files::read_whole(order.token_file);
  const auto token = content ? text::parsed_token(*content) : std::nullopt;
  if (!token) {
    throw std::runtime_error(fmt::format("token: found '{}', {}; allowed: a file as `weirctl "
                                         "fabric allocation token` writes it",
                                         order.token_file,
                                         content ? "which has none" : "which cannot be read"));
  }
  return *token;
}

std::shared_ptr<grpc::ChannelCredentials> credentials_for(const weir_hold_order& order) {
  if (std::string_view(order.server).starts_with("unix:")) {
    return grpc::InsecureChannelCredentials();
  }
  if (has_token(order) && *order.certificate == '\0' && *order.key == '\0') {
    return grpc::SslCredentials({.pem_root_certs = contents_of("authority", order.authority)});
  }
  return grpc::SslCredentials({.pem_root_certs = contents_of("authority", order.authority),
                               .pem_private_key = contents_of("key", order.key),
                               .pem_cert_chain = contents_of("certificate", order.certificate)});
}

/// `number` tells connections to one switch apart: gRPC shares one among equal arguments.
std::shared_ptr<grpc::Channel> connect(const weir_hold_order& order, int number,
                                       grpc::ChannelArguments arguments = {}) {
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt("weir.connection", number);
  if (*order.name != '\0') {
    arguments.SetSslTargetNameOverride(order.name);
  }
  return grpc::CreateCustomChannel(order.server, credentials_for(order), arguments);
}

/// What the rings of this process share. It closes with the last of them.
struct Connection {
  std::shared_ptr<grpc::Channel> channel;
};

/// To switches. Any thread.
class Connections {
 public:
  /// One that has room for a call more, for as long as the call holds it.
  std::shared_ptr<Connection> with_room(const weir_hold_order& order) {
    const std::lock_guard lock(mutex_);
    auto& known = known_[{order.server, order.certificate, order.key, order.authority, order.name}];
    std::erase_if(known, [](const auto& connection) { return connection.expired(); });
    const auto found = std::ranges::find_if(
        known, [](const auto& connection) { return connection.use_count() < kMostCalls; });
    if (found != known.end()) {
      return found->lock();
    }
    auto made = std::make_shared<Connection>(Connection{connect(order, ++made_)});
    known.push_back(made);
    return made;
  }

 private:
  // A switch lets a connection's later ones wait (docs/control.md, "Limits").
  static constexpr long kMostCalls = 64;

  std::mutex mutex_;
  std::map<std::array<std::string, 5>, std::vector<std::weak_ptr<Connection>>> known_;
  int made_ = 0;
};

Connections& connections() {
  static auto* const the_connections = new Connections; // static objects may have groups
  return *the_connections;
}

v1::HoldRingRequest request_of(const weir_hold_order& order) {
  v1::HoldRingRequest request;
  v1::Ring& ring = *request.mutable_ring();
  request.set_id(order.id_is == WEIR_HOLD_ID_CHOSEN ? v1::HoldRingRequest::CHOSEN_BY_SWITCH
                                                    : v1::HoldRingRequest::GIVEN);
  ring.set_id(order.id);
  ring.set_window(order.window);
  ring.set_max_message_bytes(order.message_bytes);
  ring.set_mtu(order.mtu);
  ring.set_nonce(order.nonce);
  for (std::size_t rank = 0; rank < order.member_count; ++rank) {
    ring.add_members()->set_ip(order.members[rank]);
  }
  for (std::size_t number = 0; number < order.operator_count; ++number) {
    request.add_operators(order.operators[number]);
  }
  return request;
}

v1::HoldRegionRequest request_of(const weir_hold_order& order, const weir_hold_region& given) {
  v1::HoldRegionRequest request;
  v1::Region& region = *request.mutable_region();
  region.set_bytes(given.bytes);
  region.set_mtu(order.mtu);
  region.set_window(order.window);
  region.set_loopback(given.loopback != 0);
  region.set_patience(given.patience);
  region.set_forming(given.forming);
  region.set_entries(given.entries);
  for (std::size_t number = 0; number < given.view_count; ++number) {
    v1::RegionView& view = *region.add_views();
    view.set_operation(given.views[number].operation);
    view.set_type(given.views[number].type);
  }
  for (std::size_t rank = 0; rank < order.member_count; ++rank) {
    v1::RegionMember& member = *region.add_members();
    member.set_ip(order.members[rank]);
    member.set_queue_pair(given.members[rank].queue_pair);
    member.set_first_psn(given.members[rank].first_psn);
    member.set_base(given.members[rank].base);
    member.set_key(given.members[rank].key);
    member.set_ack_timeout(given.members[rank].ack_timeout);
    member.set_reads(given.members[rank].reads);
  }
  return request;
}

/// HoldRing, for Stream.
struct RingCall {
  using Request = v1::HoldRingRequest;
  using Answer = v1::HeldRing;
  static constexpr std::string_view kName = "HoldRing of weir.v1.Switch";
  static constexpr std::string_view kMakes = "ring";

  static void begin(v1::Switch::Stub& stub, grpc::ClientContext& context, const Request& request,
                    grpc::ClientReadReactor<Answer>& reactor) {
    stub.async()->HoldRing(&context, &request, &reactor);
  }
};

/// HoldRegion, likewise.
struct RegionCall {
  using Request = v1::HoldRegionRequest;
  using Answer = v1::HeldRegion;
  static constexpr std::string_view kName = "HoldRegion of weir.v1.Switch";
  static constexpr std::string_view kMakes = "region";

  static void begin(v1::Switch::Stub& stub, grpc::ClientContext& context, const Request& request,
                    grpc::ClientReadReactor<Answer>& reactor) {
    stub.async()->HoldRegion(&context, &request, &reactor);
  }
};

std::string reason_of(const grpc::Status& status, std::string_view call) {
  if (status.ok()) {
    return "it ended the call";
  }
  switch (status.error_code()) {
  case grpc::StatusCode::UNAVAILABLE:
    return fmt::format("no answer: {}", status.error_message());
  case grpc::StatusCode::UNIMPLEMENTED:
    return fmt::format("it does not know the call {}; is it an older version?", call);
  default:
    return status.error_message();
  }
}

/// A call that a ring or a region lasts as long as. gRPC's threads drive it.
template <typename Call>
class Stream : public grpc::ClientReadReactor<typename Call::Answer> {
 public:
  Stream(const weir_hold_order& order, typename Call::Request request)
      : tell_ended_(order.ended), is_stopped_(order.is_stopped), user_(order.user),
        request_(std::move(request)), connection_(connections().with_room(order)),
        stub_(v1::Switch::NewStub(connection_->channel)) {
    Call::begin(*stub_, context_, request_, *this);
    this->StartRead(&answer_);
    this->StartCall();
  }

  /// Ends the call.
  ~Stream() override {
    {
      const std::lock_guard lock(mutex_);
      tell_ended_ = nullptr;
    }
    context_.TryCancel();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_done_; });
  }

  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// What the switch has made. Throws std::runtime_error.
  typename Call::Answer wait_for_answer(std::chrono::milliseconds timeout) {
    const auto end = std::chrono::steady_clock::now() + timeout;
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kLookPeriod, [this] { return held_ || is_done_; })) {
      if (is_stopped_(user_) != 0) {
        throw std::runtime_error(fmt::format("the caller needs no {} any more", Call::kMakes));
      }
      if (std::chrono::steady_clock::now() >= end) {
        throw std::runtime_error(fmt::format("no answer within {} ms", timeout.count()));
      }
    }
    if (is_done_) {
      throw std::runtime_error(reason_);
    }
    return *held_;
  }

 private:
  void OnReadDone(bool is_read) override {
    if (!is_read) {
      return;
    }
    const std::lock_guard lock(mutex_);
    held_ = answer_;
    changed_.notify_all();
    this->StartRead(&answer_); // there is no other: it waits for the end
  }

  void OnDone(const grpc::Status& status) override {
    const std::lock_guard lock(mutex_);
    reason_ = reason_of(status, Call::kName);
    if (held_ && tell_ended_ != nullptr) {
      tell_ended_(user_, reason_.c_str());
    }
    is_done_ = true;
    changed_.notify_all();
  }

  std::mutex mutex_; // guards the next, and all from `answer_` on
  decltype(weir_hold_order::ended) tell_ended_;
  const decltype(weir_hold_order::is_stopped) is_stopped_;
  void* const user_;
  const typename Call::Request request_;
  grpc::ClientContext context_;
  const std::shared_ptr<Connection> connection_;
  std::unique_ptr<v1::Switch::Stub> stub_;
  typename Call::Answer answer_;
  std::condition_variable changed_;
  std::optional<typename Call::Answer> held_; // there is a ring or region, or was
  bool is_done_ = false;
  std::string reason_; // why it is done
};

/// One call after the other for the same job, to one manager after the other, until the job is over
/// or nobody needs it. A thread of its own reads.
class JobStream {
  static constexpr std::string_view kName = "HoldJob of weir.v1.Fabric";

 public:
  JobStream(const weir_hold_order& order, const weir_job_rings& rings)
      : tell_ended_(order.ended), is_stopped_(order.is_stopped), user_(order.user),
        request_(request_of_job(order, rings)), stubs_(stubs_for(order)),
        reader_([this] { read(); }) {}

  /// Says goodbye.
  ~JobStream() {
    {
      const std::lock_guard lock(mutex_);
      tell_ended_ = nullptr;
      is_over_ = true;
      if (context_ != nullptr) {
        context_->TryCancel();
      }
      changed_.notify_all();
    }
    reader_.join();
    if (job_ != 0) {
      end_job();
    }
  }

  JobStream(const JobStream&) = delete;
  JobStream& operator=(const JobStream&) = delete;

  /// Throws std::runtime_error.
  std::vector<std::uint32_t> wait_for_rings(std::chrono::milliseconds timeout) {
    const auto end = std::chrono::steady_clock::now() + timeout;
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kLookPeriod, [this] { return job_ != 0 || is_over_; })) {
      if (is_stopped_(user_) != 0) {
        throw std::runtime_error("the caller needs no ring any more");
      }
      if (std::chrono::steady_clock::now() >= end) {
        throw std::runtime_error(fmt::format("no answer within {} ms{}", timeout.count(),
                                             reason_.empty() ? "" : ": " + reason_));
      }
    }
    if (job_ == 0) {
      throw std::runtime_error(reason_);
    }
    return rings_;
  }

 private:
  static constexpr std::chrono::milliseconds kPause{200}; // between two calls
  static constexpr std::chrono::seconds kGoodbye{2};

  static v1::HoldJobRequest request_of_job(const weir_hold_order& order,
                                           const weir_job_rings& rings) {
    constexpr std::size_t id_bytes = 16;
    const auto id = random_bytes<id_bytes>();
    v1::HoldJobRequest request;
    request.set_request_id(id.data(), id.size());
    request.set_name(program_invocation_short_name);
    request.set_rings_wanted(static_cast<std::uint32_t>(rings.wanted));
    request.set_rings_least(static_cast<std::uint32_t>(rings.least));
    request.set_window(order.window);
    request.set_message_bytes(order.message_bytes);
    request.set_mtu(order.mtu);
    request.set_nonce(order.nonce);
    request.set_order(v1::HoldJobRequest::GIVEN);
    const text::Token token = token_of(order);
    request.set_allocation(token.allocation);
    request.set_token(token.secret);
    for (std::size_t rank = 0; rank < order.member_count; ++rank) {
      request.add_members()->add_addresses(order.members[rank]);
    }
    return request;
  }

  /// A manager that stands still, or is cut off, does not end its calls: another one may lead.
  static grpc::ChannelArguments signs_of_life() {
    constexpr int period_ms = 3000;
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, period_ms);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, period_ms);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);     // as many as it wants
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, period_ms); // else 20 s for a dead machine
    return arguments;
  }

  static std::vector<std::unique_ptr<v1::Fabric::Stub>> stubs_for(const weir_hold_order& order) {
    std::vector<std::unique_ptr<v1::Fabric::Stub>> stubs;
    std::string_view list = order.server;
    while (!list.empty()) {
      const std::string address(list.substr(0, list.find(',')));
      weir_hold_order one = order;
      one.server = address.c_str();
      stubs.push_back(v1::Fabric::NewStub(connect(one, 0, signs_of_life())));
      list.remove_prefix(std::min(list.size(), address.size() + 1));
    }
    return stubs;
  }

  /// The reader's thread.
  void read() {
    for (std::size_t turn = 0; !is_over(); turn = (turn + 1) % stubs_.size()) {
      if (const grpc::Status status = hold_once(*stubs_[turn]); !may_come_back(status)) {
        note_end(reason_of(status, kName));
        return;
      } else {
        const std::lock_guard lock(mutex_);
        reason_ = reason_of(status, kName);
      }
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kPause, [this] { return is_over_; });
    }
  }

  grpc::Status hold_once(v1::Fabric::Stub& stub) {
    grpc::ClientContext context;
    enter(&context);
    const auto stream = stub.HoldJob(&context, request_);
    v1::JobEvent event;
    while (stream->Read(&event)) {
      note(event);
    }
    grpc::Status status = stream->Finish();
    enter(nullptr);
    return status;
  }

  void enter(grpc::ClientContext* context) {
    const std::lock_guard lock(mutex_);
    context_ = context;
    if (is_over_ && context != nullptr) {
      context->TryCancel();
    }
  }

  void note(const v1::JobEvent& event) {
    if (event.has_placed() && is_another(event.placed().job())) {
      note_end("its job is over, and the manager that leads has no record of it");
      const std::lock_guard lock(mutex_);
      job_ = event.placed().job(); // which nobody wants: it ends with this
      context_->TryCancel();
    } else if (event.has_placed()) {
      const std::lock_guard lock(mutex_);
      job_ = event.placed().job();
      rings_.clear();
      for (const v1::JobRing& ring : event.placed().rings()) {
        rings_.push_back(ring.id());
      }
      changed_.notify_all();
    } else if (event.has_over()) {
      note_end(event.over().why());
    }
  }

  /// The job was over before this was heard, so the same request has made another one.
  bool is_another(std::uint64_t job) {
    const std::lock_guard lock(mutex_);
    return job_ != 0 && job_ != job;
  }

  /// A manager that is gone, or does not lead, says nothing of the job.
  static bool may_come_back(const grpc::Status& status) {
    return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
           status.error_code() == grpc::StatusCode::CANCELLED ||
           status.error_code() == grpc::StatusCode::UNKNOWN ||
           status.error_code() == grpc::StatusCode::INTERNAL;
  }

  bool is_over() {
    const std::lock_guard lock(mutex_);
    return is_over_;
  }

  void note_end(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (is_over_) {
      return;
    }
    is_over_ = true;
    reason_ = reason;
    if (job_ != 0 && tell_ended_ != nullptr) {
      tell_ended_(user_, reason.c_str());
    }
    changed_.notify_all();
  }

  void end_job() {
    for (const auto& stub : stubs_) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + kGoodbye);
      v1::EndJobRequest request;
      v1::EndJobResponse response;
      request.set_job(job_);
      request.set_why("its group has ended");
      request.set_allocation(request_.allocation());
      request.set_token(request_.token());
      const grpc::StatusCode code = stub->EndJob(&context, request, &response).error_code();
      if (code != grpc::StatusCode::UNAVAILABLE && code != grpc::StatusCode::DEADLINE_EXCEEDED) {
        return;
      }
    }
  }

  std::mutex mutex_; // guards the next, and all from `context_` on
  decltype(weir_hold_order::ended) tell_ended_;
  const decltype(weir_hold_order::is_stopped) is_stopped_;
  void* const user_;
  const v1::HoldJobRequest request_;
  const std::vector<std::unique_ptr<v1::Fabric::Stub>> stubs_;
  grpc::ClientContext* context_ = nullptr; // of the call under way
  std::condition_variable changed_;
  std::uint64_t job_ = 0; // 0: it has no rings yet
  std::vector<std::uint32_t> rings_;
  bool is_over_ = false;
  std::string reason_; // why it is over, or why the last call ended
  std::thread reader_; // the last: it uses all others
};

} // namespace

struct weir_hold {
  std::optional<Stream<RingCall>> stream; // of a switch
  std::optional<JobStream> job;           // of a manager
  std::optional<Stream<RegionCall>> region;
};

namespace {

/// What `make` makes. NULL after an exception, whose text `why` has then.
template <typename Make>
weir_hold* made_or_why(Make make, char* why, std::size_t why_bytes) {
  try {
    auto made = std::make_unique<weir_hold>();
    make(*made);
    return made.release();
  } catch (const std::exception& error) {
    *fmt::format_to_n(why, why_bytes - 1, "{}", error.what()).out = '\0';
    return nullptr;
  }
}

std::chrono::milliseconds timeout_of(const weir_hold_order& order) {
  return std::chrono::milliseconds(order.timeout_ms);
}

weir_hold* hold(const weir_hold_order* order, weir_held_ring* held, char* why,
                std::size_t why_bytes) {
  return made_or_why(
      [&](weir_hold& made) {
        const v1::HeldRing answer =
            made.stream.emplace(*order, request_of(*order)).wait_for_answer(timeout_of(*order));
        *held = {answer.ring().id(), std::max(1U, answer.workers())}; // 0: of an older switch
      },
      why, why_bytes);
}

weir_hold* hold_job(const weir_hold_order* order, weir_job_rings* rings, char* why,
                    std::size_t why_bytes) {
  return made_or_why(
      [&](weir_hold& made) {
        const std::vector<std::uint32_t> ids =
            made.job.emplace(*order, *rings).wait_for_rings(timeout_of(*order));
        if (ids.size() < rings->least || ids.size() > rings->wanted) {
          throw std::runtime_error(fmt::format(
              "found room for {} rings that share no link between switches; allowed: so many "
              "instead of {}",
              ids.size(), rings->wanted));
        }
        rings->made = ids.size();
        std::ranges::copy(ids, rings->ids);
      },
      why, why_bytes);
}

template <std::size_t kBytes>
void write_text(char (&to)[kBytes], const std::string& text) {
  *fmt::format_to_n(to, kBytes - 1, "{}", text).out = '\0';
}

/// Throws std::runtime_error for one that lacks a member's end.
void write_held(const v1::HeldRegion& answer, const weir_hold_order& order,
                const weir_hold_region& region, weir_held_region& held) {
  constexpr std::size_t token_bytes = sizeof(weir_held_region_end::token);
  const auto is_whole = [](const v1::RegionEnd& end) { return end.token().size() == token_bytes; };
  if (static_cast<std::size_t>(answer.ends_size()) != order.member_count ||
      static_cast<std::size_t>(answer.view_keys_size()) != region.view_count ||
      !std::ranges::all_of(answer.ends(), is_whole)) {
    throw std::runtime_error("its answer does not have a queue pair and a token for each member, "
                             "and a key for each view");
  }
  held.id = answer.id();
  write_text(held.ip, answer.ip());
  write_text(held.mac, answer.mac());
  held.base = answer.base();
  held.key = answer.key();
  held.window = answer.region().window();
  held.patience = answer.region().patience();
  for (int member = 0; member < answer.ends_size(); ++member) {
    const v1::RegionEnd& end = answer.ends(member);
    held.ends[member].queue_pair = end.queue_pair();
    held.ends[member].first_psn = end.first_psn();
    std::ranges::copy(end.token(), held.ends[member].token);
  }
  std::ranges::copy(answer.view_keys(), held.view_keys);
}

weir_hold* hold_region(const weir_hold_order* order, const weir_hold_region* region,
                       weir_held_region* held, char* why, std::size_t why_bytes) {
  return made_or_why(
      [&](weir_hold& made) {
        const v1::HeldRegion answer = made.region.emplace(*order, request_of(*order, *region))
                                          .wait_for_answer(timeout_of(*order));
        write_held(answer, *order, *region, *held);
      },
      why, why_bytes);
}

void release(weir_hold* hold) {
  delete hold;
}

} // namespace

const weir_switch_module* weir_switch_module_of() {
  static constexpr weir_switch_module module{WEIR_SWITCH_MODULE_VERSION, hold, hold_job,
                                             hold_region, release};
  return &module;
}
