// SPDX-License-Identifier: BSD-3-Clause

/// weir-replay: reads a capture and writes a capture. One thread, no EAL; the time is that of the
/// capture.

#include "complaint.hpp"
#include "config/config.hpp"
#include "config/operators.hpp"
#include "control/settings.hpp"
#include "exit_status.hpp"
#include "file_uses.hpp"
#include "frame/frame.hpp"
#include "option_table.hpp"
#include "output.hpp"
#include "report/report.hpp"
#include "report/tables.hpp"
#include "stage/inline_switch.hpp"

#include <fmt/format.h>
#include <pcap/pcap.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace weir;
using app::kExitFailure;
using app::kExitUsage;
using app::UsageError;

struct Options {
  std::string config;
  std::string in;
  std::string out;
  std::string stats;
  std::uint32_t session = 1;
};

constexpr const char* kHead =
    "usage: weir-replay --config FILE --in IN.pcap --out OUT.pcap [--stats FILE.json] [--session "
    "NUMBER]\n"
    "\n"
    "Sends every frame of IN through the switch that FILE describes and writes every frame that "
    "leaves\n"
    "to OUT, in order. The switch's time is the capture's: its timers run out between the frames.\n"
    "A frame's ingress port is the one whose macs: list names its source MAC. A station that no\n"
    "list names is outside: its frames are switched, what leaves to it is not written, and a\n"
    "warning names it.\n"
    "IN and OUT may be -, for standard input and output, or a pipe. When standard output takes OUT "
    "or "
    "FILE.json,\n"
    "what is said at the end goes to standard error.\n"
    "\n";

std::uint32_t parse_session(const std::string& text) {
  char* end = nullptr;
  const unsigned long value = std::strtoul(text.c_str(), &end, 0);
  const bool is_number = !text.empty() && text[0] >= '0' && text[0] <= '9' && *end == '\0';
  if (!is_number || value == 0 || value > UINT32_MAX) {
    throw UsageError(fmt::format("--session: found '{}'; allowed: 1 .. 4294967295", text));
  }
  return static_cast<std::uint32_t>(value);
}

std::vector<app::Option> options_of(Options& o) {
  return {
      {"config", "FILE", "ports and rings, as weir takes them", [&](auto v) { o.config = v; }},
      {"in", "IN.pcap", "the capture to read", [&](auto v) { o.in = v; }},
      {"out", "OUT.pcap", "the capture to write", [&](auto v) { o.out = v; }},
      {"stats", "FILE.json", "write counters, drops and rings there", [&](auto v) { o.stats = v; }},
      {"session", "NUMBER",
       "of the first incarnation that begins; the n-th has NUMBER + n - 1 (default 1)",
       [&](auto v) { o.session = parse_session(std::string(v)); }},
  };
}

/// For a file: the report, for people, is not mixed with it.
bool takes_standard_output(const Options& options) {
  return options.out == "-" || options.stats == "-";
}

Options parse_options(int argc, char** argv) {
  Options options;
  const app::CommandLine line =
      app::read_command_line({argv, static_cast<std::size_t>(argc)}, {"weir-replay", kHead, ""},
                             options_of(options), app::WordOrder::anywhere);
  if (options.config.empty() || options.in.empty() || options.out.empty() || !line.words.empty()) {
    throw UsageError(
        "--config, --in and --out are needed, and nothing else; see weir-replay --help");
  }
  std::vector<app::FileUse> files{{"--config", options.config, app::Use::read},
                                  {"--in", options.in, app::Use::read},
                                  {"--out", options.out, app::Use::write},
                                  {"--stats", options.stats, app::Use::write}};
  if (!takes_standard_output(options)) {
    files.push_back({"standard output", "-", app::Use::write});
  }
  app::refuse_shared_files(files);
  return options;
}

struct ClosePcap {
  void operator()(pcap_t* pcap) const { pcap_close(pcap); }

  void operator()(pcap_dumper_t* dumper) const { pcap_dump_close(dumper); }
};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

using File = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] void refuse_input(const std::string& name, std::string_view cause) {
  throw UsageError(fmt::format("--in {}: {}", name, cause));
}

