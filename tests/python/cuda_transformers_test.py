"""longca.integrations.transformers on a GPU: models in bfloat16 beside the same ones in float32 with sdpa."""

import pytest
import torch

transformers = pytest.importorskip("transformers")

from longca.integrations.transformers import register  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

SIZES = {"vocab_size": 64, "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 128, "max_position_embeddings": 2048}
LENGTHS = [5, 700, 319]


def model_on_gpu(name, attention, dtype):
    configuration = {"llama": transformers.LlamaConfig(**SIZES),
                     "mistral": transformers.MistralConfig(**SIZES, sliding_window=100)}[name]
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(configuration, attn_implementation=attention)
    return model.to("cuda", dtype)


def logits_and_gradients(model, parts):
    """Of sequences [1, tokens] with their positions, one after the other: logits joined, gradients summed."""
    logits = torch.cat([model(input_ids=tokens, position_ids=positions, use_cache=False).logits.float()
                        for tokens, positions in parts], dim=1)
    logits.square().mean().backward()
    return [logits.detach(), *(p.grad.float() for p in model.parameters())]


@pytest.mark.parametrize("name", ["llama", "mistral"])
def test_packed_documents_are_as_if_alone(name):
    """Errors against float32 are at most twice those of sdpa in bfloat16, which gets every document alone."""
    register()
    tokens = torch.randint(64, (1, sum(LENGTHS)), generator=torch.Generator().manual_seed(1)).cuda()
    positions = torch.cat([torch.arange(n) for n in LENGTHS])[None].cuda()
    alone = list(zip(tokens.split(LENGTHS, dim=1), positions.split(LENGTHS, dim=1)))
    exact = logits_and_gradients(model_on_gpu(name, "sdpa", torch.float32), alone)
    usual = logits_and_gradients(model_on_gpu(name, "sdpa", torch.bfloat16), alone)
    packed = logits_and_gradients(model_on_gpu(name, "longca", torch.bfloat16), [(tokens, positions)])
    for result, beside, wanted in zip(packed, usual, exact):
        allowed = 2 * (beside - wanted).norm() + 1e-6 * wanted.norm()
        error = (result - wanted).norm()
        assert error <= allowed, f"{error:.3g} of {wanted.norm():.3g}, allowed {allowed:.3g}"
