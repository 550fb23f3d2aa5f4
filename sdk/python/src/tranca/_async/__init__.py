"""The package for asyncio. The plain one beside it is made from this by generate.py."""
