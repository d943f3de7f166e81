"""What people answered, and what they are told, one noun a file."""

from approvals.models.assignment import Assignment
from approvals.models.attachment import Attachment
from approvals.models.bulk_job import BulkItem, BulkJob
from approvals.models.comment import Comment
from approvals.models.decision import Decision
from approvals.models.escalation import Escalation
from approvals.models.notice import Delivery, Notice
from approvals.models.notice_channel import NoticeChannel
from approvals.models.notice_settings import NoticeSettings
from approvals.models.notice_timer import NoticeTimer
from approvals.models.policy import Policy
from approvals.models.saved_view import SavedView
from approvals.models.signature import Signature
from approvals.models.snooze import Snooze

__all__ = [
    "Assignment",
    "Attachment",
    "BulkItem",
    "BulkJob",
    "Comment",
    "Decision",
    "Delivery",
    "Escalation",
    "Notice",
    "NoticeChannel",
    "NoticeSettings",
    "NoticeTimer",
    "Policy",
    "SavedView",
    "Signature",
    "Snooze",
]
