"""Where a result comes from is written down whole, without secrets."""

from __future__ import annotations

import json
import subprocess

from jocr import provenance


def test_collect_is_json_and_complete():
    found = json.loads(json.dumps(provenance.collect({"render": {"password": "hunter2"}}, model="nano")))
    assert {"created", "jocr", "commit", "python", "versions", "hardware", "recipe", "model"} <= set(found)
    assert "hunter2" not in json.dumps(found)
    assert found["versions"]["pyarrow"]
    assert found["hardware"]["cores"] >= 1
    assert found["model"] == "nano"


def test_secrets_at_any_depth_are_masked_and_none_stays():
    data = {"a": {"b": {"password": "x", "token": None}}, "passwords_tried": 3}
    assert provenance.without_secrets(data) == {"a": {"b": {"password": "***", "token": None}}, "passwords_tried": 3}


def test_text_hash_is_stable():
    assert provenance.text_hash("") == "e3b0c44298fc1c14"
    assert provenance.text_hash("a") != provenance.text_hash("b")
    assert len(provenance.text_hash("\udce9")) == 16


def test_commit_tells_changed_files(tmp_path, monkeypatch):
    package = tmp_path / "jocr"
    package.mkdir()
    (package / "provenance.py").write_text("")
    monkeypatch.setattr(provenance, "__file__", str(package / "provenance.py"))
    assert provenance.commit() is None

    def git(*args):
        who = ["-c", "user.name=t", "-c", "user.email=t@t"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *args], check=True, capture_output=True)

    git("init")
    assert provenance.commit() is None
    git("add", ".")
    git("commit", "-m", "x")
    clean = provenance.commit()
    assert clean is not None
    assert len(clean) == 40
    (package / "provenance.py").write_text("changed")
    assert provenance.commit() == clean + "+dirty"
