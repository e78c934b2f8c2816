// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/client.hpp"

#include "files/whole_file.hpp"
#include "program/operator_words.hpp"
#include "rpc/messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <grpc/support/log.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <weir/v1/switch.grpc.pb.h>

namespace weir::rpc {
namespace {

// A question waits for the lcores at most two seconds; the end of a capture writes a file.
constexpr std::chrono::seconds kPatience{30};
constexpr std::string_view kUnix = "unix:";
constexpr std::size_t kLongestSocketPath = 107; // unix(7), sun_path with its final zero

std::string contents_of(const std::string& file) {
  if (file.empty()) {
    return {};
  }
  const std::optional<std::string> text = files::read_pem(file);
  if (!text) {
    throw CallError(fmt::format("found {}, {}; allowed: a PEM file", file, files::kNoPem));
  }
  return *text;
}

std::shared_ptr<grpc::ChannelCredentials> credentials_for(const std::string& server,
                                                          const ClientTls& tls) {
  if (server.starts_with("unix:")) {
    return grpc::InsecureChannelCredentials();
  }
  return grpc::SslCredentials({.pem_root_certs = contents_of(tls.authority),
                               .pem_private_key = contents_of(tls.key),
                               .pem_cert_chain = contents_of(tls.certificate)});
}

/// gRPC would blame the channel's credentials.
void check_path(std::string_view server) {
  const std::size_t bytes = server.size() - std::min(server.size(), kUnix.size());
  if (server.starts_with(kUnix) && bytes > kLongestSocketPath) {
    throw CallError(
        fmt::format("found a path of {} bytes; allowed: at most {}", bytes, kLongestSocketPath));
  }
}

grpc::ChannelArguments arguments_for(const ClientTls& tls) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1); // as long as the switch's tables are
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (!tls.name.empty()) {
    arguments.SetSslTargetNameOverride(tls.name);
  }
  return arguments;
}

void set_words(const command::Words& words, WordList& message) {
  for (const std::string& word : words) {
    message.Add(std::string(word));
  }
}

std::string printed_tables(const google::protobuf::RepeatedPtrField<v1::Table>& tables,
                           const command::Words& words) {
  const ReceivedReport received(tables);
  return command::printed(received.report(), words);
}

} // namespace

struct Client::Parts {
  std::string server;
  std::unique_ptr<v1::Switch::Stub> stub;

  void check(const grpc::Status& status) const {
    switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return;
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::NOT_FOUND:
      throw WrongCall(status.error_message());
    case grpc::StatusCode::UNAVAILABLE:
      throw CallError(
          fmt::format("no answer from {}: {}; does a switch run, and is this its address "
                      "(--server, $WEIR_SERVER)?",
                      server, status.error_message()));
    default:
      throw CallError(status.error_message());
    }
  }
};

Client::Client(const std::string& server, const ClientTls& tls)
    : parts_(std::make_unique<Parts>()) {
  gpr_set_log_function([](gpr_log_func_args*) {}); // errors are exceptions
  check_path(server);
  parts_->server = server;
  parts_->stub = v1::Switch::NewStub(
      grpc::CreateCustomChannel(server, credentials_for(server, tls), arguments_for(tls)));
}

Client::~Client() = default;

std::string Client::execute(const command::Words& words) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::ExecuteRequest request;
  v1::ExecuteResponse response;
  set_words(words, *request.mutable_words());
  parts_->check(parts_->stub->Execute(&context, request, &response));
  return response.has_tables() ? printed_tables(response.tables().tables(), words)
                               : response.text();
}

std::string Client::load_operator(const std::string& text) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::LoadOperatorRequest request;
  v1::Operator loaded;
  request.set_text(text);
  parts_->check(parts_->stub->LoadOperator(&context, request, &loaded));
  return program::loaded_in_words(loaded.name(), loaded.digest(), loaded.price());
}

std::string Client::digest_of_operator(const std::string& word) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::ListOperatorsResponse response;
  parts_->check(parts_->stub->ListOperators(&context, {}, &response));
  std::vector<program::Spoken> known;
  for (const v1::Operator& one : response.operators()) {
    known.push_back({one.name(), one.digest()});
  }
  try {
    return known[program::place_of(word, known)].digest;
  } catch (const std::invalid_argument& error) {
    throw WrongCall(error.what());
  }
}

std::string Client::test_operator(const std::string& word,
                                  const std::vector<std::string>& packets) {
  const std::string digest = digest_of_operator(word);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::TestOperatorRequest request;
  v1::TestOperatorResponse response;
  request.set_digest(digest);
  for (const std::string& packet : packets) {
    request.add_inputs(packet);
  }
  parts_->check(parts_->stub->TestOperator(&context, request, &response));
  return response.result();
}

command::Words Client::complete(const std::string& line) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::CompleteRequest request;
  v1::CompleteResponse response;
  request.set_line(line);
  parts_->check(parts_->stub->Complete(&context, request, &response));
  return {response.words().begin(), response.words().end()};
}

void Client::watch(const command::Words& words, std::chrono::milliseconds period,
                   const std::function<void(const std::string&)>& sink) {
  grpc::ClientContext context;
  v1::WatchStatisticsRequest request;
  set_words(words, *request.mutable_words());
  request.set_period_ms(static_cast<std::uint32_t>(period.count()));
  const auto stream = parts_->stub->WatchStatistics(&context, request);
  v1::Statistics statistics;
  while (stream->Read(&statistics)) {
    sink(printed_tables(statistics.tables(), words));
  }
  parts_->check(stream->Finish());
}

} // namespace weir::rpc