/// All that is left of a stream, in a file without a name.
File copy_of(std::FILE* stream, const std::string& name) {
  File copy(std::tmpfile());
  std::array<char, 1 << 16> bytes;
  errno = 0;
  for (std::size_t count = 1; copy && count != 0;) {
    count = std::fread(bytes.data(), 1, bytes.size(), stream);
    if (std::ferror(stream) != 0 || std::fwrite(bytes.data(), 1, count, copy.get()) != count) {
      break;
    }
  }
  if (!copy || std::ferror(stream) != 0 || std::ferror(copy.get()) != 0 ||
      std::fflush(copy.get()) != 0) {
    refuse_input(name, fmt::format("cannot be kept to be read twice: {}", std::strerror(errno)));
  }
  return copy;
}

/// A capture that can be read several times, from its start. A pipe can be read once, so what it
/// brings is copied.
class CaptureFile {
 public:
  explicit CaptureFile(const std::string& name)
      : name_(name),
        file_(name == "-" ? ::fdopen(dup(STDIN_FILENO), "r") : std::fopen(name.c_str(), "re")) {
    struct stat found {};

    if (!file_ || fstat(fileno(file_.get()), &found) != 0) {
      refuse_input(name, std::strerror(errno));
    }
    if (!S_ISREG(found.st_mode)) {
      file_ = copy_of(file_.get(), name);
    } else {
      start_ = lseek(fileno(file_.get()), 0, SEEK_CUR); // a shell may have read some of it
    }
  }

  const std::string& name() const { return name_; }

  File open() const {
    lseek(fileno(file_.get()), start_, SEEK_SET);
    return File(::fdopen(dup(fileno(file_.get())), "r"));
  }

 private:
  std::string name_;
  File file_;
  off_t start_ = 0;
};

/// Reads a capture of Ethernet frames. One at a time of a file.
class CaptureReader {
 public:
  explicit CaptureReader(const CaptureFile& file) : name_(file.name()) {
    char error[PCAP_ERRBUF_SIZE];
    File stream = file.open();
    pcap_.reset(
        pcap_fopen_offline_with_tstamp_precision(stream.get(), PCAP_TSTAMP_PRECISION_NANO, error));
    if (!pcap_) {
      refuse_input(name_, error);
    }
    static_cast<void>(stream.release()); // pcap's own now
    if (pcap_datalink(pcap_.get()) != DLT_EN10MB) {
      refuse_input(name_, fmt::format("found link type {}; allowed: Ethernet (1)",
                                      pcap_datalink(pcap_.get())));
    }
  }

  /// False at the end of the file.
  bool next(const pcap_pkthdr*& header, const std::uint8_t*& bytes) {
    pcap_pkthdr* mutable_header = nullptr;
    const int answer = pcap_next_ex(pcap_.get(), &mutable_header, &bytes);
    if (answer == PCAP_ERROR) {
      refuse_input(name_, pcap_geterr(pcap_.get()));
    }
    header = mutable_header;
    return answer == 1;
  }

 private:
  std::string name_;
  std::unique_ptr<pcap_t, ClosePcap> pcap_;
};

class CaptureWriter {
 public:
  explicit CaptureWriter(const std::string& name)
      : name_(name == "-" ? "standard output" : name),
        pcap_(pcap_open_dead_with_tstamp_precision(DLT_EN10MB, UINT16_MAX,
                                                   PCAP_TSTAMP_PRECISION_NANO)) {
    File file(name == "-" ? ::fdopen(dup(STDOUT_FILENO), "w") : std::fopen(name.c_str(), "we"));
    if (!file) {
      throw app::OutputError(name_, errno);
    }
    dumper_.reset(pcap_dump_fopen(pcap_.get(), file.get()));
    if (!dumper_) {
      throw app::OutputError(name_, errno);
    }
    static_cast<void>(file.release()); // the dumper's own now
  }

  void write(const frame::Frame& frame, frame::Instant when) {
    constexpr std::uint64_t ns_per_s = 1'000'000'000;
    const timeval stamp{static_cast<time_t>(when.ns / ns_per_s), // in nanoseconds, as the file is
                        static_cast<suseconds_t>(when.ns % ns_per_s)};
    const pcap_pkthdr header{stamp, frame.length, frame.length};
    pcap_dump(reinterpret_cast<std::uint8_t*>(dumper_.get()), &header, frame.data);
    if (std::ferror(pcap_dump_file(dumper_.get())) != 0) {
      throw app::OutputError(name_, errno);
    }
  }

  void flush() {
    if (pcap_dump_flush(dumper_.get()) != 0) {
      throw app::OutputError(name_, errno);
    }
  }

 private:
  std::string name_;
  std::unique_ptr<pcap_t, ClosePcap> pcap_;
  std::unique_ptr<pcap_dumper_t, ClosePcap> dumper_;
};

