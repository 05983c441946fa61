"""longca.integrations.transformers, with a small Llama, Mistral and DeepSeek V3 made from their configurations."""

import pytest
import torch

transformers = pytest.importorskip("transformers")

from longca.integrations.transformers import documents_of, register  # noqa: E402

SIZES = {"vocab_size": 64, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 256}
# MLA: q and k of 16 + 8 dimensions, v of 12.
DEEPSEEK = {**SIZES, "num_key_value_heads": 4, "head_dim": 8, "q_lora_rank": 24, "kv_lora_rank": 16,
            "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 12, "first_k_dense_replace": 2}
LENGTHS = [5, 40, 19]


def models(name):
    """The same model twice: with sdpa and with longca."""
    register()
    configuration = {"llama": transformers.LlamaConfig(**SIZES),
                     "mistral": transformers.MistralConfig(**SIZES, sliding_window=7),
                     "deepseek": transformers.DeepseekV3Config(**DEEPSEEK)}[name]
    torch.manual_seed(0)
    sdpa = transformers.AutoModelForCausalLM.from_config(configuration, attn_implementation="sdpa")
    longca = transformers.AutoModelForCausalLM.from_config(configuration, attn_implementation="longca")
    longca.load_state_dict(sdpa.state_dict())
    return sdpa, longca


def packed(batch=1):
    tokens = torch.randint(64, (batch, sum(LENGTHS)), generator=torch.Generator().manual_seed(1))
    positions = torch.cat([torch.arange(n) for n in LENGTHS])[None].repeat(batch, 1)
    if batch > 1:
        positions[1] = torch.arange(sum(LENGTHS))
    return {"input_ids": tokens, "position_ids": positions, "use_cache": False}


@pytest.mark.parametrize("name", ["llama", "mistral", "deepseek"])
def test_packed_documents_are_as_if_alone(name):
    sdpa, model = models(name)
    inputs = packed()
    alone = [sdpa(input_ids=part, use_cache=False).logits for part in inputs["input_ids"].split(LENGTHS, dim=1)]
    torch.testing.assert_close(model(**inputs).logits, torch.cat(alone, dim=1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["llama", "deepseek"])
def test_sequences_of_a_batch_have_documents_of_their_own_and_gradients(name):
    sdpa, model = models(name)
    inputs = packed(batch=2)
    logits = model(**inputs).logits
    wanted = sdpa(**inputs).logits
    torch.testing.assert_close(logits, wanted, rtol=1e-4, atol=1e-5)
    for x in (logits, wanted):
        x.square().mean().backward()
    for (name, mine), theirs in zip(model.named_parameters(), sdpa.parameters()):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-3, atol=1e-6, msg=name)


def test_compiled_with_several_packings():
    torch._dynamo.reset()
    _, model = models("llama")
    compiled = torch.compile(model, backend="aot_eager")
    inputs = packed()
    for lengths in ([64], [5, 59], [10, 20, 34]):
        inputs["position_ids"] = torch.cat([torch.arange(n) for n in lengths])[None]
        torch.testing.assert_close(compiled(**inputs).logits, model(**inputs).logits, rtol=1e-4, atol=1e-5)


def test_documents_begin_where_positions_do_not_go_on():
    assert documents_of(torch.tensor([[0, 1, 2, 0, 0, 1]])).tolist() == [0, 3, 4, 6]
    assert documents_of(torch.tensor([7, 8, 9])).tolist() == [0, 3]


def test_what_longca_cannot_do_is_refused():
    _, model = models("llama")
    inputs = packed()
    padding = torch.ones_like(inputs["input_ids"])
    padding[0, :3] = 0
    with pytest.raises(ValueError, match="padding"):
        model(**inputs, attention_mask=padding)
    model.train()
    model.model.layers[0].self_attn.attention_dropout = 0.1
    with pytest.raises(NotImplementedError, match="dropout"):
        model(**inputs)
