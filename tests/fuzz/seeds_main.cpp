// SPDX-License-Identifier: BSD-3-Clause

/// table_seeds FOLDER: writes inputs for the fuzzers that no capture has. Each is a script
/// (frame_script.hpp) of a job, built as in the packet tables of tests/unit: hellos, messages in
/// each verb, collective and encapsulation, with repeats, gaps, disagreements and restarts.

#include "fuzz_rings.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace {

using namespace weir;

constexpr std::array kVerbs{test::Verb::send, test::Verb::send_immediate, test::Verb::write,
                            test::Verb::write_immediate};

/// Frames in the order in which they come to the switch.
class FrameList {
 public:
  // Before a frame (frame_script.hpp).
  static constexpr std::uint8_t kPassTime = 0x20;
  static constexpr std::uint8_t kLoadOrUnload = 0x30;

  void add_by(std::uint16_t port, const test::Built& frame, std::uint8_t order = 0) {
    const std::uint16_t length = static_cast<std::uint16_t>(frame.bytes.size());
    bytes_.push_back(static_cast<std::uint8_t>(port | order));
    bytes_.push_back(static_cast<std::uint8_t>(length));
    bytes_.push_back(static_cast<std::uint8_t>(length >> 8));
    bytes_.insert(bytes_.end(), frame.bytes.begin(), frame.bytes.end());
  }

  void write(const std::string& path) const {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes_.data()),
               static_cast<std::streamsize>(bytes_.size()));
    if (!file.flush()) {
      throw std::runtime_error(path + ": cannot be written");
    }
  }

 private:
  test::Bytes bytes_;
};

/// Those of a job.
class Script : public FrameList {
 public:
  explicit Script(const test::JobSpec& spec) : job_(spec) {}

  test::RingJob& job() { return job_; }

  void add(std::uint16_t rank, const test::Built& frame, std::uint8_t order = 0) {
    add_by(job_.port_of(rank), frame, order);
  }

  void hellos() {
    for (std::uint16_t rank = 0; rank < job_.spec().world; ++rank) {
      add(rank, job_.hello(rank));
    }
  }

  test::InaSpec ina(std::uint16_t rank, std::uint32_t message, std::size_t bytes) const {
    return job_.ina_of(rank, message, static_cast<std::uint32_t>(bytes));
  }

  std::vector<test::Built> message(std::uint16_t rank, const test::InaSpec& ina) {
    return job_.message(rank, ina, test::Bytes(ina.length, static_cast<std::uint8_t>(rank + 1)));
  }

 private:
  test::RingJob job_;
};

/// Every rank's messages, two windows of them.
void add_whole_job(Script& script, std::size_t bytes) {
  script.hellos();
  for (std::uint32_t message = 1; message <= 2 * script.job().spec().window; ++message) {
    for (std::uint16_t rank = 0; rank < script.job().spec().world; ++rank) {
      for (const test::Built& frame : script.message(rank, script.ina(rank, message, bytes))) {
        script.add(rank, frame);
      }
    }
  }
}

/// A FIRST is lost; its message comes again, and once more after its result; then a newer epoch.
void add_trouble(Script& script) {
  script.hellos();
  for (std::uint16_t rank = 0; rank < script.job().spec().world; ++rank) {
    const auto frames = script.message(rank, script.ina(rank, 1, 600));
    for (std::size_t packet = rank == 0 ? 1 : 0; packet < frames.size(); ++packet) {
      script.add(rank, frames[packet]);
    }
  }
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (const test::Built& frame : script.message(0, script.ina(0, 1, 600))) {
      script.add(0, frame);
    }
  }
  script.job().restart(script.job().spec().epoch + 1);
  script.hellos();
}

/// Ranks that disagree about a message, and one that leaves its window.
void add_disagreement(Script& script) {
  script.hellos();
  test::InaSpec ina = script.ina(0, 1, 64);
  script.add(0, script.message(0, ina)[0]);
  ina = script.ina(1, 1, 64);
  ina.data_type = 0;
  script.add(1, script.message(1, ina)[0]);
  ina = script.ina(2, 1, 128);
  script.add(2, script.message(2, ina)[0]);
  for (std::uint32_t message = 2; message < 8; ++message) {
    script.add(0, script.message(0, script.ina(0, message, 8))[0]);
  }
}

void add_message_of_all(Script& script, std::uint32_t message, Collective collective,
                        std::size_t bytes) {
  for (std::uint16_t rank = 0; rank < script.job().spec().world; ++rank) {
    test::InaSpec ina = script.ina(rank, message, bytes);
    ina.collective = static_cast<std::uint8_t>(collective);
    ina.root = collective == Collective::broadcast ? 1 : 0;
    for (const test::Built& frame : script.message(rank, ina)) {
      script.add(rank, frame);
    }
  }
}