/// The switch's time: that of the capture. It does not go back where the capture does (merged
/// captures do), because ages are unsigned differences.
class CaptureClock {
 public:
  frame::Instant latest() const { return frame::Instant{latest_ns_}; }

  /// `stamp` is in nanoseconds: CaptureReader opens the file so.
  frame::Instant advance_to(const timeval& stamp) {
    const auto ns = static_cast<std::uint64_t>(stamp.tv_sec) * 1'000'000'000u +
                    static_cast<std::uint64_t>(stamp.tv_usec);
    latest_ns_ = std::max(latest_ns_, ns);
    return frame::Instant{latest_ns_};
  }

 private:
  std::uint64_t latest_ns_ = 0;
};

/// A frame followed by its bytes, freed when the switch is done with it.
struct OwnedFrame : frame::Frame {
  OwnedFrame(const std::uint8_t* bytes, std::uint32_t count, std::uint16_t port)
      : storage(bytes, bytes + count) {
    data = storage.data();
    length = count;
    ingress = port;
  }

  /// The switch's own, still empty.
  explicit OwnedFrame(std::uint32_t room) : storage(room) { data = storage.data(); }

  std::vector<std::uint8_t> storage;
};

/// Writes frames that leave to the capture, one copy for each egress port of the configuration.
class CaptureSink : public stage::FrameSink {
 public:
  CaptureSink(CaptureWriter& writer, std::size_t ports)
      : writer_(writer), written_((l2::PortSet{1} << ports) - 1) {}

  void attach(stage::InlineSwitch& owner) { owner_ = &owner; }

  void set_time(frame::Instant now) { now_ = now; }

  void transmit(frame::Frame& frame, l2::PortSet ports) override {
    const int copies = std::popcount(ports & written_);
    for (int copy = 0; copy < copies; ++copy) {
      writer_.write(frame, now_);
    }
    owner_->count(frame.departure);
    owner_->count_copies(static_cast<std::uint64_t>(std::max(copies, 1) - 1));
    release(frame);
  }

  void release(frame::Frame& frame) override { delete static_cast<OwnedFrame*>(&frame); }

  frame::Frame* originate(std::uint32_t bytes) override { return new OwnedFrame(bytes); }

 private:
  CaptureWriter& writer_;
  l2::PortSet written_;
  stage::InlineSwitch* owner_ = nullptr;
  frame::Instant now_;
};

std::map<wire::MacAddress, std::uint16_t> ports_by_mac(const config::Config& config) {
  std::map<wire::MacAddress, std::uint16_t> ports;
  for (std::uint16_t port = 0; port < config.ports.size(); ++port) {
    for (const wire::MacAddress& mac : config.ports[port].macs) {
      ports[mac] = port;
    }
  }
  return ports;
}

/// Sources in the capture that are in no port's list.
std::set<wire::MacAddress>
stations_outside(const CaptureFile& capture,
                 const std::map<wire::MacAddress, std::uint16_t>& ports) {
  std::set<wire::MacAddress> outside;
  CaptureReader reader(capture);
  const pcap_pkthdr* header = nullptr;
  const std::uint8_t* bytes = nullptr;
  while (reader.next(header, bytes)) {
    if (header->caplen >= sizeof(wire::EthernetHeader)) {
      const auto& source = wire::view_as<wire::EthernetHeader>(bytes).source;
      if (!ports.contains(source)) {
        outside.insert(source);
      }
    }
  }
  return outside;
}

/// Reads frames, finds the port of each and gives them to the switch.
class Replay {
 public:
  Replay(const Options& options, const config::Config& config)
      : ports_(ports_by_mac(config)), capture_(options.in),
        outside_(stations_outside(capture_, ports_)), reader_(capture_), writer_(options.out),
        sink_(writer_, config.ports.size()), operators_(config::operators_of(config)),
        switch_(config.rings, limits(config), settings(options, config), sink_) {
    sink_.attach(switch_);
    switch_.bridge().shut(control::unbridged_ports(config), l2::Bridge::Why::configured);
    control::tie_stations(config, switch_.stations(), 0);
    for (const wire::MacAddress& station : outside_) {
      fmt::print(stderr,
                 "weir-replay: warning: no port's macs: list names the source {}: it is outside\n",
                 wire::to_string(station));
      ports_[station] = static_cast<std::uint16_t>(config.ports.size());
    }
  }

