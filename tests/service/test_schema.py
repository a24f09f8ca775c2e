"""Requests made up from the OpenAPI description: none is a server error, and every answer is as described."""

import subprocess
import sys
from pathlib import Path

import httpx

from tests.service.processes import Zygote, free_port

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def test_schemathesis_finds_nothing(forge: Zygote, tmp_path: Path) -> None:
    """About a thousand requests, valid and not, alone and in sequence."""
    server = forge.start(tmp_path / "state", free_port())
    httpx.put(f"{server.url}/v1/bandits/b", json={"dim": 4}).raise_for_status()
    program = Path(sys.executable).with_name("schemathesis")
    command: list[str | Path] = [
        program,
        "run",
        f"{server.url}/openapi.json",
        "--checks",
        CHECKS,
    ]
    command += ["--max-examples", "25", "--seed", "1", "--suppress-health-check", "all", "--no-color"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-6000:]
    assert "Test cases:" in done.stdout
    assert httpx.get(f"{server.url}/readyz").status_code == 200
    assert 'sketchbandit_responses_total{status="500"}' not in httpx.get(f"{server.url}/metrics").text
    server.stop()
