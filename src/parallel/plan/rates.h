#pragma once

/// What plans weigh against each other, measured on H200s; bfloat16, NVLink.
namespace longca::rates {

/// Forward passes of cuDNN at 8K to 32K tokens (600 to 650), of masks that leave it whole tiles.
inline constexpr double kFlopsPerSecond = 600e12;
/// A copy that the sender's engine pushes, of 64 MiB; a small one takes kSecondsPerExchange.
inline constexpr double kLinkBytesPerSecond = 378e9;
inline constexpr double kSecondsPerExchange = 8e-6;
/// What a device reads and writes in passes over results.
inline constexpr double kMemoryBytesPerSecond = 3.5e12;
/// A call of a kernel more: its start and its last wave, which is half empty.
inline constexpr double kSecondsPerCall = 10e-6;
/// Of several in an exchange, one behind the other; K and V of the same keys, or their gradients,
/// are one. Until the first exchange of a pass begins: devices have met, and grants are there.
inline constexpr double kSecondsPerMessage = 9e-6;
inline constexpr double kSecondsToBegin = 20e-6;
/// What slice takes: whole tiles at the rates of long rows, as many keys more for each row (tiles
/// that are partial, and what is done once for a row), and for a call. Backward is fitted to 20
/// calls of 1K to 8K rows of causal documents, of ranks of two and four with 8K tokens each (0.09
/// to 1.45 ms, 0.3 ms and more within 8 %), which took 210 keys and 63 µs, less what dQ that is
/// written beside other work has gained since (74 µs at 8K rows, 5 to 11 at 3K and 1.5K).
/// With half of the heads, a backward call has half of the CTAs to share its end.
inline constexpr double kForwardTileFlopsPerSecond = 700e12;
inline constexpr double kForwardKeysPerRow = 170;
inline constexpr double kSecondsPerForwardCall = 15e-6;
inline constexpr double kBackwardTileFlopsPerSecond = 558e12;
inline constexpr double kBackwardKeysPerRow = 150;
inline constexpr double kSecondsPerBackwardCall = 70e-6;
inline constexpr double kSecondsPerHalvedCall = 140e-6;
/// Of that, what a backward pass does with O and dO alone, each read once: for the rows of all its
/// calls this comes before the first one that waits for keys.
inline constexpr double kRowTermBytesPerSecond = 4.1e12;

/// Of an exchange that nothing hides.
inline double transfer_seconds(double bytes, double messages) {
  return bytes / kLinkBytesPerSecond + kSecondsPerExchange + messages * kSecondsPerMessage;
}

}  // namespace longca::rates
