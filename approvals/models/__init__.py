"""What people answered, and what they are told, one noun a file."""

from approvals.models.bulk_job import BulkItem, BulkJob
from approvals.models.decision import Decision
from approvals.models.notice import Delivery, Notice
from approvals.models.notice_channel import NoticeChannel
from approvals.models.notice_settings import NoticeSettings
from approvals.models.notice_timer import NoticeTimer
from approvals.models.policy import Policy
from approvals.models.signature import Signature

__all__ = [
    "BulkItem",
    "BulkJob",
    "Decision",
    "Delivery",
    "Notice",
    "NoticeChannel",
    "NoticeSettings",
    "NoticeTimer",
    "Policy",
    "Signature",
]
