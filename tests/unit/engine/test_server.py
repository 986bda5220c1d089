"""Requests to a llama-server; its answers are in `tests/engine` and `tests/faults`."""

from specmoe.engine.server import Server


def test_a_run_reads_its_whole_prompt_and_ends_by_itself_only_where_it_may(monkeypatch, tmp_path):
    sent = []
    monkeypatch.setattr(Server, "_ask", lambda _, path, body: sent.append(body) or {})
    server = Server([], tmp_path / "log", 1)
    server.complete([5, 6], n_predict=7, temperature=0, seed=3)
    server.complete([5], n_predict=7, temperature=0.7, seed=3, until_end=True, cache_prompt=True)
    greedy, sampled = sent
    assert greedy.items() >= {"ignore_eos": True, "cache_prompt": False, "top_k": 1}.items()
    assert sampled.items() >= {"ignore_eos": False, "cache_prompt": True}.items()
    assert "top_k" not in sampled
