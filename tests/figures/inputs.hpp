// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The parameters that the papers state: sizes, rates, latencies, and times measured on machines
/// that we do not have. No other file of the programs has a number of a paper. The papers' results
/// are only in expectations.yaml.

#include <array>
#include <cstdint>
#include <string_view>

namespace weir::figures {

/// A model's gradient.
struct Model {
  std::string_view name;
  double megabytes = 0; // 10^6 bytes
};

/// AllReduce-Switch (TCAS-I 2021).
namespace allreduce_switch {

inline constexpr std::uint64_t kLinkBitsPerSecond = 10'000'000'000; // §V-A
inline constexpr std::uint32_t kPayloadBytes = 1024;                // §III-A
inline constexpr std::uint32_t kInaHeaderBytes = 20; // §III-A, in a message's first packet
inline constexpr std::uint32_t kMostHosts = 8;       // §V-A
inline constexpr std::uint32_t kHeaderBytes = 14 + 40 + 12 + 4; // §III-A: Ethernet, GRH, BTH, ICRC
inline constexpr std::uint32_t kFcsPreambleAndGapBytes = 24;    // IEEE 802.3
inline constexpr std::uint32_t kPacketsInFlight = 4096;         // not stated; no limit
inline constexpr std::uint64_t kSwitchLatencyNs = 2400;         // Fig. 17, floating point
inline constexpr std::uint64_t kCableLatencyNs = 100;           // not stated; 20 m
/// Table VIII.
inline constexpr std::array kModels{Model{"AlexNet", 236},  Model{"GoogLeNet", 51},
                                    Model{"ResNet-50", 98}, Model{"VGG-11", 507},
                                    Model{"VGG-16", 528},   Model{"VGG-19", 548}};

} // namespace allreduce_switch

/// NetReduce (ASPLOS'23).
namespace netreduce {

inline constexpr double kInterBytesPerSecond = 12.5e9;  // Fig. 7: 100 Gbit/s
inline constexpr std::uint32_t kGpusPerMachine = 8;     // Fig. 7
inline constexpr double kRttSeconds = 6.3e-6;           // §5.1
inline constexpr double kMessageBytes = 170e3;          // §3.2, §5.1
inline constexpr std::uint32_t kPayloadBytes = 1024;    // Table 6
inline constexpr std::uint64_t kCableLatencyNs = 100;   // not stated; 20 m
inline constexpr std::uint32_t kWindow = 2;             // §5.1: N
inline constexpr std::uint32_t kPacketsInFlight = 4096; // not stated; so many that N is the limit
inline constexpr double kImagesPerBatch = 32;           // Tables 7 and 9

/// Table 7: iterations and their communication, measured on GPUs.
struct Training {
  Model model;
  double ring_iteration_ms = 0;
  double ring_ms = 0;
  double switch_iteration_ms = 0;
  double switch_ms = 0;

