# Made by generate.py from the file of this name in _async.
"""The plain package. All but _io.py is made from the one for asyncio by generate.py."""
