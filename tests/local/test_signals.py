"""The wait for the signal that ends the service: none is lost, however it falls."""

from __future__ import annotations

import subprocess
import sys

ROUNDS = 5_000

# In a process of its own: a main thread handles signals, and a lost one blocks it for ever.
PROGRAM = f"""
import signal, threading, time
from cirrusmq_local.commands.signals import Ending

def send_each():
    for number in range({ROUNDS}):
        ready.acquire()
        until = time.perf_counter() + number % 100 * 2e-7
        while time.perf_counter() < until:
            pass
        signal.pthread_kill(main, (signal.SIGTERM, signal.SIGINT)[number % 2])

main = threading.main_thread().ident
ready = threading.Semaphore(0)
ending = Ending()
threading.Thread(target=send_each, daemon=True).start()
for _ in range({ROUNDS}):
    ready.release()
    ending.wait()
print("ended", flush=True)
"""


def check_that_it_ends(program: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ended\n", "")


def test_a_signal_is_heard_whatever_the_waiting_thread_is_about_to_do() -> None:
    check_that_it_ends(PROGRAM)


def test_a_signal_before_the_wait_is_not_forgotten() -> None:
    check_that_it_ends(
        "import signal; from cirrusmq_local.commands.signals import Ending;"
        "ending = Ending();"
        "signal.raise_signal(signal.SIGINT);"
        "ending.wait(); print('ended')"
    )


def test_the_service_ends_the_wait_with_its_reason() -> None:
    check_that_it_ends(
        "import threading; from cirrusmq_local.commands.signals import Ending;"
        "ending = Ending();"
        "threading.Timer(0.1, ending.give_up, ['lost']).start();"
        "assert ending.wait() == 'lost'; print('ended')"
    )
