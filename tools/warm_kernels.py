"""Kernels forked from one process that has imported the library, instead of started from nothing.

To start a kernel and to import torch, numba, pandas and the library takes four seconds of processor
time, and the chapters need over a hundred kernels. A process does it once, and forks for each; it
has computed nothing by then, so a fork has no threads of torch to miss. Every fork has its own
state, as a kernel has. Linux alone, where forks are safe after such imports.
"""

import builtins
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from functools import partialmethod
from types import SimpleNamespace

POSSIBLE = sys.platform == "linux"


class Forked:
    """What jupyter_client asks of a kernel's process."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        """None while it lives; the parent, another process, has its exit status."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    def wait(self) -> int:
        while self.poll() is None:
            time.sleep(0.01)
        return 0

    def send_signal(self, signum: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signum)

    terminate = partialmethod(send_signal, signal.SIGTERM)
    kill = partialmethod(send_signal, signal.SIGKILL)


class Parent:
    """The process that forks, started with the first kernel; it ends when this one does."""

    def __init__(self) -> None:
        self.process: subprocess.Popen | None = None

    def launch(self, command, env=None, cwd=None, **_) -> Forked:
        """In the place of jupyter_client's `launch_kernel`: python -m ipykernel_launcher ..."""
        if self.process is None:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            own = [sys.executable, __file__]
            self.process = subprocess.Popen(own, start_new_session=True, **pipes)
        job = {"arguments": command[3:], "env": dict(env or os.environ), "cwd": cwd or os.getcwd()}
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return Forked(int(self.process.stdout.readline()))

    def end(self) -> None:
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()
            self.process = None


def install() -> Parent | None:
    """Let jupyter_client's kernels of this process be forks, where that is possible."""
    if not POSSIBLE:
        return None
    from jupyter_client.provisioning import local_provisioner

    parent = Parent()
    local_provisioner.launch_kernel = parent.launch
    return parent


def become_kernel(arguments: list[str], env: dict[str, str], cwd: str) -> None:
    """Turn a fork into a kernel."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()  # before the pid is told: who interrupts a kernel signals its whole group
    print(os.getpid(), flush=True)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    os.environ["JPY_PARENT_PID"] = str(os.getppid())
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    sys.argv = ["ipykernel_launcher", *arguments]
    from ipykernel import kernelapp

    kernelapp.launch_new_instance()


def serve() -> None:
    """Import what chapters import; then fork a kernel for each line of the standard input."""
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    os.environ["JPY_PARENT_PID"] = str(os.getpid())  # read on import: kernels end when this does
    sys.path.pop(0)  # the folder of this file, which a kernel does not search
    # pandas asks on import whether it is in a kernel, and shows as many columns as fit if not
    builtins.get_ipython = lambda: SimpleNamespace(kernel=None)
    import ipykernel.kernelapp  # noqa: F401
    import matplotlib.pyplot  # noqa: F401
    import myst_nb.ext.glue  # noqa: F401
    import pandas  # noqa: F401
    import scipy.optimize  # noqa: F401

    import attnbias._public  # all that a public name brings, and the compiled loop's numba
    import attnbias.dynamics.compiled.engine
    import attnbias.plots  # noqa: F401
    from attnbias.geometry.active_set import lapack

    lapack()

    del builtins.get_ipython
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies: `poll` asks whether a pid is there
    for line in iter(sys.stdin.readline, ""):
        if os.fork() == 0:
            become_kernel(**json.loads(line))
            os._exit(0)


if __name__ == "__main__":
    serve()