  /// The rest of an iteration, equal for all methods: the mean of the two rows.
  constexpr double compute_ms() const {
    return (ring_iteration_ms - ring_ms + switch_iteration_ms - switch_ms) / 2;
  }
};

inline constexpr std::array kTraining{
    Training{{"AlexNet", 236}, 60.62, 47.12, 44.69, 31.10},
    Training{{"VGG16", 528}, 185.08, 111.98, 148.63, 74.64},
    Training{{"ResNet50", 98}, 89.19, 23.04, 83.42, 19.29},
};

} // namespace netreduce

/// MultiTree (ISCA'21), Table III.
namespace multitree {

inline constexpr std::uint64_t kLinkBitsPerSecond = 128'000'000'000; // 16 B flits at 1 GHz
inline constexpr std::uint64_t kLinkLatencyNs = 150;
/// §VI-B, Fig. 10: 375·N KiB; the authors' scripts have 384.
inline constexpr std::uint32_t kScalingKibPerNode = 384;

inline constexpr double kCyclesPerSecond = 1e9; // of the accelerator
inline constexpr std::uint32_t kArrays = 16;    // of an accelerator, each for one of 16 samples
inline constexpr std::uint32_t kArraySide = 32; // cells

} // namespace multitree

/// Klenk et al. (ISCA'20), §V and §VI.
namespace klenk {

inline constexpr double kPortBytesPerNs = 25;
inline constexpr std::uint32_t kPortsPerGpu = 6;
inline constexpr std::uint32_t kGpus = 16;
inline constexpr std::uint32_t kPayloadBytes = 128;
inline constexpr std::uint32_t kHeaderBytes = 16; // also a read request and an acknowledgement
inline constexpr double kHopNs = 150;
inline constexpr std::uint32_t kHopsToMemory = 2;   // §VI-D: d
inline constexpr double kGpuMemoryNs = 240;         // 360 cycles at 1.5 GHz
inline constexpr std::uint32_t kAccessPorts = 6;    // Eq. (1): first-hop ports a GPU
inline constexpr std::uint32_t kAllPorts = 12 * 16; // Eq. (2): 12 switches of 16 ports
inline constexpr double kMemoryNs = 180;            // §V: 180 to 360 cycles of 1.5 GHz, their mean
inline constexpr std::uint32_t kPushTableBytes = 256; // §VI-B, a port
// Ours: large enough that nothing is evicted.
inline constexpr std::uint32_t kAmpleTableBytes = 1024;
inline constexpr std::uint32_t kPullTableBytes = 4096;
inline constexpr std::uint32_t kFatTreePullTableBytes = 1024; // §VI-C
inline constexpr std::uint32_t kPushWaves = 16;               // of 8 kB; §VI-B
inline constexpr std::uint32_t kPullWaves = 4;
inline constexpr std::uint32_t kFatTreePushWaves = 64; // §VI-C
inline constexpr std::uint32_t kFatTreePullWaves = 16;
inline constexpr double kCommunicationShare = 0.30; // §VI-E: of Megatron-LM

} // namespace klenk

/// Flare (SC'21), §4 to §7.
namespace flare {

inline constexpr double kCores = 512;
inline constexpr double kCoresPerCluster = 8;
inline constexpr double kCyclesPerSecond = 1e9;
inline constexpr double kPacketBytes = 1024;
inline constexpr double kCyclesPerPacket = 1024; // 256 values of 4 bytes
inline constexpr double kChildren = 64;          // not stated; the hosts of Fig. 15
inline constexpr std::uint32_t kHosts = 64;      // Fig. 15
inline constexpr std::uint32_t kLeaves =
    8; // Fig. 15; the text's 8-port switches cannot hold 64 hosts
inline constexpr double kTensorBytes = 100.0 * 1024 * 1024; // Fig. 15
inline constexpr double kLinkBytesPerSecond = 12.5e9;       // Fig. 15: 100 Gbit/s
inline constexpr std::uint64_t kCableLatencyNs = 100;       // not stated; 20 m
inline constexpr std::uint32_t kBucketValues = 512;         // Fig. 15: one value sent of each
inline constexpr std::uint32_t kPairBytes = 8;              // index and value
inline constexpr std::uint32_t kValueBytes = 4;
/// Exponent of the law by which hosts choose their index of a bucket. ResNet50's gradients are not
/// public, so it is fitted: 64 hosts choose 37.5 different indices of 512, as the traffic ratio of
/// Fig. 15 needs. So that ratio alone shows nothing; see FL9.
inline constexpr double kZipfExponent = 1.0775;
inline constexpr std::uint32_t kBlockValues = 1536; // §7.1: 6 KiB of values other than 0 a block

} // namespace flare

/// The networks of docs/planning.md; they are from no paper.
namespace planning {

inline constexpr std::uint64_t kHostGigabits = 100;
inline constexpr std::uint64_t kCableNs = 100; // 20 m
/// To fold one rank's frame of 1 KiB from memory (docs/performance.md).
inline constexpr std::uint64_t kFoldNs = 75;
inline constexpr double kPairBytes = 8; // index and value

} // namespace planning

} // namespace weir::figures
