"""The synthetic vocabulary: it encodes any bytes, at every size."""

import gguf
import pytest

from specmoe.errors import ModelError
from specmoe.models.vocabulary import byte_level_vocabulary, byte_symbols

TRUE_SIZE = 248_320


def test_every_merge_makes_a_token_from_two_tokens():
    vocabulary = byte_level_vocabulary(384)
    for merge in vocabulary.merges:
        left, right = merge.split(" ")
        assert {left, right, left + right} <= set(vocabulary.tokens)


@pytest.mark.parametrize("size", [500, TRUE_SIZE])
def test_the_vocabulary_has_the_size_asked_for_and_no_token_twice(size):
    vocabulary = byte_level_vocabulary(size)
    assert len(vocabulary.tokens) == len(set(vocabulary.tokens)) == len(vocabulary.types) == size
    assert vocabulary.types[vocabulary.end_of_text] == gguf.TokenType.CONTROL


def test_a_larger_vocabulary_only_adds_tokens_that_nothing_is_encoded_with():
    small, large = byte_level_vocabulary(384), byte_level_vocabulary(500)
    assert large.tokens[:384] == small.tokens
    assert large.merges == small.merges
    assert large.padding == (*small.padding, *range(384, 500))
    assert set(large.unprintable) == {*small.unprintable, *large.padding}


def test_a_vocabulary_too_small_for_all_bytes_is_refused():
    with pytest.raises(ModelError, match="vocabulary must be at least"):
        byte_level_vocabulary(200)


def test_every_byte_has_a_token():
    assert len(set(byte_symbols()) & set(byte_level_vocabulary(384).tokens)) == 256
