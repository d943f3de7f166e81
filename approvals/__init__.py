"""People decide: approvals before execution, cases after it. Imports checkpoint, never workers."""
