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


TINY = {"vocab_size": 60, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "max_position_embeddings": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
LLAMA4 = {**TINY, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size_mlp": 64, "num_local_experts": 2,
          "attention_chunk_size": 8}
BERT = {**TINY, "cls_token_id": 1, "sep_token_id": 2, "local_attention": 8, "num_hidden_layers": 4}


def both(configuration, model, options):
    """The same model twice: with eager attention and with longca."""
    register()
    made = []
    for implementation in ("eager", "longca"):
        config = getattr(transformers, configuration)(**options)
        config._attn_implementation = implementation
        torch.manual_seed(0)
        made.append(getattr(transformers, model)(config).eval())
    made[1].load_state_dict(made[0].state_dict())
    return made


IDS = torch.randint(3, 58, (2, 40), generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize(("configuration", "model", "options"), [
    ("CLIPTextConfig", "CLIPTextModel", TINY),  # causal by an argument, while the module says that it is not
    ("Llama4TextConfig", "Llama4ForCausalLM", LLAMA4),  # causal chunks in some layers
    ("ModernBertConfig", "ModernBertModel", BERT),  # a window to both sides in some layers
    ("BertConfig", "BertModel", TINY),
    ("Gemma3TextConfig", "Gemma3ForCausalLM", {**TINY, "num_key_value_heads": 2, "head_dim": 16, "sliding_window": 8}),
    ("AlignTextConfig", "AlignTextModel", TINY),  # does not say that it is not causal
    ("SplinterConfig", "SplinterModel", TINY),
    ("JetMoeConfig", "JetMoeModel", {**TINY, "num_key_value_heads": 2, "kv_channels": 16, "num_local_experts": 2,
                                     "num_experts_per_tok": 1}),  # takes a view of the result
])
def test_masks_are_those_of_the_model(configuration, model, options):
    eager, longca = both(configuration, model, options)
    for mine, wanted in zip(longca(input_ids=IDS).values(), eager(input_ids=IDS).values()):
        if isinstance(wanted, torch.Tensor):
            torch.testing.assert_close(mine, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["Persimmon", "OPT"])
def test_documents_of_models_that_tell_the_mask_alone_or_attention_alone(name):
    options = {**TINY, "ffn_dim": 64, "word_embed_proj_dim": 64} if name == "OPT" else TINY
    eager, longca = both(f"{name}Config", f"{name}ForCausalLM", options)
    positions = torch.cat([torch.arange(15), torch.arange(25)])[None]
    alone = [eager(input_ids=IDS[:1, part], position_ids=positions[:, part], use_cache=False).logits
             for part in (slice(0, 15), slice(15, 40))]
    got = longca(input_ids=IDS[:1], position_ids=positions, use_cache=False).logits
    torch.testing.assert_close(got, torch.cat(alone, dim=1), rtol=1e-4, atol=1e-5)


def test_documents_of_a_collator():
    sdpa, model = models("llama")
    inputs = packed()
    wanted = sdpa(**inputs).logits
    bounds = torch.tensor([0, *torch.tensor(LENGTHS).cumsum(0)], dtype=torch.int32)
    attend = {"cu_seq_lens_q": bounds, "cu_seq_lens_k": bounds, "max_length_q": 40, "max_length_k": 40}
    torch.testing.assert_close(model(**inputs, **attend).logits, wanted, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="cu_seq_lens_q and cu_seq_lens_k differ"):
        inputs["position_ids"] = torch.arange(sum(LENGTHS))[None]
        model(**inputs, **{**attend, "cu_seq_lens_k": torch.tensor([0, sum(LENGTHS)])})


@pytest.mark.parametrize(("configuration", "model", "options"), [
    ("BloomConfig", "BloomForCausalLM", {**TINY, "n_layer": 2, "n_head": 4}),
    ("XGLMConfig", "XGLMForCausalLM", {**TINY, "d_model": 64, "ffn_dim": 64, "num_layers": 2, "attention_heads": 4}),
    ("MPNetConfig", "MPNetModel", TINY),
    ("CodeGenConfig", "CodeGenForCausalLM", {**TINY, "n_embd": 64, "n_layer": 2, "n_head": 4, "rotary_dim": 8}),
])
def test_models_with_attention_of_their_own_do_not_lose_their_mask(configuration, model, options):
    _, longca = both(configuration, model, options)
    with pytest.raises((AttributeError, NotImplementedError), match="computes attention itself"):
        longca(input_ids=IDS, **({} if model == "MPNetModel" else {"use_cache": False}))


def test_documents_of_a_model_with_chunks_are_those_of_its_mask_or_refused():
    eager, longca = both("Llama4TextConfig", "Llama4ForCausalLM", LLAMA4)
    positions = torch.cat([torch.arange(15), torch.arange(25)])[None]
    inputs = {"input_ids": IDS[:1], "position_ids": positions}
    alone = [eager(input_ids=IDS[:1, part], position_ids=positions[:, part], use_cache=False).logits
             for part in (slice(0, 15), slice(15, 40))]
    torch.testing.assert_close(longca(**inputs, use_cache=False).logits, torch.cat(alone, dim=1), rtol=1e-4, atol=1e-5)
    bounds = torch.tensor([0, 15, 40])
    with pytest.raises(NotImplementedError, match="not those of position_ids or cu_seq_lens_q"):
        longca(input_ids=IDS[:1], cu_seq_lens_q=bounds, cu_seq_lens_k=bounds)


@pytest.mark.parametrize("length", [20, 60])
def test_a_mask_of_another_length_is_refused(length):
    _, model = models("llama")
    with pytest.raises(ValueError, match="attention_mask is of another length"):
        model(input_ids=IDS[:1], attention_mask=torch.ones(1, length, dtype=torch.long), use_cache=False)


@pytest.mark.parametrize("tokens", [range(3, 9), [0, 2]])
def test_images_whose_tokens_see_each_other_are_refused(tokens):
    _, model = models("llama")
    blocks = torch.full((1, 40), -1)
    blocks[0, list(tokens)] = 0
    with pytest.raises(NotImplementedError, match="not one of documents and windows"):
        transformers.masking_utils.create_causal_mask(
            config=model.config, inputs_embeds=torch.zeros(1, 40, 64), attention_mask=None, past_key_values=None,
            block_sequence_ids=blocks)


def test_long_masks_are_asked_about_some_keys():
    _, model = models("mistral")
    positions = torch.cat([torch.arange(n) for n in (700, 1, 1347)])[None]
    visible = transformers.masking_utils.create_sliding_window_causal_mask(
        config=model.config, inputs_embeds=torch.zeros(1, 2048, 64), attention_mask=None, past_key_values=None,
        position_ids=positions)
    assert [bounds.tolist() for bounds in visible.documents] == [[0, 700, 701, 2048]]
    assert visible.causal and visible.window == 6


def test_an_export_is_refused():
    _, model = models("llama")
    with pytest.raises(Exception, match="longca exports no model of Transformers"):
        torch.export.export(model, (IDS[:1],), {"use_cache": False})


def test_scores_with_a_bias_are_refused():
    _, t5 = both("UMT5Config", "UMT5EncoderModel",
                 {"d_model": 64, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 4, "vocab_size": 60})
    with pytest.raises(NotImplementedError, match="position_bias"):
        t5(input_ids=IDS)


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
