// What block-sparse masks cost before any kernel runs, at sizes that matter: drawing lists on the
// host, selecting blocks by scores on the GPU, building lists there from the device's bits. One
// line each; `block_planning [TOKENS [BLOCK]]`.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <exception>

#include "attention/inputs/inputs.h"
#include "attention/kernels/common/block_map.h"
#include "attention/selection/cuda/block_selector.h"
#include "bench/measure/device_clock.h"
#include "bench/measure/measurement.h"
#include "mask/generators.h"

namespace {

using namespace longca;

double ms_of(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

class Planning {
 public:
  Planning() : gpu_(Device::get(DeviceKind::cuda)), clock_(make_device_clock(DeviceKind::cuda)) {}

  void heads(MaskSpec spec) {
    fmt::print("\n{} tokens, block {}, heads {}:{}, lists per {} head, density {}{}\n", spec.tokens,
               spec.block, spec.heads_q, spec.heads_k, spec.block_heads, spec.density,
               spec.block_causal ? ", causal" : "");
    lists(spec);
    selection(spec);
  }

 private:
  void time(const char* what, const std::function<void()>& call) {
    MeasureOptions options;
    options.time_limit_s = 0.2;
    const Measurement m = measure(*clock_, {.call = call}, options);
    fmt::print("  {:<44} {:9.3f} ms on the device\n", what, m.median_ms);
  }

  void lists(const MaskSpec& spec) {
    std::optional<GeneratedMask> generated;
    fmt::print("  {:<44} {:9.1f} ms on the host\n", "drawing the mask at random",
               ms_of([&] { generated = generate_mask(spec); }));
    fmt::print("  {:<44} {:9.1f} ms on the host\n", "its bits, and their copy to the device",
               ms_of([&] { BlockMap::of(generated->mask); }));
    const BlockMap& map = BlockMap::of(generated->mask);
    DeviceBlockLists kept, transposed;
    const auto both = [&] {
      kept = kept_lists(map, gpu_.stream());
      transposed = transposed_lists(map, gpu_.stream());
    };
    fmt::print("  {:<44} {:9.3f} ms with all waiting, once\n", "lists and transposed lists",
               ms_of([&] {
                 both();
                 gpu_.synchronize();
               }));
    fmt::print("  {:<44} {:9.3f} ms with all waiting, again\n", "lists and transposed lists",
               ms_of([&] {
                 both();
                 gpu_.synchronize();
               }));
    time("kept lists", [&] { kept = kept_lists(map, gpu_.stream()); });
    time("transposed lists", [&] { transposed = transposed_lists(map, gpu_.stream()); });
  }

  void selection(const MaskSpec& spec) {
    Problem problem;
    problem.tokens_q = problem.tokens_k = spec.tokens;
    problem.heads_q = spec.heads_q;
    problem.heads_k = spec.heads_k;
    problem.dtype = DType::bfloat16;
    problem.device = DeviceKind::cuda;
    const auto tensor = [&](int heads) {
      return Tensor(gpu_.memory(), problem.dtype, spec.tokens, heads, problem.head_dim);
    };
    const Tensor q = tensor(spec.heads_q);
    const Tensor k = tensor(spec.heads_k);
    const Range all{0, spec.tokens};
    draw_rows(problem.device, q.view(), 1, InputTensor::q, {&all, 1});
    draw_rows(problem.device, k.view(), 1, InputTensor::k, {&all, 1});
    for (const std::int64_t slab :
         {std::int64_t{32} << 20, std::int64_t{128} << 20, std::int64_t{1} << 30}) {
      CudaBlockSelector selector(problem, block_choice(spec), slab);
      time(fmt::format("selecting by scores, slab {} MiB", slab >> 20).c_str(),
           [&] { selector.run(q.view(), k.view(), gpu_.stream()); });
    }
  }

  Device& gpu_;
  std::unique_ptr<DeviceClock> clock_;
};

}  // namespace

int main(int argc, char** argv) try {
  MaskSpec spec;
  spec.name = "block_sparse";
  spec.tokens = argc > 1 ? std::atoll(argv[1]) : 131072;
  spec.block = argc > 2 ? std::atoll(argv[2]) : 64;
  Planning planning;
  for (const int heads_k : {64, 8}) {
    spec.heads_q = 64;
    spec.heads_k = heads_k;
    planning.heads(spec);
  }
  spec.block_heads = "query";
  spec.block_causal = true;
  planning.heads(spec);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "block_planning: {}\n", error.what());
  return 1;
}