/// A broadcast and a barrier. Then the job runs again with the same epoch while the first run's
/// hellos come late.
void add_second_run(Script& script) {
  const test::RingJob first = script.job();
  script.hellos();
  add_message_of_all(script, 1, Collective::broadcast, 300);
  add_message_of_all(script, 2, Collective::barrier, 0);
  script.job().restart(script.job().spec().epoch);
  for (std::uint16_t rank = 0; rank < script.job().spec().world; ++rank) {
    script.add(rank, script.job().hello(rank));
    script.add(rank, first.hello(rank));
  }
  add_message_of_all(script, 1, Collective::all_reduce, 300);
}

/// Messages by an operator that the switch has, by one that it lacks, and by one that no hello
/// names. An attempt to unload comes before each. Then hellos whose tables differ.
void add_by_operators(Script& script) {
  script.hellos();
  constexpr std::uint8_t as_operator = 255;
  for (const std::uint8_t number : {std::uint8_t{128}, std::uint8_t{129}, std::uint8_t{200}}) {
    for (std::uint16_t rank = 0; rank < script.job().spec().world; ++rank) {
      test::InaSpec ina = script.ina(rank, 1, 640);
      ina.operation = number;
      ina.data_type = as_operator;
      for (const test::Built& frame : script.message(rank, ina)) {
        script.add(rank, frame, Script::kLoadOrUnload);
      }
    }
  }
  script.job().restart(script.job().spec().epoch + 1);
  script.add(0, script.job().hello(0));
  script.job().spec().operators.resize(sizeof(wire::OperatorEntry));
  script.add(1, script.job().hello(1), Script::kLoadOrUnload);
  script.add(2, script.job().hello(2));
}

/// A region opens, members write, one more than fits into the window, and acknowledge; one asks
/// again, has to wait, tells of congestion and repeats itself; then one sends what no region takes.
void add_region(FrameList& list, test::RegionMembers region) {
  constexpr std::uint8_t ack = 0x1f; // IBTA table 46, as the others
  constexpr std::uint8_t rnr_nak = 0x22;
  constexpr std::uint8_t nak = 0x60;
  const auto members = static_cast<std::uint16_t>(region.spec.members.size());
  for (std::uint16_t member = 0; member < members; ++member) {
    list.add_by(member, region.hello(member));
  }
  for (std::uint16_t member = 0; member < members; ++member) {
    for (const test::Built& frame : region.write(member, test::Bytes(600, member))) {
      list.add_by(member, frame);
    }
    list.add_by(1, region.answer(1, member == 0 ? nak : ack, member));
    list.add_by(1, region.congestion_notification(1));
  }
  const std::vector<test::Built> more = region.write(0, test::Bytes(600, 1));
  for (const test::Built& frame : more) {
    list.add_by(0, frame);
  }
  list.add_by(2, region.answer(2, rnr_nak, 0));
  list.add_by(0, region.hello(0), FrameList::kPassTime);
  for (std::uint16_t member = 0; member < members; ++member) {
    list.add_by(member, region.answer(member, ack, 2), FrameList::kPassTime);
  }
  for (const test::Built& frame : more) {
    list.add_by(0, frame);
  }
  test::FrameSpec send = region.frame_of(0);
  send.opcode = 0x04; // SEND ONLY
  send.psn = wire::psn_add(send.psn, 7);
  list.add_by(0, test::build(send));
}

void write_seeds(const std::string& folder) {
  FrameList regions;
  for (const test::RegionMembers& region : fuzz::regions()) {
    add_region(regions, region);
  }
  regions.write(folder + "/regions");
  Script by_operators(fuzz::operators_job_spec());
  add_by_operators(by_operators);
  by_operators.write(folder + "/operators");
  for (test::JobSpec spec : fuzz::job_specs()) {
    for (const test::Verb verb : kVerbs) {
      spec.verb = verb;
      const std::string stem =
          fmt::format("{}/table-{}-{}", folder, spec.ring, static_cast<int>(verb));
      Script whole(spec);
      add_whole_job(whole, 500);
      whole.write(stem + "-whole");
      Script trouble(spec);
      add_trouble(trouble);
      trouble.write(stem + "-trouble");
      Script disagreement(spec);
      add_disagreement(disagreement);
      disagreement.write(stem + "-disagreement");
      Script second_run(spec);
      add_second_run(second_run);
      second_run.write(stem + "-second-run");
    }
  }
}

} // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) {
      throw std::invalid_argument("usage: table_seeds FOLDER");
    }
    write_seeds(argv[1]);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    fmt::print(stderr, "table_seeds: {}\n", error.what());
    return EXIT_FAILURE;
  }
}
