"""One llama-server process: its command line, its requests, its counters, its end."""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

import httpx
import psutil

from specmoe.config.engines import engine_environment
from specmoe.engine import process
from specmoe.engine.responses import error_in, read_counters
from specmoe.errors import MeasurementError
from specmoe.text import exit_status

# A line is logged for every verification, see engine.responses. And llama-server does not look for
# what fits: layers and context are given, and it took half of a start.
VARIABLES = {"LLAMA_TRACE": "1", "LLAMA_ARG_FIT": "off"}
_POLL_S = 0.02


class Settings(NamedTuple):
    """The settings that a running server reports."""

    slots: int
    context: int  # tokens of each slot; llama.cpp rounds it up
    speculative: bool


class Server:
    """A running llama-server, reached over a Unix socket in a private folder.

    It is a context manager that always ends the process. Every error is a MeasurementError with the
    end of the server's log.
    """

    def __init__(
        self,
        command: list[str],
        log: Path,
        time_limit_s: float,
        environment: Mapping[str, str] | None = None,
    ):
        """Prepare `command` (from `job.server_command`) to run with its output in `log`."""
        # Not in TMPDIR, which may be long: a socket's path has at most 103 bytes on macOS.
        self._folder = tempfile.TemporaryDirectory(prefix="specmoe-", dir="/tmp")
        self._socket = Path(self._folder.name, "s.sock")
        self.command = [*command, "--host", str(self._socket)]
        self.environment = engine_environment(environment or {}, os.environ) | VARIABLES
        self._log = log
        self._time_limit_s = time_limit_s
        self._process: subprocess.Popen[bytes] | None = None
        self.settings: Settings  # known once its models are loaded
        self.peak_rss_bytes: int  # known once the process has ended
        self._client = httpx.Client(
            # A socket is not encrypted; to verify, httpx reads SSL_CERT_FILE, which may be absent.
            transport=httpx.HTTPTransport(uds=str(self._socket), verify=False),
            base_url="http://llama-server",
            timeout=time_limit_s,
        )

    def __enter__(self) -> Self:
        """Start the process and wait until its models are loaded."""
        with self._log.open("wb") as log:
            environment = self.environment
            self._process = process.start_guarded(self.command, log, subprocess.STDOUT, environment)
        try:
            self.settings = self._wait_until_ready()
        except BaseException:
            self.stop()
            raise
        return self

    @property
    def pid(self) -> int:
        """The id of the running server's own process, a child of its guard."""
        assert self._process is not None
        try:
            [server] = psutil.Process(self._process.pid).children()
            if server.status() == psutil.STATUS_ZOMBIE:  # its guard has not seen it end yet
                raise psutil.ZombieProcess(server.pid)
        except (psutil.NoSuchProcess, ValueError) as error:
            raise self._end_error() from error
        return int(server.pid)

    def _end_error(self, otherwise: str = "llama-server ended") -> MeasurementError:
        """Return the error of a server that is no longer there, with the cause if it is known."""
        status = self._end(grace_s=1.0)
        return self.error(f"llama-server crashed ({status})" if status else otherwise)

    def stop(self, *_: object) -> None:
        """End the process and wait for it; a second call does nothing."""
        if self._process is None:
            return
        peak = None
        with suppress(MeasurementError):  # it has ended
            peak = process.living_peak_bytes(self.pid)
        process.end_guarded(self._process)
        # On Linux that of ended processes is never below the peak of the one that started them.
        self.peak_rss_bytes = peak or process.peak_rss_bytes()
        self._process = None
        self._client.close()
        self._folder.cleanup()

    __exit__ = stop

    def tokenize(self, text: str) -> list[int]:
        """Return the token ids of `text` in the target's vocabulary."""
        return list(self._ask("/tokenize", {"content": text, "add_special": True})["tokens"])

    def detokenize(self, ids: list[int]) -> str:
        """Return the text of token ids."""
        return str(self._ask("/detokenize", {"tokens": ids})["content"])

    def apply_template(self, chat: Mapping[str, Any]) -> str:
        """Return a chat as the target's own template writes it, up to where the response starts.

        It has `messages`, and what else the template is told, see `config.workloads.read_chat`.
        """
        return str(self._ask("/apply-template", chat)["prompt"])

    def complete(
        self,
        prompt: list[int],
        *,
        n_predict: int,
        temperature: float,
        seed: int,
        until_end: bool = False,
        **more: Any,
    ) -> dict[str, Any]:
        """Generate exactly `n_predict` tokens after `prompt` and return the server's response.

        With `until_end` its last token may end the target's text, and its `stop_type` is then
        `eos`. `more` are keys of the server's own: by `id_slot` that slot serves it. By `n_probs`,
        for each token `completion_probabilities[i].top_logprobs` has so many likeliest of the
        model, best first, whatever the sampling. By `cache_prompt` the server does not process
        again what `prompt` shares with the request before.
        """
        asked: dict[str, Any] = {
            "prompt": prompt,
            "n_predict": n_predict,
            "temperature": temperature,
            "seed": seed,
            "ignore_eos": not until_end,
            "return_tokens": True,
            "cache_prompt": False,
        }
        greedy = {"top_k": 1} if temperature == 0 else {}
        return dict(self._ask("/completion", asked | greedy | more))

    def metrics(self) -> dict[str, float]:
        """Return the server's counters by name, see `responses.read_counters`."""
        return dict(self._ask("/metrics", read=lambda answer: read_counters(answer.text)))

    def error(self, reason: str) -> MeasurementError:
        """Return an error with `reason` and the end of the server's log."""
        return process.with_end_of_log(reason, self.log_text(), self._log)

    def log_text(self) -> str:
        """Return what the server has logged so far."""
        return self._log.read_text(errors="replace")

    def _wait_until_ready(self) -> Settings:
        deadline = time.monotonic() + self._time_limit_s
        while time.monotonic() < deadline:
            if status := self._end():
                said = error_in(self.log_text())
                cause = f": {said}" if said else ""
                raise self.error(f"llama-server ended while loading ({status}){cause}")
            with suppress(httpx.TransportError):  # not listening yet
                answer = self._client.get("/slots")
                if answer.status_code == httpx.codes.OK:  # its models are loaded
                    slots = answer.json()
                    return Settings(len(slots), slots[0]["n_ctx"], slots[0]["speculative"])
            time.sleep(_POLL_S)
        raise self.error(
            f"llama-server was not ready after {self._time_limit_s:g} s (measurement.time_limit_s)"
        )

    def _ask(
        self,
        path: str,
        body: Mapping[str, Any] | None = None,
        read: Callable[[httpx.Response], Any] = httpx.Response.json,
    ) -> Any:
        """Return what a request gives; what goes wrong with it, or its answer, is an error."""
        try:
            answer = self._client.request("POST" if body else "GET", path, json=body)
            return read(answer.raise_for_status())
        except httpx.TimeoutException as error:
            raise self.error(
                f"timeout: {path} took longer than {self._time_limit_s:g} s"
                " (measurement.time_limit_s)"
            ) from error
        except httpx.TransportError as error:
            raise self._end_error(f"llama-server does not answer: {error}") from error
        except httpx.HTTPStatusError as error:
            raise self.error(f"llama-server refused {path}: {error.response.text}") from error
        except ValueError as error:
            raise self.error(
                f"llama-server answered {path} with what cannot be read: {error}"
            ) from error

    def _end(self, grace_s: float = 0.0) -> str | None:
        """Return how the process has ended; None if it still runs after a time."""
        assert self._process is not None
        with suppress(subprocess.TimeoutExpired):
            return exit_status(self._process.wait(grace_s))
        return None
