"""Tiny models of any kind that `transformers` has, and the kinds whose heads are recorded right."""

import inspect

import torch

# What configurations call their sizes.
WIDTH = (
    "hidden_size",
    "d_model",
    "n_embd",
    "dim",
    "embed_dim",
    "word_embed_proj_dim",
    "embedding_size",
    "projection_dim",
)
INNER = (
    "intermediate_size",
    "ffn_dim",
    "hidden_dim",
    "d_ff",
    "n_inner",
    "ffn_hidden_size",
    "encoder_ffn_dim",
    "decoder_ffn_dim",
    "mlp_hidden_size",
)
HEADS = (
    "num_attention_heads",
    "n_head",
    "n_heads",
    "num_heads",
    "encoder_attention_heads",
    "decoder_attention_heads",
)
LAYERS = (
    "num_hidden_layers",
    "num_layers",
    "n_layer",
    "n_layers",
    "encoder_layers",
    "decoder_layers",
    "depth",
)
SHORT = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_sequence_length")
SIZES = {
    **dict.fromkeys(WIDTH, 32),
    **dict.fromkeys(INNER, 48),
    **dict.fromkeys(HEADS, 4),
    **dict.fromkeys(LAYERS, 2),
    **dict.fromkeys(SHORT, 64),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads", "n_head_kv"), 2),
    **dict.fromkeys(("head_dim", "d_kv", "attention_head_size", "kv_channels"), 8),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "num_experts_per_token"), 2),
    **dict.fromkeys(
        (
            "moe_intermediate_size",
            "shared_expert_intermediate_size",
            "expert_intermediate_size",
            "q_lora_rank",
            "kv_lora_rank",
            "index_head_dim",
        ),
        16,
    ),
    **dict.fromkeys(
        (
            "qk_rope_head_dim",
            "qk_nope_head_dim",
            "v_head_dim",
            "lora_rank",
            "hidden_size_per_layer_input",
        ),
        8,
    ),
    **dict.fromkeys(("vocab_size", "vocab_size_per_layer_input"), 50),
    **dict.fromkeys(
        (
            "n_group",
            "topk_group",
            "n_shared_experts",
            "first_k_dense_replace",
            "bos_token_id",
            "cls_token_id",
            "decoder_start_token_id",
        ),
        1,
    ),
    **dict.fromkeys(
        (
            "eos_token_id",
            "sep_token_id",
            "type_vocab_size",
            "index_n_heads",
            "global_attn_every_n_layers",
            "mlp_ratio",
        ),
        2,
    ),
    "pad_token_id": 0,
    "rotary_dim": 4,
    "index_topk": 3,
    "sliding_window": 4,
    "local_attention": 4,
    "image_size": 16,
    "patch_size": 8,
    "num_channels": 3,
    "bottleneck_size": 32,
}
# By where their heads are taken; a model with layers of two sorts has both.
RIGHT = {
    "keys": """
        afmoe apertus axk1 axk2 bailing_hybrid beam deepseek_v2 deepseek_v3 deepseek_v32
        dinov3_vit dots1 embedding_gemma2_text esm esmc exaone4 exaone_moe flex_olmo
        gemma3_text gemma4_text gemma4_unified_text glm4_moe_lite glm_moe_dsa
        hunyuan_v1_dense hunyuan_v1_moe hy_v3 jetmoe kimi_linear kolibri1 laguna lfm2 lfm3
        llama4_text longcat_flash mellum minicpm3 minimax_m2 minimax_m3_vl_text
        mistral_large4_text mlcd mlcd_vision_model molmo2_text muse_glimmer_text
        muse_spark_text nanochat olmo2 olmo3 olmo_hybrid olmoe persimmon qwen3_vl_moe_text
        qwen3_vl_text sapiens2
    """,
    "residual stream": """
        aimv2_vision_model beit bert bert-generation biogpt camembert
        chinese_clip_vision_model clip_text_model clip_vision_model ctrl data2vec-text deit
        dinov2 dinov2_with_registers distilbert dpr dpt electra ernie gpt-sw3 gpt2
        gpt_bigcode idefics3_vision ijepa internvl_vision layoutlm mobilebert opt pixio
        roberta roberta-prelayernorm roc_bert siglip_vision_model smolvlm_vision splinter
        tipsv2_text_model tipsv2_vision_model
    """,
    "residual stream and residual stream with positions": """
        cohere2 cohere2_moe
    """,
    "residual stream with positions": """
        arcee aria_text bitnet cohere cwm ernie4_5 ernie4_5_moe eurobert gemma gemma2 glm
        glm4 glm4_moe gpt_neox granite granite_docling_text granitemoe granitemoeshared gte
        helium higgs_audio_v2 hyperclovax internlm3 iquestcoder jais2 jina_embeddings_v3
        llama minimax ministral ministral3 mistral mixtral modernbert modernbert-decoder
        moshi nemotron nomic_bert olmo phi phi3 phimoe seed_oss smollm3 solar_open stablelm
        starcoder2 ultrabert vaultgemma
    """,
}
LENGTHS = [9, 6, 9, 7, 9]


