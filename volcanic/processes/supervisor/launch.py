"""Launcher script: ties its process to its parent's life, changes the user, and executes another program.

    python -I -S launch.py PARENT DEATH_SIGNAL UID GID GROUPS PROGRAM [ARGUMENT...]

This is a script and not a function between fork and exec, which would be unsafe in a process with threads.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
FAILED = 127


def die_with_parent(number: int) -> None:
    """Makes the kernel send the signal `number` to this process when its parent thread ends. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)


def main(arguments: list[str]) -> None:
    """Changes the user (`-` keeps the user), asks for a signal at the parent's death, and executes the program."""
    parent, death_signal, uid, gid, groups, *program = arguments
    if uid != "-":
        os.setgroups([int(group) for group in groups.split(",") if group])
        os.setgid(int(gid))
        os.setuid(int(uid))
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP) and signal.getsignal(number) is not signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)  # the parent may ignore signals that the program relies on
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    die_with_parent(int(death_signal))  # after the change of user, which would clear this request
    if os.getppid() != int(parent):  # the parent died before the request
        os._exit(FAILED)
    try:
        os.execv(program[0], program)  # noqa: S606
    except OSError as error:
        sys.stderr.write(f"cannot run {program[0]}: {error.strerror}\n")
        os._exit(FAILED)


if __name__ == "__main__":
    main(sys.argv[1:])
