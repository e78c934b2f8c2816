// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "command/answer.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace weir::rpc {

/// A switch is not reached, or refuses a call. what() has the reason in words.
class CallError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The call's words are no command. what() is the switch's.
class WrongCall : public CallError {
 public:
  using CallError::CallError;
};

/// PEM files; empty: none.
struct ClientTls {
  std::string certificate;
  std::string key;
  std::string authority; // who signed the switch's certificate
  std::string name;      // the switch's in its certificate; empty: the address
};

/// Calls a switch's control service.
class Client {
 public:
  /// `server` is "unix:/PATH" or "HOST:PORT"; the latter wants `tls`. Does not connect yet. Throws
  /// CallError for files that cannot be read.
  Client(const std::string& server, const ClientTls& tls);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// The answer as the prompt prints it. Throws CallError.
  std::string execute(const command::Words& words);
  /// The answer in words: what was loaded, and its price. Throws CallError.
  std::string load_operator(const std::string& text);
  /// What the operator with this name or digest makes of one packet of each rank. Throws CallError.
  std::string test_operator(const std::string& word, const std::vector<std::string>& packets);
  /// Throws CallError.
  command::Words complete(const std::string& line);
  /// Gives `sink` each answer as the prompt prints it, until the switch ends. Throws CallError.
  void watch(const command::Words& words, std::chrono::milliseconds period,
             const std::function<void(const std::string&)>& sink);

 private:
  struct Parts;

  std::string digest_of_operator(const std::string& word);

  std::unique_ptr<Parts> parts_;
};

} // namespace weir::rpc
