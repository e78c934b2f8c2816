// SPDX-License-Identifier: BSD-3-Clause

/// Bytes that a stranger sends to a rank's control connection: to rank 0 that awaits a join, to a
/// caller that awaits a challenge, and to a group without a secret. Nobody is admitted, and nothing
/// but an Error comes of it.

#include "frame_script.hpp"
#include "host/control/job_control.hpp"
#include "host/rendezvous/handshake.hpp"

#include <algorithm>
#include <array>
#include <sys/socket.h>

using namespace weir;

namespace {

const host::Credentials kOurs{"job", "a secret that no input has"};
constexpr std::size_t kMostBytes = 65536; // what a socket takes at once

/// Our end of a connection on which the bytes have come.
std::unique_ptr<host::FramedStream> stream_with(host::ByteView bytes, std::uint32_t max_body) {
  std::array<int, 2> ends{};
  fuzz::require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0, "no socket pair");
  const host::Socket theirs([&] { return ends[1]; });
  host::Socket ours([&] { return ends[0]; });
  fuzz::require(send(theirs.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                    static_cast<ssize_t>(bytes.size()),
                "the socket takes too little");
  return std::make_unique<host::FramedStream>(std::move(ours), max_body);
}

void greet_rank_0(host::ByteView bytes) {
  const auto stream = stream_with(bytes, host::kMostJoinBytes);
  while (const auto frame = stream->receive()) {
    fuzz::require(frame->body.size() <= host::kMostJoinBytes, "a longer body than is allowed");
    if (host::read_join(frame->body)) {
      fuzz::require(host::objection_to(frame->body, kOurs).has_value(), "a stranger is admitted");
      (void)host::objection_to(frame->body, {"job", ""});
    }
  }
}

void greet_caller(host::ByteView bytes) {
  const auto join = host::make_join(kOurs, {1, 2}, {});
  const auto stream = stream_with(bytes, host::kMostChallengeBytes);
  while (const auto frame = stream->receive()) {
    fuzz::require(!host::read_challenge(frame->body, join, kOurs), "a stranger is rank 0");
    (void)host::read_refusal(frame->body);
    (void)host::decode_error(frame->body, {0, 2});
  }
}

void greet_sealed_stream(host::ByteView bytes) {
  const auto stream = stream_with(bytes, host::FramedStream::kMaxBody);
  stream->seal({1}, {2});
  fuzz::require(!stream->receive(), "a frame of a stranger");
}

void greet_group(host::ByteView bytes, std::uint16_t rank) {
  std::vector<std::unique_ptr<host::FramedStream>> streams(2);
  streams[1 - rank] = stream_with(bytes, host::FramedStream::kMaxBody);
  host::JobControl control(rank, 2, {}, std::move(streams));
  try {
    control.note_call({});
    control.poll({});
    control.poll({});
  } catch (const host::Error&) {
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const host::ByteView bytes(data, std::min(size, kMostBytes));
  greet_rank_0(bytes);
  greet_caller(bytes);
  greet_sealed_stream(bytes);
  greet_group(bytes, 0);
  greet_group(bytes, 1);
  return 0;
}
