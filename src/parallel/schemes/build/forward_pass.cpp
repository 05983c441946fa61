#include "parallel/schemes/build/plan_parts.h"

namespace longca {
namespace {

/// Results of one chunk on their way.
struct Output {
  Region o;    ///< the tensor itself, or a float32 sum
  Region lse;  ///< the CP rank's tokens
  Coverage coverage{};
};

/// Whether a row of the chunk has more than one Attend.
bool meets_again(const PlanParts& parts, int chunk) {
  Coverage coverage;
  for (int turn = 0; turn < parts.context->turns(); ++turn) {
    for (const Work& work : parts.work(turn, chunk)) {
      if (coverage.add(work.rows) != std::vector<Range>{work.rows}) return true;
    }
  }
  return false;
}

void bring_in(PlanParts& parts) {
  using enum TensorRole;
  for (int chunk = 0; chunk < parts.chunks(); ++chunk) {
    std::vector<HeadPart> in = {{q, chunk}};
    const int group = parts.group_of(chunk);
    const bool comes_first = chunk == 0 || parts.group_of(chunk - 1) != group;
    if (comes_first) in.insert(in.end(), {{k, group}, {v, group}});
    parts.heads.bring_in(in, 0);
  }
}

void attend(PlanParts& parts, int turn, int chunk, Output& output) {
  const Region q = parts.heads.held({TensorRole::q, chunk});
  for (const Work& work : parts.work(turn, chunk)) {
    const Region results[] = {output.o, output.lse};
    const bool first = begins(parts.writer, output.coverage, work.rows, results, turn);
    const KeyPair keys = parts.context->keys(turn, work.block, parts.group_of(chunk));
    parts.writer.add(
        Attend{with_rows(q, work.rows), with_rows(keys.k, work.keys), with_rows(keys.v, work.keys),
               with_rows(output.o, work.rows), with_rows(output.lse, work.rows), work.mask, first},
        turn);
  }
}

void finish(PlanParts& parts, int turn, int chunk, const Output& output) {
  const Region results[] = {output.o, output.lse};
  clear_gaps(parts.writer, output.coverage, results, turn);
  const HeadPart part[] = {{TensorRole::o, chunk}};
  const Region rounded = parts.result(part[0], false);
  if (output.o.buffer != rounded.buffer) parts.writer.add(Convert{output.o, rounded}, turn);
  parts.heads.send_out(part, turn);
}

}  // namespace

void write_forward(PlanParts& parts) {
  bring_in(parts);
  std::vector<Output> outputs;
  for (int chunk = 0; chunk < parts.chunks(); ++chunk) {
    outputs.push_back({parts.result({TensorRole::o, chunk}, meets_again(parts, chunk)),
                       parts.result({TensorRole::lse, chunk}, false)});
  }
  for (int turn = 0; turn < parts.context->turns(); ++turn) {
    parts.context->fetch(turn);
    for (int chunk = 0; chunk < parts.chunks(); ++chunk) {
      Output& output = outputs[static_cast<std::size_t>(chunk)];
      attend(parts, turn, chunk, output);
      if (turn + 1 == parts.context->turns()) finish(parts, turn, chunk, output);
    }
  }
  parts.heads.place(TensorRole::o);
  parts.heads.place(TensorRole::lse);
}

}  // namespace longca
