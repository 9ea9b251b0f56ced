"""Becomes another program whose life is tied to its parent's. Run as a script, before the program itself:

    python -I -S launch.py PARENT DEATH_SIGNAL UID GID GROUPS PROGRAM [ARGUMENT...]

A program of its own, and not a function run between fork and exec: that is unsafe in a process with threads.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
FAILED = 127


def die_with_parent(number: int) -> None:
    """Asks the kernel for a signal to this process when the thread that started it ends. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)


def main(arguments: list[str]) -> None:
    """Changes user (`-`: stays), asks the kernel for a signal when the parent dies, and executes the program."""
    parent, death_signal, uid, gid, groups, *program = arguments
    if uid != "-":
        os.setgroups([int(group) for group in groups.split(",") if group])
        os.setgid(int(gid))
        os.setuid(int(uid))
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP) and signal.getsignal(number) is not signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)  # our parent may ignore what the program relies on
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    die_with_parent(int(death_signal))  # after the change of user, which would clear it
    if os.getppid() != int(parent):  # it died before the kernel was asked
        os._exit(FAILED)
    try:
        os.execv(program[0], program)  # noqa: S606
    except OSError as error:
        sys.stderr.write(f"cannot run {program[0]}: {error.strerror}\n")
        os._exit(FAILED)


if __name__ == "__main__":
    main(sys.argv[1:])
