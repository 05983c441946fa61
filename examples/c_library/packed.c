// Two packed documents, forward and backward, through longca.h. Prints the gradient's sum over the first
// document's values: every query spreads a weight of 1 over the keys of its own document, so that it is
// the number of that document's queries × heads × dim.
#include <longca.h>
#include <stdio.h>
#include <stdlib.h>

enum { kTokens = 48, kFirst = 17, kHeadsQ = 4, kHeadsK = 2, kDim = 32 };

static longca_tensor tensor(int64_t heads, float value) {
  const size_t elements = (size_t)(kTokens * heads * kDim);
  float* data = malloc(elements * sizeof(float));
  for (size_t i = 0; i < elements; ++i) data[i] = value + 0.01f * (float)(i % 7);
  const longca_tensor made = {data, kTokens, heads, kDim, heads * kDim, kDim};
  return made;
}

static void check(longca_status status) {
  if (status == LONGCA_OK) return;
  fprintf(stderr, "%s: %s\n", longca_status_name(status), longca_last_error());
  exit(1);
}

int main(void) {
  check(longca_check_abi(LONGCA_ABI_VERSION));

  const int64_t cu_seqlens[] = {0, kFirst, kTokens};
  longca_mask* mask = NULL;
  check(longca_mask_from_cu_seqlens(cu_seqlens, 3, 1, -1, -1, &mask));

  longca_problem problem = LONGCA_PROBLEM_INIT;
  problem.heads_q = kHeadsQ;
  problem.heads_k = kHeadsK;
  problem.head_dim = kDim;
  problem.backward = 1;
  longca_plan* plan = NULL;
  check(longca_plan_create(&problem, mask, &plan));
  longca_mask_release(mask);

  float* lse = malloc(sizeof(float) * kHeadsQ * kTokens);
  longca_forward_arguments forward = {0};
  forward.q = tensor(kHeadsQ, 0.5f);
  forward.k = tensor(kHeadsK, -0.5f);
  forward.v = tensor(kHeadsK, 1.0f);
  forward.o = tensor(kHeadsQ, 0.0f);
  forward.lse = (longca_lse){lse, kHeadsQ, kTokens, kTokens};
  check(longca_forward(plan, &forward));

  longca_backward_arguments backward = {0};
  backward.dout = tensor(kHeadsQ, 0.0f);
  for (int i = 0; i < kTokens * kHeadsQ * kDim; ++i) ((float*)backward.dout.data)[i] = 1.0f;
  backward.q = forward.q;
  backward.k = forward.k;
  backward.v = forward.v;
  backward.o = forward.o;
  backward.lse = forward.lse;
  backward.dq = tensor(kHeadsQ, 0.0f);
  backward.dk = tensor(kHeadsK, 0.0f);
  backward.dv = tensor(kHeadsK, 0.0f);
  check(longca_backward(plan, &backward));

  double sum = 0;
  for (int i = 0; i < kFirst * kHeadsK * kDim; ++i) sum += ((float*)backward.dv.data)[i];
  printf("longca %s, kernel %s: %.3f of %d\n", longca_version(), longca_plan_kernel(plan), sum,
         kFirst * kHeadsQ * kDim);
  longca_plan_release(plan);

  float* all[] = {forward.q.data,    forward.k.data,   forward.v.data,   forward.o.data, lse,
                  backward.dout.data, backward.dq.data, backward.dk.data, backward.dv.data};
  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i) free(all[i]);
  const double error = sum - kFirst * kHeadsQ * kDim;
  return error < 0.01 && error > -0.01 ? 0 : 1;
}
