"""A configuration file that cannot be read is named in one line, with the place in it."""

import pytest

from specmoe.yaml_faults import fault_of, key_twice


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"a: [1\nb: 2\n", "c.yaml, line 2, column 2: not valid YAML: expected ',' or ']'"),
        (b"a:\n\tb: 2\n", "c.yaml, line 2, column 1: not valid YAML: found character '\\t' that"),
        (b"a: 1\n  b: 2\n", "c.yaml, line 2, column 4: not valid YAML: mapping values are not"),
        (b"- a\n- b\n", "c.yaml has no keys at its top level"),
        (b"", "c.yaml has no keys at its top level"),
        (b"a: \xff\n", "c.yaml is no text in UTF-8 (byte 3)"),
        (b"a: \x00\n", "c.yaml: not valid YAML: "),
    ],
)
def test_a_fault_has_its_place(content, fault, tmp_path):
    file = tmp_path / "c.yaml"
    file.write_bytes(content)
    said = fault_of(file)
    assert f"{tmp_path}/{fault}" in said
    assert "\n" not in said


@pytest.mark.parametrize("content", ["a: {b: [1, 2]}\n", '{\n\t"a": 1\n}', "--- \na: !!set {b}\n"])
def test_what_can_be_read_has_no_fault(content, tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text(content)
    assert fault_of(file) == ""


def test_a_missing_file_is_told_with_the_nearest_one(tmp_path):
    (tmp_path / "my-models.yaml").write_text("a: 1")
    (tmp_path / "notes.txt").write_text("")
    near = str(tmp_path / "my-models.yaml")
    assert fault_of(tmp_path / "my-model.yaml").endswith(f"my-model.yaml; did you mean {near!r}?")


def test_a_missing_folder_is_told_with_the_shipped_files(root, monkeypatch, tmp_path):
    monkeypatch.chdir(root)
    said = fault_of(tmp_path / "no" / "synthetic.yaml")
    assert "config/synthetic.yaml" in said


def test_a_folder_is_no_configuration_file(tmp_path):
    assert fault_of(tmp_path) == f"{tmp_path} is a folder, not a configuration file"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a: 1\nb:\n  - {c: 1, d: 2,\n     c: 3}\n", "c.yaml, line 4: the key 'c' is here twice"),
        ('{\n\t"a": 1,\n\t"a": 2}', "c.yaml, line 3: the key 'a' is here twice"),
        ("a: {b: 1}\nc: {b: 1}\n? [d]\n: 1\n", ""),
    ],
)
def test_a_key_that_is_there_twice_is_named(content, said, tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text(content)
    assert key_twice(file).endswith(said)
    assert bool(key_twice(file)) == bool(said)
