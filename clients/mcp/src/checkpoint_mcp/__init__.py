"""An MCP server in front of Checkpoint's REST API. It keeps nothing: whatever kills it, what was true is in Checkpoint.

A call that was cut down is sent again and is carried out once (`sending`). Nothing that people are asked can be
answered through it: there is no tool for that, and ids are UUIDs before they become part of an address (`tools`).
"""