def configured(kind: str):
    """The smallest configuration of a kind of model."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    made = CONFIG_MAPPING[kind]
    usual = made().to_dict()
    known = set(usual) | set(getattr(made, "attribute_map", {}))
    sizes = {name: size for name, size in SIZES.items() if name in known}
    for name in ("layer_types", "mlp_layer_types", "layers_block_type"):
        if isinstance(usual.get(name), list) and usual[name]:
            sizes[name] = (list(dict.fromkeys(usual[name])) * 2)[:2]
    if isinstance(usual.get("patch_size"), list | tuple):
        del sizes["patch_size"]
    if usual.get("num_key_value_heads") == usual.get("num_attention_heads"):
        sizes["num_key_value_heads"] = 4 if "num_key_value_heads" in sizes else None
    sizes = {name: size for name, size in sizes.items() if size is not None}
    for more in ({}, {"layer_types": None}):
        try:
            return made(**(sizes | more))
        except Exception as error:  # of whatever kind the configuration has
            last = error
    raise last


def tiny(kind: str):
    """A model of a kind with random weights, and what it is called with."""
    from transformers.models.auto.modeling_auto import MODEL_MAPPING

    config = configured(kind)
    made = MODEL_MAPPING[type(config)]
    torch.manual_seed(0)
    model = (made[0] if isinstance(made, list | tuple) else made)(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.is_floating_point():
                weight.add_(0.1 * torch.randn_like(weight))
    generator = torch.Generator().manual_seed(1)
    if "input_ids" in inspect.signature(model.forward).parameters:
        mask = (torch.arange(9) < torch.tensor(LENGTHS)[:, None]).long()
        ids = torch.randint(3, 50, (5, 9), generator=generator)
        return model, {"input_ids": ids, "attention_mask": mask}
    size = getattr(config, "image_size", 16)
    size = size if isinstance(size, int) else size[0]
    shape = (5, getattr(config, "num_channels", 3), size, size)
    return model, {"pixel_values": torch.randn(shape, generator=generator)}


def apart(model, inputs, heads) -> float:
    """How far the heads' attention, and that of their own logits, is from eager's."""
    kind = model.config._attn_implementation
    model.set_attn_implementation("eager")
    with torch.no_grad():
        own = [
            each for each in model(**inputs, output_attentions=True).attentions if each is not None
        ]
    model.set_attn_implementation(kind)
    farthest = 0.0
    for head in heads:
        weights = own[head.layer][:, head.head]
        counts = torch.tensor(LENGTHS) if head.query < 0 else torch.zeros(5, dtype=torch.long)
        if "pixel_values" in inputs and head.query < 0:
            counts = torch.full((5,), weights.shape[2])
        rows = weights[torch.arange(5), counts + head.query].double()
        for i, size in enumerate(head.lengths.tolist()):
            for mine in (head.attention[i, :size], head.logits[i, :size].softmax(0)):
                row = torch.zeros_like(rows[i]).index_add(0, head.positions[i, :size], mine)
                farthest = max(farthest, float((row - rows[i]).abs().max()))
    return farthest