  ~Replay() { // frames still in slots go back through the sink
    for (const std::uint16_t ring : switch_.rings().present()) {
      switch_.reset_ring(ring, {});
    }
  }

  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  void run() {
    const pcap_pkthdr* header = nullptr;
    const std::uint8_t* bytes = nullptr;
    for (std::uint64_t number = 1; reader_.next(header, bytes); ++number) {
      check_length(*header, number);
      const frame::Instant now = clock_.advance_to(header->ts);
      look_until(now);
      sink_.set_time(now);
      auto* frame = new OwnedFrame(bytes, header->caplen, ingress_of(bytes, header->caplen));
      switch_.accept(*frame, now); // the sink deletes it
    }
    writer_.flush();
  }

  report::Report report() const {
    const stage::Accounting accounting = switch_.accounting();
    std::vector<stage::RingSnapshot> rings;
    for (const std::uint16_t ring : switch_.worker().rings()) {
      rings.push_back(stage::snapshot_ring(switch_.worker(), ring, clock_.latest()));
    }
    return {report::tables::kAccounting.with(accounting), report::drops_table(accounting.frames),
            report::foreign_table(accounting.frames), report::rings_table(switch_.rings(), rings)};
  }

 private:
  static void check_length(const pcap_pkthdr& header, std::uint64_t number) {
    if (header.caplen < header.len) {
      throw UsageError(fmt::format("frame {}: cut to {} of {} bytes by the capture's snap length",
                                   number, header.caplen, header.len));
    }
    if (header.caplen > header.len) {
      throw UsageError(
          fmt::format("frame {}: found a record of {} bytes for a frame of {}; allowed: "
                      "a record as long as its frame; the capture is damaged",
                      number, header.caplen, header.len));
    }
  }

  /// Lets the switch's timers run out at their own times, or with the frame that has set them to an
  /// earlier one. What is due at `now` leaves before the frame that comes then.
  void look_until(frame::Instant now) {
    while (switch_.next_timer() <= now.ns) {
      reached_.ns = std::max(reached_.ns, switch_.next_timer());
      sink_.set_time(reached_);
      switch_.poll_timers(reached_);
    }
    reached_ = now;
  }

  stage::InlineSwitch::Settings settings(const Options& options,
                                         const config::Config& config) const {
    stage::InlineSwitch::Settings settings;
    settings.mac_entries = config.l2.entries;
    settings.mac_aging_ms = control::milliseconds(config.l2.aging_s);
    settings.worker.classifier = control::classifier_settings(
        config, conn::SessionSource::counting_from(options.session), {});
    settings.worker.classifier.operators = &operators_;
    settings.worker.level = op::best_cpu_level();
    return settings;
  }

  /// One more port for stations that are behind no port, if there are any.
  std::vector<std::uint32_t> limits(const config::Config& config) const {
    std::vector<std::uint32_t> limits = control::frame_limits(config);
    if (!outside_.empty()) {
      limits.push_back(*std::max_element(limits.begin(), limits.end()));
    }
    return limits;
  }

  std::uint16_t ingress_of(const std::uint8_t* bytes, std::uint32_t length) const {
    if (length < sizeof(wire::EthernetHeader)) {
      return 0; // too short: dropped and counted, from any port
    }
    return ports_.at(wire::view_as<wire::EthernetHeader>(bytes).source);
  }

  std::map<wire::MacAddress, std::uint16_t> ports_;
  CaptureFile capture_;
  std::set<wire::MacAddress> outside_;
  CaptureReader reader_;
  CaptureWriter writer_;
  CaptureSink sink_;
  CaptureClock clock_;
  frame::Instant reached_; // time does not go back
  conn::CurrentOperators operators_;
  stage::InlineSwitch switch_;
};

void tell(const Options& options, const report::Report& report) {
  if (!options.stats.empty()) {
    app::write_file(options.stats, report::to_json(report));
  }
  const std::string text = report::to_text(report);
  if (takes_standard_output(options)) {
    std::fputs(text.c_str(), stderr);
  } else {
    app::print(text);
  }
}

} // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse_options(argc, argv);
    const config::Config config = config::load_config(options.config);
    Replay replay(options, config);
    replay.run();
    tell(options, replay.report());
    return EXIT_SUCCESS;
  } catch (const UsageError& error) {
    app::complain("weir-replay", error.what());
    return kExitUsage;
  } catch (const config::ConfigError& error) {
    app::complain("weir-replay", error.what());
    return kExitUsage;
  } catch (const std::exception& error) {
    app::complain("weir-replay", error.what());
    return kExitFailure;
  }
}
