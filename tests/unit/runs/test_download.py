"""A small file that is downloaded or copied, and checked."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from specmoe.errors import DownloadError
from specmoe.runs.study_csv import download

CONTENT = b"rows"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class _Web(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        moved = self.path == "/moved"
        self.send_response({"/rows": 200, "/moved": 302}.get(self.path, 404))
        if moved:
            self.send_header("Location", "/rows")
        self.end_headers()
        if self.path == "/rows":
            self.wfile.write(CONTENT)


@pytest.fixture
def web():
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Web)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_a_file_with_the_right_digest_is_written_and_another_refused(web, tmp_path):
    (tmp_path / "mine").write_bytes(CONTENT)
    for source in (f"{web}/rows", f"{web}/moved", str(tmp_path / "mine")):
        out = tmp_path / "out"
        download(source, DIGEST, out)
        assert out.read_bytes() == CONTENT
        out.unlink()
        with pytest.raises(DownloadError, match=f"SHA-256 {DIGEST}, the config says 0000"):
            download(source, "0" * 64, out)
        assert not out.exists()


@pytest.mark.parametrize("source", ["{web}/absent", "http://127.0.0.1:9/rows", "absent.csv"])
def test_an_unreadable_source_is_named_with_a_remedy(web, tmp_path, source):
    with pytest.raises(DownloadError, match=r"cannot be read \(.+\); .*published\.file"):
        download(source.format(web=web), DIGEST, tmp_path / "out")
