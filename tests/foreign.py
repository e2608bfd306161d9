"""Models of transformers as people have them: a tokenizer without padding, weights elsewhere."""

import torch

BERT = dict(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    vocab_size=50,
    intermediate_size=48,
    max_position_embeddings=64,
    pad_token_id=0,
)
GPT2 = dict(n_embd=32, n_layer=2, n_head=4, vocab_size=50)
VIT = dict(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    image_size=16,
    patch_size=8,
)
SENTENCES = ["A man plays the guitar.", "Two dogs run outdoors.", "The people are sleeping."]


def made(name, kind="Model", **sizes):
    """A model with random weights, large enough that its attention is no average."""
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**sizes or BERT)
    model = getattr(transformers, name + kind)(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.2 * torch.randn_like(weight))
    return model.eval()


def bare_tokenizer():
    """A byte-level tokenizer that has an end of text, as GPT-2's, and no padding."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    end, bytes_ = "<|endoftext|>", pre_tokenizers.ByteLevel
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = bytes_(add_prefix_space=False)
    options = dict(special_tokens=[end], initial_alphabet=bytes_.alphabet(), show_progress=False)
    made.train_from_iterator(SENTENCES, trainers.BpeTrainer(vocab_size=300, **options))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token=end, bos_token=end)


def save_model(folder, tokenizer=True):
    """Write a Llama of as many layers and heads as the README asks of, with such a tokenizer."""
    import transformers

    own = bare_tokenizer()
    config = transformers.LlamaConfig(
        vocab_size=len(own),
        hidden_size=36,
        intermediate_size=36,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        bos_token_id=0,
        eos_token_id=0,
    )
    torch.manual_seed(0)
    transformers.LlamaModel(config).save_pretrained(folder)
    if tokenizer:
        own.save_pretrained(folder)


def offload(model):
    """Keep each weight away until its module is called, as accelerate's cpu_offload does."""
    for module in model.modules():
        kept = dict(module._parameters)
        if not any(each is not None for each in kept.values()):
            continue

        def away(module, *_, kept=kept):
            for name, weight in kept.items():
                meta = None if weight is None else torch.nn.Parameter(weight.data.to("meta"))
                module._parameters[name] = meta

        module.register_forward_pre_hook(
            lambda module, *_, kept=kept: module._parameters.update(kept)
        )
        module.register_forward_hook(away)
        away(module)
    return model
