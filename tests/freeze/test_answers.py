"""What a live server tells of itself: an answer that no document can carry is none."""

import http.server
import threading

import pytest

from reproducer.engines import engine_of
from reproducer.errors import NotCheckedError
from reproducer.freeze.answers import server_info


@pytest.mark.parametrize("body", [b'{"dtype": "\\ud800"}', b'{"\\udfff": 1}', b'{"a": [{"b": "\\ud800x"}]}'])
def test_half_a_character_is_no_answer(body: bytes) -> None:
    """Half of a surrogate pair is no text: no lock could be written with it, so the whole answer is refused."""

    class Lying(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Lying) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            with pytest.raises(NotCheckedError, match="half of a character"):
                server_info(engine_of("sglang"), host="127.0.0.1", port=server.server_port, patience_s=5)
        finally:
            server.shutdown()
            thread.join()
