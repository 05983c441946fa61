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
/// Of many small ones in an exchange, one behind the other.
inline constexpr double kSecondsPerMessage = 4.5e-6;
/// What slice takes, of steps of documents at 8K tokens over two and four ranks: whole tiles at the
/// rates of long rows, as many keys more for each row (tiles that are partial), and for a call.
/// With half of the heads, a backward call has half of the work groups to share its end.
inline constexpr double kForwardTileFlopsPerSecond = 700e12;
inline constexpr double kBackwardTileFlopsPerSecond = 600e12;
inline constexpr double kKeysPerRow = 170;
inline constexpr double kSecondsPerForwardCall = 15e-6;
inline constexpr double kSecondsPerBackwardCall = 60e-6;
inline constexpr double kSecondsPerHalvedCall = 130e-6;

}  // namespace longca::rates
