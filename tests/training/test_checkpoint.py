"""Checkpoints: a run that is stopped at any moment continues as the same run, and no other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import cache

import numpy as np
import pytest

from kernelne import Embedding, InputError, KernelNE, LinkPredictor, MKernelNE, ParameterError, load_dataset
from kernelne.training.checkpoint import Checkpoint, Interrupted

SETTINGS = {"dim": 8, "walks_per_node": 10, "random_state": 7, "n_threads": 1, "checkpoint_every": 1e-9}
MIXTURE = [("gaussian", 1.0), ("schoenberg", 1.5)]


@cache
def planted():
    return load_dataset("planted:n=120,k=3,p_in=0.2,p_out=0.02,seed=1").graph


class CrashError(Exception):
    """What ends a process, or a notebook's cell."""


def crash_at(share):
    def tell(done, total, loss):
        if done >= share * total:
            raise CrashError

    return tell


def same(one, other):
    for name in ("center_", "context_", "coefficients_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name, values in one.history_.items():
        np.testing.assert_array_equal(values, other.history_[name])


@pytest.mark.parametrize("changes", [{}, {"n_threads": 2, "deterministic": True}, {"kernels": MIXTURE}])
def test_a_run_that_crashes_again_and_again_is_the_same_run(tmp_path, changes):
    kind = MKernelNE if "kernels" in changes else KernelNE
    settings = SETTINGS | changes
    whole = kind(**settings).fit(planted())
    for share in (0.02, 0.3, 0.31, 0.9):
        with pytest.raises(CrashError):
            kind(**settings, checkpoint=tmp_path / "run", progress=crash_at(share)).fit(planted())
        assert 1 <= len(list((tmp_path / "run").iterdir())) <= 2
    seen = []
    last = kind(**settings, checkpoint=tmp_path / "run", progress=lambda done, *rest: seen.append(done))
    same(last.fit(planted()), whole)
    assert seen[0] > 0.8 * 1200  # it went on, and did not start anew
    again = kind(**settings, checkpoint=tmp_path / "run", progress=crash_at(0)).fit(planted())
    same(again, whole)  # it had ended, so nothing was trained


def test_without_a_seed_the_one_of_the_checkpoint_is_used(tmp_path):
    settings = SETTINGS | {"random_state": None, "checkpoint": tmp_path / "run"}
    with pytest.raises(CrashError):
        KernelNE(**settings, progress=crash_at(0.5)).fit(planted())
    model = KernelNE(**settings).fit(planted())
    same(model, KernelNE(**SETTINGS | {"random_state": model.seed_}).fit(planted()))


def test_another_run_is_refused_with_what_differs(tmp_path):
    settings = SETTINGS | {"checkpoint": tmp_path / "run"}
    with pytest.raises(CrashError):
        KernelNE(**settings, progress=crash_at(0.5)).fit(planted())
    before = {path: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    for changes, words in (
        ({"dim": 9}, ["dim 8", "now 9"]),
        ({"sigma": 1.0, "p": 2.0}, ["kernels [['gaussian', 2.0]]", "p 1.0 (now 2.0)"]),
        ({"random_state": 8}, ["seed"]),
    ):
        with pytest.raises(InputError, match="other settings") as caught:
            KernelNE(**settings | changes).fit(planted())
        for word in words:
            assert word in str(caught.value)
    with pytest.raises(InputError, match="model KernelNE"):
        MKernelNE(**settings).fit(planted())
    other = load_dataset("planted:n=120,k=3,p_in=0.2,p_out=0.02,seed=2").graph
    with pytest.raises(InputError, match=r"another graph \(120 nodes, fingerprint"):
        KernelNE(**settings).fit(other)
    assert {path: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before
    same(
        KernelNE(**settings | {"n_threads": 2}).fit(planted()).fit(planted()),
        KernelNE(**settings).fit(planted()),
    )


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "header"])
def test_a_damaged_state_falls_back_to_the_one_before(tmp_path, damage):
    settings = SETTINGS | {"checkpoint": tmp_path / "run"}
    with pytest.raises(CrashError):
        KernelNE(**settings, progress=crash_at(0.5)).fit(planted())
    newest, _ = Checkpoint.at(tmp_path / "run", 1, "").files()
    data = bytearray(newest.read_bytes())
    if damage == "flipped":
        data[len(data) // 2] ^= 1
    elif damage == "header":
        data[200] ^= 1
    newest.write_bytes({"cut": data[: len(data) // 2], "empty": b""}.get(damage, data))
    with pytest.warns(UserWarning, match=r"not a readable checkpoint.*the checkpoint before it is used"):
        model = KernelNE(**settings).fit(planted())
    same(model, KernelNE(**SETTINGS).fit(planted()))
    for file in (tmp_path / "run").iterdir():
        file.write_bytes(b"x" * 100)
    with (
        pytest.raises(InputError, match="no checkpoint in it can be read"),
        pytest.warns(UserWarning, match="not a readable checkpoint"),
    ):
        KernelNE(**settings).fit(planted())


def test_parameters(tmp_path):
    for changes, message in (
        ({"checkpoint": 3}, "checkpoint=3: must be the name of a folder"),
        ({"checkpoint": ""}, "checkpoint=''"),
        (
            {"checkpoint": "x", "checkpoint_every": "often"},
            "checkpoint_every='often': must be a positive number",
        ),
        ({"checkpoint": "x", "checkpoint_every": 0}, "checkpoint_every=0"),
    ):
        with pytest.raises(ParameterError, match=message):
            KernelNE(**changes).fit(planted())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match=r"holds other files, such as thesis\.tex"):
        KernelNE(**SETTINGS, checkpoint=tmp_path / "mine").fit(planted())
    (tmp_path / "file").write_text("x")
    for name in ("file", "no/such/folder"):
        with pytest.raises(InputError, match="cannot be used for checkpoints"):
            KernelNE(**SETTINGS, checkpoint=tmp_path / name).fit(planted())


def test_embeddings_of_folds_have_no_checkpoint(tmp_path):
    model = KernelNE(**SETTINGS, checkpoint=tmp_path / "run")
    LinkPredictor(embedder=model, random_state=0).fit(planted())
    assert not (tmp_path / "run").exists()


def test_signals_stop_a_run_after_the_block(tmp_path):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    for number in (signal.SIGINT, signal.SIGTERM):

        def tell(done, total, loss, number=number):
            if total / 2 < done < total / 2 + 20:
                os.kill(os.getpid(), number)

        settings = SETTINGS | {"checkpoint": tmp_path / str(number), "checkpoint_every": "1h"}
        with pytest.raises(Interrupted, match=r"stopped after 5\d% of the walks") as caught:
            KernelNE(**settings, progress=tell).fit(planted())
        assert caught.value.signum == number
        assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before
        same(KernelNE(**settings).fit(planted()), KernelNE(**SETTINGS).fit(planted()))


EMBED = ["embed", "g.edges", "-o", "out.npz", "--seed", "3", "--deterministic", "-d", "16", "--quiet"]
EMBED += ["--walks-per-node", "400", "--kernels", "gaussian:1"]


def start(*args, cwd):
    command = [sys.executable, "-m", "kernelne", *args]
    return subprocess.Popen(command, cwd=cwd, stderr=subprocess.PIPE, text=True)


def kernelne(*args, cwd):
    command = [sys.executable, "-m", "kernelne", *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_killed_at_random_moments(tmp_path):
    """SIGKILL, again and again: the run that ends at last has the bits of one that was never killed."""
    (tmp_path / "g.edges").write_text(
        "\n".join(f"{i} {(i * k + 1) % 1500}" for i in range(1500) for k in (1, 7, 30))
    )
    assert kernelne(*EMBED, cwd=tmp_path).returncode == 0
    expected = Embedding.load(tmp_path / "out.npz").vectors
    (tmp_path / "out.npz").unlink()
    args = [*EMBED, "--checkpoint", "run", "--checkpoint-every", "0.01s"]
    rng = np.random.default_rng(0)
    n_killed, reached = 0, []
    while n_killed < 3:
        process = start(*args, *["--resume"] * (tmp_path / "run").exists(), cwd=tmp_path)
        deadline = time.monotonic() + 60
        there = sorted(tmp_path.glob("run/walk-*"))
        while sorted(tmp_path.glob("run/walk-*")) == there and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.05))
        ended = process.poll() is not None
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if ended:
            break
        n_killed += 1
        reached.append(max(int(p.name[5:].split(".")[0]) for p in tmp_path.glob("run/walk-*")))
        assert not (tmp_path / "out.npz").exists()
    assert n_killed >= 2
    assert reached == sorted(reached)
    result = kernelne(*args[:-1], "1h", "--resume", cwd=tmp_path)  # without hundreds of further checkpoints
    assert result.returncode == 0, result.stderr
    np.testing.assert_array_equal(Embedding.load(tmp_path / "out.npz").vectors, expected)
    assert not (tmp_path / "run").exists()  # nothing is left behind


def test_what_the_command_says_when_it_is_stopped(tmp_path):
    (tmp_path / "g.edges").write_text(
        "\n".join(f"{i} {(i * k + 1) % 900}" for i in range(900) for k in (1, 7))
    )
    long = [*EMBED[:-4], "--walks-per-node", "1000000", "--kernels", "gaussian:1"]
    for number in (signal.SIGINT, signal.SIGTERM):
        args = [*long, "--checkpoint", f"run{number}", "--checkpoint-every", "0.1s"]
        process = start(*args, cwd=tmp_path)
        while not list(tmp_path.glob(f"run{number}/walk-*")) and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(number)
        _, told = process.communicate(timeout=60)
        assert process.returncode == 128 + number, told
        assert told.count("\n") == 1
        assert f"kept in run{number}; to continue: kernelne embed g.edges -o out.npz" in told
        assert told.rstrip().endswith("--resume")
        refused = kernelne(*args, cwd=tmp_path)
        assert refused.returncode == 2
        assert "--resume continues it" in refused.stderr
    result = kernelne(*EMBED, "--resume", cwd=tmp_path)
    assert result.returncode == 2
    assert "--resume" in result.stderr
    process = start(*long, "--keep-partial", cwd=tmp_path)
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    if process.returncode == 130 and (tmp_path / "out.npz").exists():
        assert "out.npz holds the vectors as they were" in told
        assert 0 < Embedding.load(tmp_path / "out.npz").provenance["stopped_after"] < 1
    else:
        assert "nothing was written" in told  # the signal came before the training
