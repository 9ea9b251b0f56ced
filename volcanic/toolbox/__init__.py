"""Tools of the assistant: files, memory, commands, messages. They are registered when Django starts.

rules.py decides which files a turn may see and change. paths.py opens files by these rules, sandbox.py mounts them.
"""


def register_tools() -> None:
    """Registers the tools. Imports no slow modules, since Django calls this at start."""
    from volcanic.runtime.tools import CALLER, MEMORY, NETWORK, OWNER, PROCESSES, WORKING, WORKSPACE, register
    from volcanic.toolbox import files, memory, notify, send, shell, working

    register("read_file", files.read_file, reads={WORKSPACE})
    register("list_files", files.list_files, reads={WORKSPACE})
    register("search_files", files.search_files, reads={WORKSPACE})
    register("write_file", files.write_file, changes={WORKSPACE})
    register("edit_file", files.edit_file, reads={WORKSPACE}, changes={WORKSPACE})
    register("recall", memory.recall, reads={MEMORY})
    register("remember", memory.remember, changes={MEMORY})
    register("send", send.send, reads={WORKSPACE}, changes={CALLER})
    beyond = {NETWORK} if shell.unsafe() else set()
    changes = {WORKSPACE, PROCESSES} | beyond
    register("bash", shell.bash, reads={WORKSPACE} | beyond, changes=changes, offered=shell.offered)
    register(notify.NOTIFY_OWNER, notify.notify_owner, changes={OWNER}, offered=notify.offered)
    register("read_working_memory", working.read_working_memory, reads={WORKING}, offered=working.offered)
    register("write_working_memory", working.write_working_memory, changes={WORKING}, offered=working.offered)
