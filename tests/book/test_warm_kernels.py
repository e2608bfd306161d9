"""Forked kernels are kernels: their own state, folder and variables, an interrupt and an end."""

import os
import signal
import time

import pytest
from jupyter_client.manager import start_new_kernel
from jupyter_client.provisioning import local_provisioner

from tools import warm_kernels

pytestmark = pytest.mark.skipif(not warm_kernels.POSSIBLE, reason="kernels are forked on Linux")


@pytest.fixture
def parent(monkeypatch):
    monkeypatch.setattr(local_provisioner, "launch_kernel", local_provisioner.launch_kernel)
    found = warm_kernels.install()  # put back after the test
    yield found
    found.end()


def ask(client, code: str) -> str:
    """What a kernel prints."""
    printed = []
    client.execute_interactive(
        code, timeout=60, output_hook=lambda m: printed.append(m["content"].get("text", ""))
    )
    return "".join(printed).strip()


@pytest.mark.slow
def test_two_forked_kernels(parent, tmp_path):
    first, client = start_new_kernel(cwd=str(tmp_path), env=os.environ | {"WHICH": "first"})
    second, other = start_new_kernel(cwd=str(tmp_path.parent))
    code = "import os, sys; x = 1; print(os.getcwd(), os.getppid(), os.environ.get('WHICH'))"
    pid = parent.process.pid
    assert os.getpgid(first.provisioner.pid) == first.provisioner.pid == first.provisioner.pgid
    assert ask(client, code) == f"{tmp_path} {pid} first"
    assert ask(other, code.replace("x = 1; ", "")) == f"{tmp_path.parent} {pid} None"
    assert ask(other, "print('x' in globals())") == "False"
    warm = {"torch", "numba", "scipy.optimize", "nbformat", "attnbias.plots", "attnbias.theorems"}
    assert ask(other, f"print({warm} - set(sys.modules))") == "set()"
    assert ask(other, "import pandas; print(pandas.get_option('display.max_columns'))") == "20"
    assert ask(other, "import subprocess; print(subprocess.call(['false']))") == "1"
    begun = client.execute("import time\ntime.sleep(60)")
    time.sleep(0.5)
    first.interrupt_kernel()
    reply = client.get_shell_msg(timeout=30)
    assert (reply["parent_header"]["msg_id"], reply["content"]["ename"]) == (
        begun,
        "KeyboardInterrupt",
    )
    for manager, channel in ((first, client), (second, other)):
        channel.stop_channels()
        manager.shutdown_kernel()
        assert not manager.is_alive()


@pytest.mark.slow
def test_a_kernel_ends_with_the_process_that_forked_it(parent, tmp_path):
    manager, client = start_new_kernel(cwd=str(tmp_path))
    client.stop_channels()
    kernel = warm_kernels.Forked(manager.provisioner.pid)
    assert kernel.poll() is None
    parent.end()
    until = time.monotonic() + 20
    while kernel.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
    assert kernel.poll() == 0
    manager.cleanup_resources()


def test_a_process_that_is_gone_is_told_from_one_that_lives():
    assert warm_kernels.Forked(os.getpid()).poll() is None
    child = os.posix_spawn("/bin/true", ["true"], os.environ)
    os.waitpid(child, 0)
    gone = warm_kernels.Forked(child)
    assert gone.poll() == gone.wait() == 0
    gone.send_signal(signal.SIGTERM)  # no error
