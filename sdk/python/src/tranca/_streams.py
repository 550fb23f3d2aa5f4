"""What is kept while a stream of events is read, and when it is over."""

from __future__ import annotations

import codecs

from ._errors import ProtocolError
from ._fields import Fields
from ._frames import AnyEvent, OutputEvent
from ._types import Exit, FileEvent, Output, ProcessInfo, Result


class RunState:
    """Reads the events of a run: started, output, one result."""

    def __init__(self) -> None:
        self.id = ""
        self.result: Result | None = None
        self._kept = (bytearray(), bytearray())

    def take(self, event: AnyEvent) -> Output | None:
        """Take an event, and return the output that it is."""
        if isinstance(event, OutputEvent):
            kept = self._kept[event.stderr]
            out = Output(event.stderr, event.data, len(kept))
            kept += event.data
            return out
        if event.type == "started":
            self.id = event.fields.text("id")
        elif event.type == "result":
            self.result = self._result(event.fields)
        return None

    def _result(self, f: Fields) -> Result:
        kept = []
        for buf, name in zip(self._kept, ("stdout_bytes", "stderr_bytes")):
            size = f.integer(name)
            if not 0 <= size <= len(buf):
                raise ProtocolError(f"the result has {size} bytes of output, and {len(buf)} came")
            kept.append(bytes(buf[:size]))
        return Result._from(f.object("result"), kept[0], kept[1], f.maybe("limits"))


class FollowState:
    """Reads the events of a process: process, output and dropped, one exit. Keeps the offsets reached."""

    def __init__(self, stdout_from: int, stderr_from: int) -> None:
        self.offsets = [stdout_from, stderr_from]
        self.info: ProcessInfo | None = None
        self.exit: Exit | None = None
        self._dropped = [0, 0]

    def take(self, event: AnyEvent) -> Output | None:
        """Take an event, and return the output that it is."""
        if isinstance(event, OutputEvent):
            return self._output(event)
        if event.type == "dropped":
            stderr = event.fields.text("stream") == "stderr"
            self.offsets[stderr] += event.fields.integer("bytes")
            self._dropped[stderr] += event.fields.integer("bytes")
        elif event.type in ("process", "exit"):
            self.info = ProcessInfo._from(event.fields.object("process"))
            if event.type == "exit":
                self.exit = self.info.exit
        return None

    def _output(self, event: OutputEvent) -> Output:
        out = Output(event.stderr, event.data, self.offsets[event.stderr], self._dropped[event.stderr])
        self._dropped[event.stderr] = 0
        self.offsets[event.stderr] += len(event.data)
        return out


class WatchState:
    """Reads the events of a watch: watching, file."""

    def __init__(self) -> None:
        self.watching = False

    def take(self, event: AnyEvent) -> FileEvent | None:
        """Take an event, and return the change that it is."""
        if isinstance(event, OutputEvent):
            raise ProtocolError("output in a stream of file events")
        if event.type == "watching":
            self.watching = True
        elif event.type == "file":
            return FileEvent._from(event.fields.object("file"))
        return None


class Text:
    """Makes text of pieces of bytes, which may end within a character."""

    def __init__(self) -> None:
        make = codecs.getincrementaldecoder("utf-8")
        self._decoders = (make("replace"), make("replace"))

    def add(self, stderr: bool, data: bytes, final: bool = False) -> str:
        """Return the text that is whole now."""
        return self._decoders[stderr].decode(data, final)
