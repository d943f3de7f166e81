"""A signed statement of how far every chain had come."""

from __future__ import annotations

from django.db import models


class AuditAnchor(models.Model):
    """One statement about the streams that changed since the one before. Append-only.

    `text` is the exact text that was hashed and signed; it names the hash of the anchor before, and the hash of its own
    list of heads. Whoever keeps a copy of an anchor elsewhere can prove what was cut here later.
    """

    number = models.BigIntegerField(primary_key=True)
    at = models.DateTimeField()
    text = models.TextField()
    hash = models.CharField(max_length=64)
    signature = models.CharField(max_length=128, help_text="Ed25519 over the text, in hexadecimal digits.")
    covers_until = models.DateTimeField(
        null=True, help_text="Every entry older than this is stated by now; null while the first ones are not through."
    )

    def __str__(self) -> str:
        return f"anchor {self.number}"


class AnchoredHead(models.Model):
    """The head of one stream as an anchor states it. Append-only."""

    pk = models.CompositePrimaryKey("stream_id", "seq")
    stream_id = models.UUIDField()
    seq = models.BigIntegerField()
    hash = models.CharField(max_length=64)
    anchor = models.ForeignKey(AuditAnchor, on_delete=models.PROTECT, related_name="heads")

    def __str__(self) -> str:
        return f"{self.stream_id} {self.seq}"
