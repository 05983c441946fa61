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
/// Until a rank whose first call waits for keys begins with its rows: its own keys are copied to
/// their places beside those that arrive.
inline constexpr double kSecondsToPrepare = 42e-6;
/// What slice takes: whole tiles at the rates of long rows, as many keys more for each row (tiles
/// that are partial, and what is done once for a row), and for a call, whose work groups do not all
/// end together. Backward is fitted to 19 traced calls of 0.7K to 8K rows of causal documents (most
/// within 5 %) and to passes of ranks of two and four with 8K tokens each: of six pairs of deals,
/// causal_document and document, ten of twelve passes within 3 %, all within 6 %. What remains
/// is how key tiles fall to work groups, up to 6 % of a call, which a deal cannot choose.
/// With half of the heads, a backward call has half of the work groups to share its end.
inline constexpr double kForwardTileFlopsPerSecond = 700e12;
inline constexpr double kForwardKeysPerRow = 170;
inline constexpr double kSecondsPerForwardCall = 15e-6;
inline constexpr double kBackwardTileFlopsPerSecond = 590e12;
inline constexpr double kBackwardKeysPerRow = 172;
inline constexpr double kSecondsPerBackwardCall = 92e-6;
inline constexpr double kSecondsPerHalvedCall = 140e-6;
/// Of that, what a backward pass does with O and dO alone, each read once: for the rows of all its
/// calls this comes before the first one that waits for keys.
inline constexpr double kRowTermBytesPerSecond = 4.1e12;

/// Of an exchange that nothing hides.
inline double transfer_seconds(double bytes, double messages) {
  return bytes / kLinkBytesPerSecond + kSecondsPerExchange + messages * kSecondsPerMessage;
}

}  // namespace longca::rates
